"""Reading and cleaning a log: a file or any dataframe in, usable rows out, and why others are not.

Rows are compared by a hash of 64 bits: of ten million different rows, two have the same one with a
probability of 3e-6.

A few bad rows are left out and counted. Where more than ``MOST_BAD`` of the rewards are not numbers
or not in [0, 1], the column or the scale is wrong and guessing would be worse than refusing.
"""

from __future__ import annotations

import csv
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.frames import read_frame
from shoal.instances.files import unreadable

MOST_BAD = 0.05
"""Share of the rewards that may be unusable."""

SCALES = {
    "percent": "divide by 100",
    "range": "the least becomes 0, the largest 1",
    "p99": "divide by the 99th percentile, and cut at 0 and 1",
    "positive": "1 if above 0, else 0",
}
"""Ways to bring rewards into [0, 1], by name."""


EPOCH = (1.0, 1e3, 1e6, 1e9)
"""Ticks a second of times that count from 1970."""

FIRST_SECOND, LAST_SECOND = 3e8, 5e9  # 1979 and 2128


def read_log(log: Any) -> pl.DataFrame:
    """Read a .csv or .parquet file, or take a frame of any library that narwhals knows."""
    if not isinstance(log, str | Path):
        frame = read_frame(log)
        if frame is None:
            raise InvalidInputError(
                f"a log must be a .csv or .parquet file or a dataframe; got {type(log).__name__}."
            )
        return frame
    path = Path(log)
    try:
        if path.suffix.lower() == ".csv":
            return pl.read_csv(path, infer_schema=False, glob=False)  # 003 is not 3
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        if path.suffix.lower() == ".csv" and isinstance(error, pl.exceptions.ComputeError):
            _check_width(path)
        raise unreadable(path, error) from error
    raise InvalidInputError(f"a log must end in .csv or .parquet; got {str(path)!r}.")


def _check_width(path: Path) -> None:
    """Name the first row that has more cells than the header; polars does not say which."""
    with path.open(encoding="utf-8", errors="replace", newline="") as lines, suppress(csv.Error):
        reader = csv.reader(lines)
        width = len(next(reader, []))
        for row in reader:
            if len(row) > width:
                raise InvalidInputError(
                    f"line {reader.line_num} of {path} must have at most {width} cells, as the "
                    f"header; got {len(row)}."
                )


def select_columns(frame: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Return the log's columns under the names of their roles."""
    for role, name in names.items():
        if name not in frame.columns:
            alone = frame.columns[0] if frame.width == 1 else ""
            hint = " Cells must be separated by commas." if set(alone) & set(";\t|") else ""
            raise InvalidInputError(
                f"{role} must name one of the log's columns {frame.columns}; got {name!r}.{hint}"
            )
        if frame.schema[name].is_nested() or frame.schema[name] in (pl.Object, pl.Binary):
            raise InvalidInputError(
                f"{role} column {name!r} must hold single values; got {frame.schema[name]}, such "
                f"as {frame[name].head(1).to_list()}."
            )
    return frame.select(pl.col(name).alias(role) for role, name in names.items())


def count_duplicates(frame: pl.DataFrame) -> int | None:
    """Return how many rows repeat another in all columns; None where there are only three."""
    return frame.height - frame.hash_rows().n_unique() if frame.width > 3 else None


def drop_duplicates(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out rows that repeat another in all columns."""
    if frame.width <= 3:
        raise InvalidInputError(
            f"duplicates must be told by a further column such as the time: in a log of "
            f"{frame.columns} alone, equal rows may be different events."
        )
    return frame.filter(frame.hash_rows().is_first_distinct())


def usable_rows(
    rows: pl.DataFrame, column: str, scale: str | None
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the rows with a user, an arm and a reward in [0, 1]; count the others by reason.

    ``column`` is the reward's name in the log, for messages.
    """
    present = rows.filter(~pl.any_horizontal(pl.col("user", "arm", "reward").is_null()))
    number = pl.col("reward").cast(pl.Float64, strict=False)
    if rows.schema["reward"] == pl.String:
        truth = pl.col("reward").str.to_lowercase().replace({"true": "1", "false": "0"})
        number = truth.cast(pl.Float64, strict=False)
    numbers = present.filter(number.is_not_null())
    dropped = {
        "missing": rows.height - present.height,
        "not_numbers": present.height - numbers.height,
    }
    _refuse_many(
        present.filter(number.is_null())["reward"], present.height, column, "be numbers", ""
    )
    finite = numbers.with_columns(number).filter(pl.col("reward").is_finite())
    dropped["not_finite"] = numbers.height - finite.height
    if scale is not None:
        finite = _scaled(finite, scale)
    inside = finite.filter(pl.col("reward").is_between(0.0, 1.0))
    dropped["out_of_range"] = finite.height - inside.height
    offers = "; ".join(f"{name} ({what})" for name, what in SCALES.items())
    outside = finite.filter(~pl.col("reward").is_between(0.0, 1.0))["reward"]
    _refuse_many(outside, finite.height, column, "lie in [0, 1]", f" Choose a scale: {offers}.")
    return inside, dropped


def _refuse_many(bad: pl.Series, n_rows: int, column: str, rule: str, offer: str) -> None:
    if len(bad) <= MOST_BAD * n_rows:
        return
    values = ", ".join(repr(value) for value in bad.unique(maintain_order=True).head(4))
    raise InvalidInputError(
        f"rewards in column {column!r} must {rule}; {len(bad):,} of {n_rows:,} "
        f"{'are' if rule.startswith('be ') else 'do'} not, such as {values}.{offer}"
    )


def _scaled(rows: pl.DataFrame, scale: str) -> pl.DataFrame:
    if scale not in SCALES:
        raise UnknownNameError("scale", scale, SCALES)
    reward = pl.col("reward")
    spread = reward.max() - reward.min()
    largest = reward.quantile(0.99, "higher")
    expressions = {
        "percent": reward / 100,
        "range": pl.when(spread > 0).then((reward - reward.min()) / spread).otherwise(0.0),
        "p99": pl.when(largest > 0).then((reward / largest).clip(0.0, 1.0)).otherwise(0.0),
        "positive": (reward > 0).cast(pl.Float64),
    }
    return rows.with_columns(expressions[scale].alias("reward"))


def parse_times(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Turn text in the time column into dates or numbers; rows without a time are left out.

    Numbers that count from 1970 in seconds, or in a thousandth, millionth ... of them, are dates.
    """
    times = rows["time"]
    if times.dtype == pl.String:
        dates = times.str.to_datetime(strict=False, time_zone="UTC")
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
    if len(bad) > MOST_BAD * rows.height:
        values = ", ".join(repr(value) for value in bad.unique(maintain_order=True).head(4))
        raise InvalidInputError(
            f"times in column {column!r} must be dates or numbers; {len(bad):,} of "
            f"{rows.height:,} are not, such as {values}."
        )
    return rows.with_columns(_dates(parsed).alias("time")).filter(pl.col("time").is_not_null())


def _dates(times: pl.Series) -> pl.Series:
    """Take numbers for dates where all lie in one of the ranges of ``EPOCH``."""
    if times.dtype.is_temporal() or times.null_count() == len(times):
        return times
    low, high = (float(end) for end in (times.min(), times.max()))  # type: ignore[arg-type]
    for ticks in EPOCH:
        if FIRST_SECOND * ticks <= low <= high <= LAST_SECOND * ticks:
            return (times.cast(pl.Float64) * (1e6 / ticks)).cast(pl.Int64).cast(pl.Datetime("us"))
    return times
