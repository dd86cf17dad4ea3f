"""Means from a log of past rounds: rows of user, arm and reward, from a CSV or Parquet file.

The mean of a user on an arm is the pair's average reward, shrunk towards the arm's average by
``smoothing`` pseudo-counts: (sum + smoothing × arm's average) / (rows + smoothing). A pair without
rows gets the arm's average.
"""

import csv
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from shoal.arrays import FloatArray
from shoal.errors import InvalidInputError
from shoal.instances.files import unreadable
from shoal.model.numbers import whole_number


@dataclass(frozen=True, slots=True)
class LogReport:
    """How a log's rows and pairs were used; each dropped row is counted once, in this order."""

    rows_read: int
    missing: int
    not_numbers: int
    not_finite: int
    out_of_range: int
    too_rare: int
    rows_used: int
    pairs_seen: int
    pairs_filled: int

    def __str__(self) -> str:
        return (
            f"{self.rows_used} of {self.rows_read} rows used; dropped: {self.missing} with missing "
            f"values, {self.not_numbers} not numbers, {self.not_finite} not finite, "
            f"{self.out_of_range} outside [0, 1], {self.too_rare} of rare users or arms; "
            f"{self.pairs_filled} of {self.pairs_seen + self.pairs_filled} pairs never seen."
        )


@dataclass(frozen=True, slots=True, eq=False)
class LoggedMeans:
    """Means from a log, with the labels of their rows and columns."""

    means: FloatArray  # (n_users, n_arms)
    users: list[object]
    arms: list[object]
    report: LogReport


def from_log(
    log: str | Path | pl.DataFrame,
    *,
    user: str = "user",
    arm: str = "arm",
    reward: str = "reward",
    smoothing: float = 1.0,
    min_user_rows: int = 1,
    min_arm_rows: int = 1,
) -> LoggedMeans:
    """Turn a log into means.

    Parameters
    ----------
    log
        A .csv file with a header, a .parquet file, or a polars frame.
    user, arm, reward
        Names of the columns. Rewards are numbers in [0, 1]; other rows are dropped and counted.
    smoothing
        Pseudo-counts of the arm's average in every pair; 0 for none.
    min_user_rows, min_arm_rows
        Users and arms with fewer usable rows are dropped, both counted before either is dropped.

    Examples
    --------
    >>> rows = {"user": ["a", "a", "b", "b"], "arm": [1, 2, 1, 1], "reward": [1.0, 0.5, 0.0, 7.0]}
    >>> logged = from_log(pl.DataFrame(rows))
    >>> logged.means
    array([[0.75, 0.5 ],
           [0.25, 0.5 ]])
    >>> print(logged.report)
    3 of 4 rows used; dropped: 0 with missing values, 0 not numbers, 0 not finite, \
1 outside [0, 1], 0 of rare users or arms; 1 of 4 pairs never seen.
    """
    if not 0.0 <= smoothing < np.inf:
        raise InvalidInputError(f"smoothing must be finite and at least 0; got {smoothing}.")
    least = {
        "user": whole_number("min_user_rows", min_user_rows),
        "arm": whole_number("min_arm_rows", min_arm_rows),
    }
    rows = _columns(_read(log), {"user": user, "arm": arm, "reward": reward})
    usable, dropped = _drop_unusable(rows)
    frequent = usable.filter(*(pl.len().over(name) >= n for name, n in least.items()))
    if frequent.is_empty():
        raise InvalidInputError(
            f"a log must leave at least one row; got {rows.height} rows, {usable.height} of them "
            f"usable, with {min_user_rows=} and {min_arm_rows=}."
        )
    means, n_pairs, labels = _means(frequent, smoothing)
    report = LogReport(
        rows_read=rows.height,
        **dropped,
        too_rare=usable.height - frequent.height,
        rows_used=frequent.height,
        pairs_seen=n_pairs,
        pairs_filled=means.size - n_pairs,
    )
    return LoggedMeans(means, labels["user"], labels["arm"], report)


def _read(log: str | Path | pl.DataFrame) -> pl.DataFrame:
    if isinstance(log, pl.DataFrame):
        return log
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


def _columns(frame: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    for role, name in names.items():
        if name not in frame.columns:
            raise InvalidInputError(
                f"{role} must name one of the log's columns {frame.columns}; got {name!r}."
            )
    return frame.select(pl.col(name).alias(role) for role, name in names.items())


def _drop_unusable(rows: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the rows with a user, an arm and a reward in [0, 1]; count the others by reason."""
    number = pl.col("reward").cast(pl.Float64, strict=False)
    reasons = {
        "missing": pl.any_horizontal(pl.all().is_null()),
        "not_numbers": number.is_null(),
        "not_finite": ~number.is_finite(),
        "out_of_range": ~number.is_between(0.0, 1.0),
    }
    dropped = {}
    for reason, is_bad in reasons.items():
        usable = rows.filter(~is_bad)
        dropped[reason] = rows.height - usable.height
        rows = usable
    return rows.with_columns(number), dropped


def _means(rows: pl.DataFrame, smoothing: float) -> tuple[FloatArray, int, dict[str, list[object]]]:
    """Return the means, the number of pairs with rows, and the sorted labels of both."""
    labels = {name: rows[name].unique().sort().to_list() for name in ("user", "arm")}
    shape = len(labels["user"]), len(labels["arm"])
    places = tuple(rows[name].rank("dense").to_numpy().astype(np.int64) - 1 for name in labels)
    pair = np.ravel_multi_index(places, shape)
    # NumPy adds the rows in their order: the same bytes on any number of cores.
    sums = np.bincount(pair, rows["reward"].to_numpy(), minlength=shape[0] * shape[1])
    counts = np.bincount(pair, minlength=len(sums))
    sums, counts = sums.reshape(shape), counts.reshape(shape)
    averages = np.broadcast_to(sums.sum(axis=0) / counts.sum(axis=0), shape)  # (n_users, n_arms)
    weights = counts + smoothing
    means = averages.copy()
    np.divide(sums + smoothing * averages, weights, out=means, where=weights > 0.0)
    return np.clip(means, 0.0, 1.0), int(np.count_nonzero(counts)), labels
