"""Times of a log as people write them."""

from __future__ import annotations

import datetime

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


@pytest.mark.parametrize("text", ["2026-W02", "2026-01"])
def test_weeks_and_months_are_refused_for_a_day_that_is_missing(text: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        log_of([text] * 20)
    assert str(refused.value).endswith(
        f"such as {text!r}. A day is missing: write one of the week or month, such as its first."
    )


def test_times_in_two_ways_are_named_one_of_each() -> None:
    """The refusal had blamed the times with the year first, and asked for just these."""
    with pytest.raises(InvalidInputError) as refused:
        log_of(["24/03/2026"] * 12 + ["2026-03-24T04:38:50"] * 8)
    assert str(refused.value) == (
        "times in column 'day' must all be written in one way; got '24/03/2026' and "
        "'2026-03-24T04:38:50', and 8 of 20 are not like the former. Write all of them with the "
        "year first: 2026-03-20 13:45."
    )


def test_missing_times_are_called_missing() -> None:
    rows = visits(20).with_columns(day=pl.Series([*["2026-03-24"] * 12, *[None] * 8]))
    with pytest.raises(InvalidInputError) as refused:
        from_log(rows, time="day")
    assert str(refused.value) == (
        "times in column 'day' must be there in nearly all rows; 8 of 20 have none. Leave these "
        "rows out, or the column for the time."
    )


def test_times_may_be_dates_or_numbers_and_nothing_else() -> None:
    numbers = from_log(
        visits(5, rate=0.6).with_columns(t=pl.Series(["3", "1", "2", "5", "4"])), time="t"
    )
    assert numbers.profile.period == ("1.0", "5.0")
    day = datetime.date(2026, 1, 1)
    assert (
        from_log(visits(5, rate=0.6).with_columns(t=pl.lit(day)), time="t").profile.period
        is not None
    )
    with pytest.raises(InvalidInputError, match=r"or dates such as .*; 5 of 5"):
        from_log(visits(5, rate=0.6).with_columns(t=pl.lit("soon")), time="t")
    with pytest.raises(InvalidInputError, match="time column 't' must hold times or numbers"):
        from_log(visits(5, rate=0.6).with_columns(t=pl.lit(value=True)), time="t")


@pytest.mark.parametrize("ticks", [1, 1_000, 1_000_000, 1_000_000_000])
def test_numbers_that_count_from_1970_are_dates(ticks: int) -> None:
    times = pl.Series([1_767_225_600 + 86_400 * day for day in (0, 1, 2, 3, 9)]) * ticks
    log = from_log(visits(5, rate=0.6).with_columns(t=times), time="t")
    assert log.profile.period == ("2026-01-01 00:00:00", "2026-01-10 00:00:00")
    assert log.visits is not None
    assert log.visits.n_rounds == 10


def test_a_column_that_is_no_time_is_refused() -> None:
    frame = visits(5, rate=0.6).with_columns(t=pl.Series([1.0, 2.0, 3.0, 4.0, 1e20]))
    with pytest.raises(InvalidInputError, match=r"fewer than 1,000,000 rounds; got 1e\+20 of one"):
        from_log(frame, time="t")
