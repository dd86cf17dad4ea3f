"""A sweep's records as one frame: the columns of every cell's Parquet file."""

from __future__ import annotations

import io
import json
from pathlib import Path

import polars as pl

from shoal.errors import InvalidInputError
from shoal.experiments.cells import Cell
from shoal.experiments.records import run_records, smallest_released
from shoal.experiments.run import Run
from shoal.experiments.statistics import regret_intervals
from shoal.experiments.sweep.folder import SweepFolder

COLUMNS = (
    "instance", "policy", "options", "n_users", "n_arms", "min_group_size", "horizon",
    "rewards", "participation", "seed",
)  # fmt: skip
"""The columns that tell one setting from another."""


def cell_records(cell: Cell, run: Run) -> bytes:
    """Return a cell's Parquet file: its setting in every row, so that files can be read alone."""
    content = cell.content | {"options": json.dumps(cell.content["options"], sort_keys=True)}
    frame = run_records(run, cell.first_run).select(
        pl.lit(cell.name).alias("cell"),
        *(pl.lit(content[name], dtype=_kind(content[name])).alias(name) for name in COLUMNS),
        pl.all(),
        pl.lit(run.smallest_group, dtype=pl.Int64).alias("smallest_group"),
        pl.lit(run.withheld, dtype=pl.Int64).alias("withheld"),
        pl.lit(run.seconds).alias("seconds"),
    )
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def read_sweep(folder: str | Path) -> pl.DataFrame:
    """Return the records of all cells that are done, sorted by setting, run and round.

    The columns are in the reference of files. ``seconds`` is the only one that differs when
    the same sweep is run again.
    """
    place = SweepFolder(Path(folder))
    place.configuration()
    files = [place.cells / f"{name}.parquet" for name in place.done()]
    if not files:
        raise InvalidInputError(f"{str(folder)!r} must have a finished cell; got none.")
    return pl.read_parquet(files, glob=False).sort(*COLUMNS, "run", "round")


def summarise(records: pl.DataFrame) -> pl.DataFrame:
    """Return for each setting and policy the total regret with its 95 % interval.

    Seeds are replications: runs of all seeds of a setting count together.
    """
    setting = [name for name in COLUMNS if name != "seed"]
    last = records.filter(pl.col("round") == pl.col("horizon"))
    extremes = last.group_by(setting).agg(smallest_released())
    sums = last.unique("cell").group_by(setting).agg(pl.sum("withheld"), pl.sum("seconds"))
    means = regret_intervals(last, by=setting)
    for more in (extremes, sums):
        means = means.join(more, on=setting, maintain_order="left")
    return means


def curves(records: pl.DataFrame) -> pl.DataFrame:
    """Return for each setting, policy and checkpoint the mean regret with its 95 % interval."""
    setting = [name for name in COLUMNS if name != "seed"]
    return regret_intervals(records, by=[*setting, "round"])


def _kind(value: object) -> pl.DataType:
    kinds: dict[type, pl.DataType] = {str: pl.String(), int: pl.Int64(), float: pl.Float64()}
    return kinds[type(value)]
