"""Running a sweep: only the missing cells, each written as soon as it is finished."""

import os
import platform
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import current_thread, main_thread

from shoal.engines import Engine, Tick
from shoal.errors import InvalidInputError, ShoalError
from shoal.experiments.cells import Cell, ProgressCallback, choose_engine
from shoal.experiments.record import Run
from shoal.experiments.sweep.configuration import Configuration, differences
from shoal.experiments.sweep.folder import SweepFolder, write_result
from shoal.experiments.sweep.results import cell_records
from shoal.model.numbers import as_path, function_or_none, shortened
from shoal.policies.own import own_place

SECONDS_BETWEEN_WRITES = 1.0


@dataclass(frozen=True)
class SweepSummary:
    """Numbers of cells: in all, done before, copied from another folder, done now, and failed."""

    total: int
    before: int
    taken: int
    done: int
    failed: int


def sweep(
    configuration: Configuration,
    out: str | Path,
    *,
    new: str | Path | None = None,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
) -> SweepSummary:
    """Play every cell of the grid that is not in ``out`` yet.

    Parameters
    ----------
    out
        The sweep's folder, new or begun before with the same configuration.
    new
        Another folder, for a configuration that has changed since ``out`` was begun; the cells
        that both have are copied.
    progress
        Called with (what has just finished or "", work done, work in all).
    """
    if not isinstance(configuration, Configuration):
        raise InvalidInputError(
            "configuration must be a Configuration, such as read_configuration(path) returns; "
            f"got {shortened(configuration)}."
        )
    function_or_none("progress", progress, "finished", "done", "total")
    folder, source = SweepFolder(as_path("out", out, "folder")), None
    if configuration.tuned is None and folder.exists:
        configuration = replace(configuration, tuned=folder.configuration()["tuned"])
    content = configuration.as_json()
    if new is not None:
        folder, source = SweepFolder(as_path("new", new, "folder")), folder
        if source.configuration() == content:
            raise InvalidInputError(
                f"new must be left out: {str(out)!r} was begun with this configuration."
            )
    cells = configuration.cells()
    engine = choose_engine(cells, engine)
    if not folder.done().issuperset(cell.name for cell in cells):
        engine.capacity()  # a cluster that can't be joined leaves no folder behind
    with folder.lock():
        if not folder.exists:
            write_result(folder.path / "sweep.json", content)
        elif changed := differences(folder.configuration(), content):
            raise InvalidInputError(
                f"the configuration must be the one that {str(folder.path)!r} was begun with; "
                f"{changed}. To run the changed one too, name another folder for it: new=FOLDER "
                "(--new FOLDER)."
            )
        try:
            return _fill(folder, source, cells, engine, progress)
        finally:
            folder.remove_progress()


def _fill(
    folder: SweepFolder,
    source: SweepFolder | None,
    cells: list[Cell],
    engine: Engine,
    progress: ProgressCallback | None,
) -> SweepSummary:
    finished = folder.done()
    missing = [cell for cell in cells if cell.name not in finished]
    before = len(cells) - len(missing)
    if source:
        missing = [cell for cell in missing if not folder.copy_cell(cell.name, source)]
    taken = len(cells) - before - len(missing)
    report = _ProgressFile(folder, cells, missing, engine.capacity() if missing else 0, progress)
    done = failed = 0
    for cell in missing:
        (folder.failed / f"{cell.name}.json").unlink(missing_ok=True)  # it is tried again
    work = engine.run(play, missing, tick=report.tick, lost=lambda index, error: str(error))
    with closing(work) as results:
        for index, result in results:
            cell = missing[index]
            if isinstance(result, Run):
                with defer_interrupt():
                    write_result(folder.cells / f"{cell.name}.parquet", cell_records(cell, result))
                done += 1
            else:
                failed += 1
                reason = {"reason": result, "cell": cell.content}
                write_result(folder.failed / f"{cell.name}.json", reason)
            report.finish(cell)
    return SweepSummary(len(cells), before, taken, done, failed)


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Handle Ctrl-C only after the block has ended.

    Polars raises it and passes it on as well: the second one would interrupt the clean-up.
    """
    if current_thread() is not main_thread():
        yield
        return
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        raise KeyboardInterrupt


def play(cell: Cell, tick: Tick) -> Run | str:
    """Play a cell in a worker; return its run, or why it failed."""
    users = cell.setting.n_users * cell.n_runs
    try:
        return cell.play(lambda rounds: tick(rounds * users))
    except Exception as error:
        if isinstance(error, ShoalError):
            return str(error)
        place = own_place(error)
        return f"{type(error).__name__}: {error}" + (f" ({place})" if place else "")


class _ProgressFile:
    """Passes progress on, and writes it now and then for ``shoal status``."""

    def __init__(
        self,
        folder: SweepFolder,
        cells: list[Cell],
        missing: list[Cell],
        capacity: int,
        progress: ProgressCallback | None,
    ) -> None:
        self._folder, self._capacity, self._left = folder, capacity, len(missing)
        self._progress = progress or (lambda finished, done, total: None)
        self._total = sum(cell.user_rounds for cell in cells)
        self._before = self._total - sum(cell.user_rounds for cell in missing)
        self._done, self._start = 0, time.time()
        self._write()

    def tick(self, done: int) -> None:
        self._done += done
        self._report("")

    def finish(self, cell: Cell) -> None:
        self._left -= 1
        self._report(str(cell))

    def _report(self, finished: str) -> None:
        self._progress(finished, self._before + self._done, self._total)
        if time.monotonic() - self._last > SECONDS_BETWEEN_WRITES:
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
