"""The default engine: processes on this machine, each with a pipe of its own.

Nothing is shared between workers, no queue and no lock, so that one that is killed at any moment
leaves the others as they are.
"""

import multiprocessing
import os
import signal
import traceback
from collections import deque
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any

from shoal.engines.base import (
    MAX_DEATHS,
    Engine,
    Result,
    Results,
    Task,
    TaskBatch,
    TickBuffer,
    WorkFunction,
)
from shoal.errors import ShoalError
from shoal.kernels import announce_compilation, on_compile
from shoal.model.numbers import whole_number
from shoal.threads import n_cores


class LocalEngine(Engine):
    """Run tasks in ``n_workers`` processes; by default as many as there are cores.

    One worker, or one task, needs no second process, unless its death must be survived: with
    ``lost``, every task runs in a worker.
    """

    def __init__(self, *, n_workers: int | None = None) -> None:
        self.n_workers = whole_number("n_workers", n_cores() if n_workers is None else n_workers)

    def capacity(self) -> int:
        """Return how many tasks run at a time."""
        return self.n_workers

    def _run(self, batch: TaskBatch[Task, Result]) -> Results[Result]:
        n_workers = min(self.n_workers, len(batch.tasks))
        if n_workers > 1 or batch.expects_losses:
            yield from _run_in_workers(batch, n_workers)
            return
        for index, task in enumerate(batch.tasks):
            yield index, batch.work(task, batch.tick)


class _Worker:
    """A process, the engine's end of its pipe, and the task that it works on."""

    def __init__(self, work: WorkFunction[Task, Result]) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            # A worker that imports a script without the guard: its parent says what to do.
            raise SystemExit(1)
        context = multiprocessing.get_context("spawn")
        self.pipe, child_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(child_end, work), daemon=True)
        # The child inherits the mask: only the engine reacts to Ctrl-C, and then ends its workers.
        # Python's tracker, which the first child would start, unblocks SIGINT once it runs.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        child_end.close()
        self.started = False
        self.index: int | None = None
        self.ticked = 0

    def send(self, index: int, task: object) -> None:
        self.index, self.ticked = index, 0
        with suppress(OSError):  # it has just died, which the end of its pipe will show
            self.pipe.send(task)

    def end(self) -> None:
        """Kill it: an idle worker has nothing to save, and takes long to end by itself."""
        self.pipe.close()
        self.process.kill()
        self.process.join()


def _run_in_workers(batch: TaskBatch[Task, Result], n_workers: int) -> Results[Result]:
    waiting = deque(range(len(batch.tasks)))
    workers: list[_Worker] = []
    n_failed_starts = 0
    try:
        while waiting or any(worker.index is not None for worker in workers):
            n_busy = sum(worker.index is not None for worker in workers)
            while len(workers) < min(n_workers, n_busy + len(waiting)):
                workers.append(_Worker(batch.work))
            ready = wait([worker.pipe for worker in workers])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                kind, value = _receive(worker)
                if kind == "compiling":
                    announce_compilation()
                    continue
                if kind == "tick":
                    worker.ticked += value
                    batch.tick(value)
                    continue
                index, worker.index = worker.index, None
                if kind == "dead":
                    worker.end()
                    workers.remove(worker)
                    n_failed_starts = 0 if worker.started else n_failed_starts + 1
                    _check_start(worker, n_failed_starts, needed=batch.expects_losses)
                    if index is not None:
                        batch.tick(-worker.ticked)
                        replacement = batch.count_death(index, value)
                        if not replacement:
                            waiting.appendleft(index)
                        yield from ((index, result) for result in replacement)
                    continue
                worker.started = True
                if waiting:
                    following = waiting.popleft()
                    worker.send(following, batch.tasks[following])
                if kind == "error":
                    raise value
                if index is not None:
                    yield index, value
    finally:
        while workers:
            try:
                workers[-1].end()
                workers.pop()
            except KeyboardInterrupt:  # a second one, while the first is handled
                continue


def _receive(worker: _Worker) -> tuple[str, Any]:
    """Return a worker's message; "dead" where its pipe has ended."""
    try:
        kind, value = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        code = worker.process.exitcode or 0
        return "dead", f"signal {-code}" if code < 0 else f"exit code {code}"
    return kind, value


def _check_start(worker: _Worker, n_failed_starts: int, *, needed: bool) -> None:
    """Refuse to start workers over and over that can't start; ``needed``: even a single one."""
    if not worker.started and (worker.process.exitcode or 0) >= 0:
        raise ShoalError(
            "a worker process could not start; a script must start workers under "
            "`if __name__ == '__main__':`, a notebook must import what they run from a module"
            + ("." if needed else ", or run with LocalEngine(n_workers=1).")
        )
    if n_failed_starts >= MAX_DEATHS:
        raise ShoalError(f"{n_failed_starts} worker processes were killed before they could start.")


def _serve(pipe: Connection, work: WorkFunction[Task, Result]) -> None:
    """Work on one task after another, until the pipe ends."""
    Thread(target=_exit_with_parent, daemon=True).start()
    with suppress(EOFError, OSError), on_compile(lambda: pipe.send(("compiling", None))):
        pipe.send(("ready", None))
        while True:
            task = pipe.recv()
            ticks = TickBuffer(lambda done: pipe.send(("tick", done)))
            try:
                answer: tuple[str, Any] = "done", work(task, ticks)
            except Exception as error:
                if not isinstance(error, ShoalError):
                    error.add_note(f"In a worker:\n{traceback.format_exc()}")
                answer = "error", error
            ticks.flush()
            _send(pipe, answer)


def _send(pipe: Connection, answer: tuple[str, Any]) -> None:
    try:
        pipe.send(answer)
    except OSError:
        raise
    except Exception as error:  # pickle may raise anything
        pipe.send(("error", ShoalError(f"a worker's result must be sendable; got: {error}.")))


def _exit_with_parent() -> None:
    """Exit when the parent is killed: nobody waits for the results any more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
