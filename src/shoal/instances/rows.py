"""Reading and cleaning a log: a file or any dataframe in, usable rows out, and why others are not.

Rows are compared by a hash of 64 bits: of ten million different rows, two have the same one with a
probability of 3e-6.

A few bad rows are left out and counted. Where more than ``MAX_BAD`` of the rewards are not numbers
or not in [0, 1], the column or the scale is wrong and guessing would be worse than refusing. Where
rewards are rare, such as sales, they may all be amounts: so the bad ones are compared with those
that are not 0 as well.
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
from shoal.instances.hints import encoding_hint, header_hint, number_hint, separator_hint
from shoal.model.plurals import count
from shoal.model.scale import UNCHANGED, Scale

MAX_BAD = 0.05
"""Share of the rewards that may be unusable."""

MAX_AMOUNTS = 0.2
"""Share of the rewards other than 0 that may be unusable for being amounts."""

SCALES = {
    "percent": "divide by 100",
    "range": "the least becomes 0, the largest 1",
    "p99": "divide by the 99th percentile, and cut at 0 and 1",
    "positive": "1 if above 0, else 0",
}
"""Ways to bring rewards into [0, 1], by name."""

MIN_PERCENT = 10.0
"""Rewards whose maximum is at most this are no percentages."""


class UnknownColumnError(InvalidInputError):
    """A column that a log does not have: its role, its name, and the names that there are."""

    def __init__(self, role: str, name: str, columns: list[str]) -> None:
        super().__init__(role, name, columns)  # what pickle hands to a copy
        self.role, self.name, self.columns = role, name, columns

    @property
    def hint(self) -> str:
        """What else may be wrong."""
        for column in self.columns:
            if column.casefold() == self.name.casefold():
                return f" The log has {column!r}: only the case differs."
        if len(self.columns) == 1:
            return separator_hint(self.columns[0])
        return header_hint(self.columns)

    def __str__(self) -> str:
        return (
            f"{self.role} must name one of the log's columns {self.columns}, as in "
            f"from_log(log, {self.role}=...); got {self.name!r}.{self.hint}"
        )


def read_log(log: Any) -> pl.DataFrame:
    """Read a .csv or .parquet file, or take a frame of any library that narwhals knows."""
    if not isinstance(log, str | Path):
        frame = read_frame(log)
        if frame is None:
            raise InvalidInputError(
                f"a log must be a .csv or .parquet file or a dataframe; got {type(log).__name__}."
            )
        return frame
    frame = _read_file(Path(log))
    if "\0" in "".join(frame.columns):
        raise InvalidInputError(
            f"{log} must be text in UTF-8; got another encoding. Save it as UTF-8."
        )
    if frame.is_empty():
        raise InvalidInputError(f"{log} has a header and no rows.")
    return frame


def _read_file(path: Path) -> pl.DataFrame:
    try:
        if path.suffix.lower() == ".csv":
            _check_names(path)
            frame = pl.read_csv(path, infer_schema=False, glob=False)  # 003 is not 3
            return _without_index(_with_stripped_names(frame))
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        if path.suffix.lower() == ".csv" and isinstance(error, pl.exceptions.ComputeError):
            _check_width(path)
        raise unreadable(path, error, hint=encoding_hint(error)) from error
    raise InvalidInputError(f"a log must end in .csv or .parquet; got {str(path)!r}.")


def _check_names(path: Path) -> None:
    """Refuse two columns of one name, of which polars would rename the second."""
    with path.open(encoding="utf-8", errors="replace", newline="") as lines, suppress(csv.Error):
        names = [name.strip() for name in next(csv.reader(lines), []) if name.strip()]
        if not _differ(names):
            raise InvalidInputError(
                f"columns of {path} must have different names; got {', '.join(names)}."
                f"{header_hint(names)}"
            )


def _with_stripped_names(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the spaces around the names of columns."""
    names = [name.strip() for name in frame.columns]
    return frame.rename(dict(zip(frame.columns, names, strict=True))) if _differ(names) else frame


def _without_index(frame: pl.DataFrame) -> pl.DataFrame:
    """Leave out the numbers of the rows that pandas writes: with them, no row repeats another."""
    numbers = pl.int_range(frame.height, eager=True).cast(pl.String)
    unnamed = [name for name in frame.columns if not name or name.startswith("Unnamed: ")]
    return frame.drop(name for name in unnamed if (frame[name] == numbers).all())


def _differ(names: list[str]) -> bool:
    return len(set(names)) == len(names)


def _check_width(path: Path) -> None:
    """Name the first row that has more cells than the header; polars does not say which."""
    with path.open(encoding="utf-8", errors="replace", newline="") as lines, suppress(csv.Error):
        reader = csv.reader(lines)
        cells = next(reader, [])
        header, width = "".join(cells), len(cells)
        for row in reader:
            if len(row) > width:
                raise InvalidInputError(
                    f"line {reader.line_num} of {path} must have at most {count(width, 'cell')}, "
                    f"as the header; got {len(row)}.{separator_hint(header) if width == 1 else ''}"
                )


