"""Running a sweep: only what is missing, each cell kept the moment it is finished."""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from shoal.engines import Engine, LocalEngine, Tick
from shoal.errors import InvalidInputError, LostTaskError, ShoalError
from shoal.experiments.comparison import run_cell
from shoal.experiments.run import Run
from shoal.experiments.sweep.cells import NamedCell, cells_of
from shoal.experiments.sweep.configuration import Configuration, differences
from shoal.experiments.sweep.folder import SweepFolder
from shoal.experiments.sweep.results import cell_records

SECONDS_BETWEEN_NOTES = 1.0


@dataclass(frozen=True)
class Outcome:
    """How many cells there are, were there before, were taken over, done now, and failed."""

    total: int
    before: int
    taken: int
    done: int
    failed: int


@dataclass(frozen=True)
class Failure:
    """Why a cell has no records."""

    reason: str


def sweep(
    configuration: Configuration,
    out: str | Path,
    *,
    new: str | Path | None = None,
    engine: Engine | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Outcome:
    """Play every cell of the grid that ``out`` does not have yet.

    Parameters
    ----------
    out
        The sweep's folder, new or begun before with the same configuration.
    new
        Another folder, for a configuration that has changed since ``out`` was begun; the cells
        that both have are taken over.
    progress
        Called with (what has just finished or "", work done, work in all).
    """
    folder, source = SweepFolder(Path(out)), None
    content = configuration.as_json()
    if new is not None:
        folder, source = SweepFolder(Path(new)), folder
        if source.configuration() == content:
            raise InvalidInputError(
                f"new must be left out: {str(out)!r} was begun with this configuration."
            )
    cells, engine = cells_of(configuration), engine or LocalEngine()
    if not folder.done().issuperset(cell.name for cell in cells):
        engine.capacity()  # a cluster that can't be joined leaves no folder behind
    with folder.lock():
        if folder.exists:
            _check_same(folder, content)
        else:
            folder.write_configuration(content)
        try:
            return _fill(folder, source, cells, engine, progress)
        finally:
            folder.forget_progress()


def _check_same(folder: SweepFolder, content: dict[str, Any]) -> None:
    changed = differences(folder.configuration(), content)
    if changed:
        raise InvalidInputError(
            f"the configuration must be the one that {str(folder.path)!r} was begun with; "
            f"{changed}. Give --new FOLDER to run the new one beside it."
        )


def _fill(
    folder: SweepFolder,
    source: SweepFolder | None,
    cells: list[NamedCell],
    engine: Engine,
    progress: Callable[[str, int, int], None] | None,
) -> Outcome:
    there = folder.done()
    before = sum(cell.name in there for cell in cells)
    missing = [cell for cell in cells if cell.name not in there]
    if source:
        missing = [cell for cell in missing if not folder.take_over(cell.name, source)]
    taken = len(cells) - before - len(missing)
    notes = _Notes(folder, cells, missing, engine.capacity() if missing else 0, progress)
    done = failed = 0

    def lost(index: int, error: LostTaskError) -> Failure:
        return Failure(str(error))

    for cell in missing:
        folder.forget_failure(cell.name)  # it is tried again
    with closing(engine.run(play, missing, tick=notes.tick, lost=lost)) as results:
        for index, result in results:
            cell = missing[index]
            if isinstance(result, Run):
                with _whole():
                    folder.write_cell(cell.name, cell_records(cell, result))
                done += 1
            else:
                failed += 1
                folder.write_failure(cell.name, {"reason": result.reason, "cell": cell.content})
            notes.finish(cell)
    return Outcome(len(cells), before, taken, done, failed)


@contextmanager
def _whole() -> Iterator[None]:
    """Put Ctrl-C off until what is being written is written.

    Polars obeys it and hands it on as well: the second one would hit the clean-up.
    """
    if current_thread() is not main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def play(named: NamedCell, tick: Tick) -> Run | Failure:
    """Play a cell in a worker; what it refuses is a failure of this cell alone."""
    try:
        return run_cell(named.cell, lambda rounds: tick(rounds * named.per_round))
    except ShoalError as error:
        return Failure(str(error))
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


class _Notes:
    """Keep the progress of a running sweep where ``shoal status`` finds it."""

    def __init__(
        self,
        folder: SweepFolder,
        cells: list[NamedCell],
        missing: list[NamedCell],
        capacity: int,
        progress: Callable[[str, int, int], None] | None,
    ) -> None:
        self._folder = folder
        self._progress = progress or (lambda finished, done, total: None)
        self._total = sum(cell.user_rounds for cell in cells)
        self._before = self._total - sum(cell.user_rounds for cell in missing)
        self._left = len(missing)
        self._capacity = capacity
        self._done = 0
        self._start = time.time()
        self._last = 0.0
        self._write()

    def tick(self, done: int) -> None:
        self._done += done
        self._progress("", self._before + self._done, self._total)
        if time.monotonic() - self._last > SECONDS_BETWEEN_NOTES:
            self._write()

    def finish(self, cell: NamedCell) -> None:
        self._left -= 1
        self._progress(str(cell.cell), self._before + self._done, self._total)
        if time.monotonic() - self._last > SECONDS_BETWEEN_NOTES:
            self._write()

    def _write(self) -> None:
        self._last = time.monotonic()
        self._folder.write_progress(
            {
                "pid": os.getpid(),
                "host": platform.node(),
                "started": self._start,
                "running": min(self._capacity, self._left),
                "seconds": time.time() - self._start,
                "user_rounds_before": self._before,
                "user_rounds_done": self._done,
                "user_rounds": self._total,
            }
        )
