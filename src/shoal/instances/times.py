"""Times of a log: texts, numbers and dates in, dates or numbers out; other rows have no time.

Dates that begin with day and month are read in that order, unless one of them shows the other: in
03/13/2026, 13 can't be the month. Years first (2026-03-13) are never ambiguous.
"""

from __future__ import annotations

import polars as pl

from shoal.errors import InvalidInputError
from shoal.instances.rows import MAX_BAD

DAY_AND_MONTH = r"^\s*(\d{1,2})([/.-])(\d{1,2})([/.-]\d{4}\b)"
"""Dates that begin with day and month, in either order."""

WITHOUT_DAY = r"^\s*\d{4}-?(W\d{2}|\d{2})\s*$"
"""A week or a month, such as 2026-W02 and 2026-01."""

FIRST_DAY, LAST_DAY = 19_000_101, 21_001_231
"""Whole numbers between these that are all dates, written as year, month and day, are dates."""

EPOCH = (1.0, 1e3, 1e6, 1e9)
"""Ticks a second of times that count from 1970."""

FIRST_SECOND, LAST_SECOND = 3e8, 5e9  # 1979 and 2128


def ambiguous_date(times: pl.Series) -> str | None:
    """Return a date of a column of text in which all would be dates with day and month exchanged.

    >>> ambiguous_date(pl.Series(["03/03/2026", "03/01/2026"]))
    '03/01/2026'
    >>> ambiguous_date(pl.Series(["03/01/2026", "13/01/2026"]))
    """
    if times.dtype != pl.String:
        return None
    dates = _days_and_months(times)
    differ = dates.filter(pl.col("first") != pl.col("second"))
    few = dates.height < (1 - MAX_BAD) * times.count()
    if few or differ.is_empty() or dates.filter(pl.max_horizontal("first", "second") > 12).height:
        return None
    return str(differ["text"][0])


def _days_and_months(texts: pl.Series) -> pl.DataFrame:
    """Return the dates that begin with day and month: the text, the first and the second number."""
    parts = pl.DataFrame({"text": texts}).with_columns(
        first=pl.col("text").str.extract(DAY_AND_MONTH, 1).cast(pl.Int64),
        second=pl.col("text").str.extract(DAY_AND_MONTH, 3).cast(pl.Int64),
    )
    return parts.drop_nulls()


def _day_first(texts: pl.Series, column: str) -> pl.Series:
    """Exchange day and month in all texts where one of them shows that the month stands first.

    >>> _day_first(pl.Series(["03/05/2026", "03/13/2026"]), "day").to_list()
    ['05/03/2026', '13/03/2026']
    """
    dates = _days_and_months(texts)
    month_first = dates.filter(pl.col("second") > 12, pl.col("first") <= 12)["text"]
    day_first = dates.filter(pl.col("first") > 12, pl.col("second") <= 12)["text"]
    if len(month_first) and len(day_first):
        raise InvalidInputError(
            f"dates in column {column!r} must have day and month in one order; got "
            f"{day_first[0]!r} and {month_first[0]!r}. Write the year first: 2026-03-20."
        )
    return texts.str.replace(DAY_AND_MONTH, "${3}${2}${1}${4}") if len(month_first) else texts


def parse_times(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Turn text in the time column into dates or numbers; rows without a time are left out.

    Numbers that count from 1970 in seconds, or in a thousandth, millionth ... of them, are dates,
    and so are numbers such as 20260320.
    """
    times = rows["time"]
    if times.dtype == pl.String:
        texts = _day_first(times.str.replace(r"\s*UTC\s*$", ""), column)
        dates = texts.str.to_datetime(strict=False, time_zone="UTC")
        numbers = times.cast(pl.Float64, strict=False)
        parsed = dates if dates.null_count() <= numbers.null_count() else numbers
    elif times.dtype.is_temporal() or times.dtype.is_numeric():
        parsed = times
    else:
        raise InvalidInputError(
            f"time column {column!r} must hold times or numbers; got {times.dtype}."
        )
    if parsed.dtype.is_float():
        parsed = parsed.set(~parsed.is_finite(), None)
    bad = rows.filter(parsed.is_null())["time"]
    if len(bad) > MAX_BAD * rows.height:
        raise InvalidInputError(_refusal(rows.filter(parsed.is_not_null())["time"], bad, column))
    return rows.with_columns(_dates(parsed).alias("time")).filter(pl.col("time").is_not_null())


def _refusal(read: pl.Series, bad: pl.Series, column: str) -> str:
    """Say what is wrong with times of which too many can't be read."""
    n_rows, written = len(read) + len(bad), bad.drop_nulls()
    if written.is_empty():
        return (
            f"times in column {column!r} must be there in nearly all rows; {len(bad):,} of "
            f"{n_rows:,} have none. Leave these rows out, or the column for the time."
        )
    if len(read) > MAX_BAD * n_rows:
        return (
            f"times in column {column!r} must all be written in one way; got {read[0]!r} and "
            f"{written[0]!r}, and {len(bad):,} of {n_rows:,} are not like the former. Write all of "
            "them with the year first: 2026-03-20 13:45."
        )
    values = ", ".join(repr(value) for value in bad.unique(maintain_order=True).head(4))
    no_day = bool(written.cast(pl.String).str.contains(WITHOUT_DAY).all())
    advice = (
        "A day is missing: write one of the week or month, such as its first."
        if no_day
        else "Write the year first, and hours from 0 to 23."
    )
    return (
        f"times in column {column!r} must be numbers, or dates such as 2026-03-20, 20.03.2026 "
        f"or 2026-03-20 13:45; {len(bad):,} of {n_rows:,} are not, such as {values}. {advice}"
    )


def _dates(times: pl.Series) -> pl.Series:
    """Take numbers for dates where all lie in one of the ranges of ``EPOCH``, or are such days.

    >>> _dates(pl.Series([20260228, 20260301])).to_list()
    [datetime.date(2026, 2, 28), datetime.date(2026, 3, 1)]
    >>> _dates(pl.Series([20260228, 20260229])).to_list()  # no such day in 2026
    [20260228, 20260229]
    """
    if times.dtype.is_temporal() or times.null_count() == len(times):
        return times
    low, high = (float(end) for end in (times.min(), times.max()))  # type: ignore[arg-type]
    if FIRST_DAY <= low <= high <= LAST_DAY:
        days = times.cast(pl.Int64).cast(pl.String).str.to_date("%Y%m%d", strict=False)
        if days.null_count() == times.null_count():
            return days
    for ticks in EPOCH:
        if FIRST_SECOND * ticks <= low <= high <= LAST_SECOND * ticks:
            return (times.cast(pl.Float64) * (1e6 / ticks)).cast(pl.Int64).cast(pl.Datetime("us"))
    return times
