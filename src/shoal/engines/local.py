"""The default engine: a pool of processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.queues import Queue
from queue import Empty
from threading import Event, Thread

from shoal.engines.base import Result, Task, Tick
from shoal.errors import ShoalError
from shoal.model.numbers import whole_number

_ticks: Queue[int] | None = None


class LocalEngine:
    """Run tasks in ``n_workers`` processes; by default as many as there are cores.

    One worker, or one task, needs no second process.
    """

    def __init__(self, *, n_workers: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self.n_workers = whole_number("workers", cores or 1 if n_workers is None else n_workers)

    def run(
        self,
        work: Callable[[Task, Tick], Result],
        tasks: Sequence[Task],
        *,
        tick: Tick | None = None,
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index, result) as the tasks finish."""
        tick = tick or (lambda done: None)
        if min(self.n_workers, len(tasks)) <= 1:
            for index, task in enumerate(tasks):
                yield index, work(task, tick)
            return
        context = multiprocessing.get_context("spawn")
        ticks: Queue[int] = context.Queue()
        finished = Event()
        listener = Thread(target=_listen, args=(ticks, tick, finished), daemon=True)
        listener.start()
        pool = ProcessPoolExecutor(
            min(self.n_workers, len(tasks)), context, initializer=_start, initargs=(ticks,)
        )
        try:
            futures: dict[Future[Result], int] = {
                pool.submit(_work, work, task): index for index, task in enumerate(tasks)
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise ShoalError(
                "a worker process died; a script that starts workers must do so under "
                "`if __name__ == '__main__':`, or run with one worker."
            ) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            finished.set()
            listener.join()
            ticks.close()


def _start(ticks: Queue[int]) -> None:
    global _ticks
    _ticks = ticks


def _work(work: Callable[[Task, Tick], Result], task: Task) -> Result:
    return work(task, _ticks.put if _ticks else lambda done: None)


def _listen(ticks: Queue[int], tick: Tick, finished: Event) -> None:
    """Pass the workers' ticks on, until all is finished and nothing is left."""
    while True:
        try:
            tick(ticks.get(timeout=0.05))
        except Empty:
            if finished.is_set():
                return
