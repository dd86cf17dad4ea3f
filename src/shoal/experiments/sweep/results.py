"""What a sweep's folder says: its progress, and its records as one frame."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import InvalidInputError
from shoal.experiments.cells import Cell
from shoal.experiments.comparison import run_records, smallest_released
from shoal.experiments.record import Run
from shoal.experiments.setting import Setting
from shoal.experiments.statistics import regret_intervals
from shoal.experiments.sweep.configuration import Configuration
from shoal.experiments.sweep.folder import SweepFolder
from shoal.model.numbers import as_path

_OTHERS = ("instance", "instance_options", "turnover")  # named first, or no part of a sweep
_FIELDS = (field.name for field in fields(Setting) if field.name not in _OTHERS)
COLUMNS = ("instance", "policy", "options", *_FIELDS)
"""The columns that tell one setting from another."""


def cell_records(cell: Cell, run: Run) -> bytes:
    """Return a cell's Parquet file: its setting in every row, so that files can be read alone."""
    content = cell.content | {"options": json.dumps(cell.content["options"], sort_keys=True)}
    before = {"cell": cell.name, **{name: content[name] for name in COLUMNS}}
    after = {
        "smallest_group": run.smallest_group, "withheld": run.withheld, "seconds": run.seconds
    }  # fmt: skip
    frame = pl.DataFrame([before]).join(run_records(run, cell.first_run), how="cross")
    buffer = io.BytesIO()
    frame.join(pl.DataFrame([after]), how="cross").write_parquet(buffer)
    return buffer.getvalue()


def read_sweep(folder: str | Path) -> pl.DataFrame:
    """Return the records of all cells that are done, sorted by setting, run and round.

    The columns are in the reference of files. ``seconds`` is the only one that differs when
    the same sweep is run again.
    """
    place = SweepFolder(as_path("folder", folder, "folder"))
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
    of_cells = pl.col("withheld", "seconds").filter(pl.col("cell").is_first_distinct())
    costs = last.group_by(setting).agg(smallest_released(), of_cells.sum())
    return regret_intervals(last, by=setting).join(costs, on=setting, maintain_order="left")


def curves(records: pl.DataFrame) -> pl.DataFrame:
    """Return for each setting, policy and checkpoint the mean regret with its 95 % interval."""
    setting = [name for name in COLUMNS if name != "seed"]
    return regret_intervals(records, by=[*setting, "round"])


@dataclass(frozen=True)
class SweepStatus:
    """Counts of cells; ``seconds_left`` is None where no sweep runs or it has just begun.

    ``failures`` holds the failed cells by name: what each was, and why it failed.
    """

    total: int
    done: int
    running: int
    failed: int
    waiting: int
    at_work: bool
    seconds_left: float | None
    failures: Mapping[str, dict[str, str]] = field(default_factory=dict)


def status(folder: str | Path) -> SweepStatus:
    """Return the progress of a sweep; it counts as running only while its process lives."""
    files = SweepFolder(as_path("folder", folder, "folder"))
    content = files.configuration()
    try:
        version = content.pop("shoal")
        code = content.pop("code", {})
        cells = Configuration(**content).cells(version=version, code=code)
    except (ArithmeticError, AttributeError, LookupError, TypeError):
        raise InvalidInputError(
            f"{str(folder)!r} must be the folder of a sweep; got a sweep.json of something else."
        ) from None
    names = {cell.name: cell for cell in cells}
    done = len(files.done() & names.keys())
    failures = {name: why for name, why in files.failures().items() if name in names}
    at_work = files.at_work()
    progress = files.progress() if at_work else {}
    unfinished = len(cells) - done - len(failures)
    running = min(int(progress.get("running", 0)), unfinished)
    return SweepStatus(
        total=len(cells),
        done=done,
        running=running,
        failed=len(failures),
        waiting=unfinished - running,
        at_work=at_work,
        seconds_left=_seconds_left(progress),
        failures={
            name: {"cell": str(names[name]), "reason": str(why["reason"])}
            for name, why in failures.items()
        },
    )


def _seconds_left(progress: Mapping[str, Any]) -> float | None:
    """Divide the work that is left by the speed so far."""
    done = progress.get("user_rounds_done", 0)
    if not done:
        return None
    left = progress["user_rounds"] - progress["user_rounds_before"] - done
    return float(max(left, 0) * progress["seconds"] / done)
