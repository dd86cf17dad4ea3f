"""Times of a log as people write them."""

from __future__ import annotations

import polars as pl
import pytest
from tests.support.logs import visits

from shoal.errors import InvalidInputError
from shoal.instances import Log, from_log


def log_of(dates: list[str]) -> Log:
    rows = visits(len(dates)).with_columns(day=pl.Series(dates))
    return from_log(rows, time="day")


def test_one_day_above_12_shows_that_the_month_stands_first() -> None:
    """Read as day, month, year, the others would be from January to December."""
    log = log_of([f"03/{day:02}/2026" for day in range(1, 13)] * 4 + ["03/13/2026"])
    assert log.report.without_time == 0
    assert log.profile.period == ("2026-03-01 00:00:00+00:00", "2026-03-13 00:00:00+00:00")
    assert log.profile.ambiguous_date is None
    assert log.visits is not None
    assert log.visits.n_rounds == 13


def test_both_orders_of_day_and_month_are_refused() -> None:
    with pytest.raises(InvalidInputError) as refused:
        log_of(["01/02/2026"] * 98 + ["13/02/2026", "02/14/2026"])
    assert str(refused.value) == (
        "dates in column 'day' must have day and month in one order; got '13/02/2026' and "
        "'02/14/2026'. Write the year first: 2026-03-20."
    )


@pytest.mark.parametrize("text", ["2026-04-23 22:40:30 UTC", "04/23/2026 22:40:30"])
def test_times_that_are_clear_are_read(text: str) -> None:
    assert log_of([text] * 20).profile.period == ("2026-04-23 22:40:30+00:00",) * 2


@pytest.mark.parametrize("text", ["04/23/2026 10:40 PM", "23 Apr 2026", "04/05/26"])
def test_other_times_are_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        log_of([text] * 20)
    assert str(refused.value).endswith(
        f"such as {text!r}. Write the year first, and hours from 0 to 23."
    )
