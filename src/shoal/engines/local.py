"""The default engine: processes on this machine, each with a pipe of its own.

Nothing is shared between workers, no queue and no lock, so that one that is killed at any moment
leaves the others as they are.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any

from shoal.engines.base import MOST_DEATHS, Losses, Result, Task, Tick, Ticks
from shoal.errors import LostTaskError, ShoalError
from shoal.model.numbers import whole_number


class LocalEngine:
    """Run tasks in ``n_workers`` processes; by default as many as there are cores.

    One worker, or one task, needs no second process, unless it must be outlived: with ``lost``
    given, every task runs in a worker.
    """

    def __init__(self, *, n_workers: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.n_workers = whole_number("workers", cores or 1 if n_workers is None else n_workers)

    def capacity(self) -> int:
        """Return how many tasks run at a time."""
        return self.n_workers

    def run(
        self,
        work: Callable[[Task, Tick], Result],
        tasks: Sequence[Task],
        *,
        tick: Tick | None = None,
        lost: Callable[[int, LostTaskError], Result] | None = None,
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield (index, result) as the tasks finish."""
        tick = tick or (lambda done: None)
        n_workers = min(self.n_workers, len(tasks))
        if n_workers > 1 or (n_workers == 1 and lost):
            yield from _run(work, tasks, n_workers, tick, Losses(tasks, lost))
            return
        for index, task in enumerate(tasks):
            yield index, work(task, tick)


class _Worker:
    """A process, the end of its pipe that is ours, and what it is at."""

    def __init__(self, work: Callable[[Task, Tick], Result]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        # The child inherits the mask: Ctrl-C is for the engine alone, which then ends its workers.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.started = False
        self.index: int | None = None
        self.ticked = 0

    def give(self, index: int, task: object) -> None:
        self.index, self.ticked = index, 0
        with suppress(OSError):  # it has just died: the pipe's end says so
            self.pipe.send(task)

    def end(self) -> None:
        """Kill it: an idle worker has nothing to save, and takes long to end by itself."""
        self.pipe.close()
        self.process.kill()
        self.process.join()


def _run(
    work: Callable[[Task, Tick], Result],
    tasks: Sequence[Task],
    n_workers: int,
    tick: Tick,
    losses: Losses[Result],
) -> Generator[tuple[int, Result], None, None]:
    waiting = deque(range(len(tasks)))
    workers: list[_Worker] = []
    stillborn = 0
    try:
        while waiting or any(worker.index is not None for worker in workers):
            busy = sum(worker.index is not None for worker in workers)
            while len(workers) < min(n_workers, busy + len(waiting)):
                workers.append(_Worker(work))
            heard = wait([worker.pipe for worker in workers])
            for worker in [worker for worker in workers if worker.pipe in heard]:
                kind, value = _hear(worker)
                if kind == "tick":
                    worker.ticked += value
                    tick(value)
                    continue
                index, worker.index = worker.index, None
                if kind == "dead":
                    worker.end()
                    workers.remove(worker)
                    stillborn = 0 if worker.started else stillborn + 1
                    _check_start(worker, stillborn)
                    if index is not None:
                        tick(-worker.ticked)
                        given_up = losses.count(index, value)
                        if not given_up:
                            waiting.appendleft(index)
                        yield from ((index, result) for result in given_up)
                    continue
                worker.started = True
                if waiting:
                    following = waiting.popleft()
                    worker.give(following, tasks[following])
                if kind == "error":
                    raise value
                if index is not None:
                    yield index, value
    finally:
        while workers:
            try:
                workers[-1].end()
                workers.pop()
            except KeyboardInterrupt:  # a second one, while the first is obeyed
                continue


def _hear(worker: _Worker) -> tuple[str, Any]:
    """Return what a worker says, or that it is dead, which the end of its pipe tells."""
    try:
        kind, value = worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        code = worker.process.exitcode or 0
        return "dead", f"signal {-code}" if code < 0 else f"exit code {code}"
    return kind, value


def _check_start(worker: _Worker, stillborn: int) -> None:
    """Refuse to start workers over and over that can't start."""
    if not worker.started and (worker.process.exitcode or 0) >= 0:
        raise ShoalError(
            "a worker process could not start; a script that starts workers must do so under "
            "`if __name__ == '__main__':`, or run with one worker."
        )
    if stillborn >= MOST_DEATHS:
        raise ShoalError(f"{stillborn} worker processes were killed before they could start.")


def _serve(pipe: Connection, work: Callable[[Task, Tick], Result]) -> None:
    """Work on one task after another, until the pipe ends."""
    Thread(target=_follow_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        pipe.send(("ready", None))
        while True:
            task = pipe.recv()
            ticks = Ticks(lambda done: pipe.send(("tick", done)))
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
    except Exception as error:  # pickle raises whatever it likes
        pipe.send(("error", ShoalError(f"a worker's result must be sendable; got: {error}.")))


def _follow_parent() -> None:
    """Die when the parent is killed: nobody waits for the results any more."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
