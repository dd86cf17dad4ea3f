"""The records of a comparison: curves as a table, their summary, the whole configuration."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal import __version__
from shoal.errors import InvalidInputError, ShoalError
from shoal.experiments.cells import Cell
from shoal.experiments.run import Run
from shoal.experiments.statistics import regret_intervals


@dataclass(frozen=True, eq=False)
class Comparison:
    """The records of a comparison.

    Attributes
    ----------
    records
        One row per instance class, policy, run and checkpoint, with the cumulative regret.
    cells
        One row per instance class and policy: smallest group, withheld totals, speed.
    config
        Everything needed to run it again.
    """

    records: pl.DataFrame
    cells: pl.DataFrame
    config: Mapping[str, Any]

    @classmethod
    def from_runs(
        cls, cells: Sequence[Cell], runs: Sequence[Run], config: Mapping[str, Any]
    ) -> Comparison:
        """Collect the runs of cells."""
        records, rows = [], []
        for cell, run in zip(cells, runs, strict=True):
            names = {"instance": cell.setting.instance, "policy": run.policy}
            labels = [pl.lit(value).alias(name) for name, value in names.items()]
            records.append(run_records(run, cell.first_run).select(*labels, pl.all()))
            rows.append(
                {
                    **names,
                    "smallest_group": run.smallest_group,
                    "withheld": run.withheld,
                    "user_rounds": run.problem.n_users * int(run.rounds[-1]),
                    "seconds": run.seconds,
                }
            )
        merged = (
            pl.DataFrame(rows)
            .group_by("instance", "policy", maintain_order=True)
            .agg(smallest_released(), pl.sum("withheld", "user_rounds", "seconds"))
        )
        full = {**config, "shoal": __version__, "python": platform.python_version()}
        return cls(pl.concat(records), merged, full)

    @classmethod
    def read(cls, folder: Path) -> Comparison:
        """Read what ``write`` wrote."""
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            records = pl.read_parquet(folder / "records.parquet")
            summary = pl.read_csv(folder / "summary.csv")
            names = ["smallest_group", "withheld", "user_rounds", "seconds"]
            return cls(records, summary.select("instance", "policy", *names), config)
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            raise InvalidInputError(
                f"{str(folder)!r} must hold the records of a comparison; got: {error}."
            ) from None

    def curves(self) -> pl.DataFrame:
        """Return the mean over runs and its 95 % interval at every checkpoint."""
        return regret_intervals(self.records, by=["instance", "policy", "round"])

    def summary(self) -> pl.DataFrame:
        """Return the total regret of each policy with its 95 % interval, and what it took."""
        last = self.curves().filter(pl.col("round") == self.config["horizon"])
        return last.drop("round").join(self.cells, on=["instance", "policy"], maintain_order="left")

    def write(self, folder: Path) -> None:
        """Write records.parquet, summary.csv and config.json into a new folder."""
        with new_folder(folder) as part:
            self.fill(part)

    def fill(self, folder: Path) -> None:
        """Write the same files into an existing folder."""
        text = json.dumps(self.config, indent=2, sort_keys=True)
        self.records.write_parquet(folder / "records.parquet", metadata={"shoal": text})
        self.summary().write_csv(folder / "summary.csv")
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")


def run_records(run: Run, first_run: int) -> pl.DataFrame:
    """Return a row per run and checkpoint with the cumulative regret; a run is a shard."""
    n_runs, n_checkpoints = run.curves.shape
    return pl.DataFrame(
        {
            "run": np.repeat(np.arange(first_run, first_run + n_runs), n_checkpoints),
            "round": np.tile(run.rounds, n_runs),
            "regret": run.curves.ravel(),
        }
    )


def check_new(path: Path, kind: str) -> None:
    """Refuse, before the work starts, a path for results that exists or can't be written."""
    if path.exists():
        raise InvalidInputError(f"out must be a new {kind}; {str(path)!r} exists.")
    parent = next(p for p in path.absolute().parents if p.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InvalidInputError(f"out must lie in a folder that can be written; got {str(path)!r}.")


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to fill, renamed to ``folder`` at the end and removed after a failure.

    An existing folder is never overwritten.
    """
    part = folder.with_name(f".{folder.name}.part")
    try:
        if folder.exists():
            raise InvalidInputError(f"out must be a new folder; {str(folder)!r} exists.")
        shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
        part.mkdir(parents=True)
        yield part
        part.rename(folder)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise ShoalError(
            f"out must be a folder that can be made and filled; got {str(folder)!r}: {reason}."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def smallest_released() -> pl.Expr:
    """Return the smallest group over cells, 0 if none of them released anything."""
    group = pl.col("smallest_group")
    return group.filter(group > 0).min().fill_null(0)