def select_columns(frame: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Return the log's columns under the names of their roles."""
    if not _differ(list(names.values())):
        raise InvalidInputError(
            f"columns must be different ones for {', '.join(names)}; got "
            f"{', '.join(names.values())}."
        )
    for role, name in names.items():
        if name not in frame.columns:
            raise UnknownColumnError(role, name, frame.columns)
        if frame.schema[name].is_nested() or frame.schema[name] in (pl.Object, pl.Binary):
            raise InvalidInputError(
                f"{role} column {name!r} must hold single values; got {frame.schema[name]}, such "
                f"as {frame[name].head(1).to_list()}."
            )
    return frame.select(pl.col(name).alias(role) for role, name in names.items())


def complete_rows(rows: pl.DataFrame) -> pl.Series:
    """Mark the rows with a user, an arm and a reward: a blank line of a file has none."""
    present = ~pl.any_horizontal(pl.col("user", "arm", "reward").is_null())
    return rows.select(present).to_series()


def repeated_rows(frame: pl.DataFrame, complete: pl.Series) -> pl.Series:
    """Mark the ``complete`` rows that repeat an earlier one in all columns."""
    return complete & ~frame.hash_rows().is_first_distinct()


def drop_duplicates(frame: pl.DataFrame, repeated: pl.Series | None) -> pl.DataFrame:
    """Leave out the ``repeated`` rows; None where no column tells copies."""
    if repeated is None:
        raise InvalidInputError(
            f"duplicates must be told by a further column such as the time: in a log of "
            f"{frame.columns} alone, equal rows may be different events."
        )
    return frame.filter(~repeated)


def usable_rows(
    rows: pl.DataFrame, column: str, scale: str | None
) -> tuple[pl.DataFrame, dict[str, int], str, Scale]:
    """Return the rows with a user, an arm and a reward in [0, 1]; count the others by reason.

    ``column`` is the reward's name in the log, for messages. Last comes what the scale did, in
    words and as what 0 and 1 stand for.
    """
    present = rows.filter(complete_rows(rows))
    number = pl.col("reward").cast(pl.Float64, strict=False)
    if rows.schema["reward"] == pl.String:
        text = pl.col("reward").str.strip_chars().str.to_lowercase()
        truth = text.replace({"true": "1", "false": "0"})
        number = truth.cast(pl.Float64, strict=False)
    numbers = present.filter(number.is_not_null())
    dropped = {
        "missing": rows.height - present.height,
        "not_numbers": present.height - numbers.height,
    }
    texts = present.filter(number.is_null())["reward"]
    with_digits = int(texts.cast(pl.String).str.contains(r"\d").sum())
    _refuse_many(
        texts, numbers.select(number), with_digits, column, "be numbers", number_hint(texts)
    )
    finite = numbers.with_columns(number).filter(pl.col("reward").is_finite())
    dropped["not_finite"] = numbers.height - finite.height
    scaling, ends = "", UNCHANGED
    if scale is not None:
        finite, scaling, ends = _scaled(finite, scale)
    inside = finite.filter(pl.col("reward").is_between(0.0, 1.0))
    dropped["out_of_range"] = finite.height - inside.height
    outside = finite.filter(~pl.col("reward").is_between(0.0, 1.0))["reward"]
    above = int((outside > 1.0).sum())
    _refuse_many(outside, inside, above, column, "lie in [0, 1]", _offer(finite["reward"]))
    return inside, dropped, scaling, ends


def _offer(rewards: pl.Series) -> str:
    """Name the scales that would suit; percent only where rewards look like percentages."""
    percent = bool((rewards > MIN_PERCENT).any() and rewards.is_between(0.0, 100.0).all())
    names = [name for name in SCALES if percent or name != "percent"]
    return f" Choose a scale: {'; '.join(f'{name} ({SCALES[name]})' for name in names)}."


def _refuse_many(
    bad: pl.Series, good: pl.DataFrame, n_amounts: int, column: str, rule: str, offer: str
) -> None:
    """Refuse too many bad rewards, or so many amounts that what is left would say little."""
    n_rows = len(bad) + good.height
    n_rewards = n_amounts + good.filter(pl.col("reward") != 0.0).height
    if len(bad) > MAX_BAD * n_rows:
        share = f"{len(bad):,} of {n_rows:,}"
    elif n_amounts > MAX_AMOUNTS * n_rewards:
        share = f"{n_amounts:,} of the {n_rewards:,} that are not 0"
    else:
        return
    values = ", ".join(repr(value) for value in bad.unique(maintain_order=True).head(4))
    raise InvalidInputError(
        f"rewards in column {column!r} must {rule}; {share} "
        f"{'are' if rule.startswith('be ') else 'do'} not, such as {values}.{offer}"
    )


def _scaled(rows: pl.DataFrame, scale: str) -> tuple[pl.DataFrame, str, Scale]:
    """Return the rows on a scale, and what 0 and 1 stand for, in words and as numbers."""
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
    low, high, top = (
        rows.select(
            reward.min().alias("low"), reward.max().alias("high"), largest.alias("top")
        ).row(0)
        if rows.height
        else (0.0, 0.0, 0.0)
    )
    if scale == "p99" and high > 0 and top <= 0:
        raise InvalidInputError(
            f"scale p99 needs a 99th percentile above 0; got {top:g}, because so few rewards are "
            f"above 0. Choose range ({SCALES['range']}) or positive ({SCALES['positive']})."
        )
    n_cut = rows.filter((reward < 0) | (reward > top)).height
    meanings = {
        "percent": "1 stands for 100",
        "range": f"0 stands for {low:g}, 1 for {high:g}",
        "p99": f"1 stands for {top:g}; {count(n_cut, 'row')} cut to 0 or 1",
        "positive": "1 stands for any reward above 0",
    }
    ends = {
        "percent": Scale(0.0, 100.0),
        "range": Scale(low, high) if high > low else UNCHANGED,
        "p99": Scale(0.0, top) if top > 0 else UNCHANGED,
        "positive": UNCHANGED,
    }
    scaled = rows.with_columns(expressions[scale].alias("reward"))
    return scaled, f"{scale}: {meanings[scale]}", ends[scale]
