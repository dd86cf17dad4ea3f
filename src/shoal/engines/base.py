"""The interface of an engine: run independent tasks, give the results back as they finish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from time import monotonic
from typing import Generic, Protocol, TypeVar

from shoal.errors import LostTaskError

Tick = Callable[[int], None]
"""Called with the amount of work just done; below 0 where a worker died and it is lost again."""

Task = TypeVar("Task")
Result = TypeVar("Result")

MOST_DEATHS = 3
"""A task that has killed this many workers is given up."""

SECONDS_BETWEEN_TICKS = 0.2
"""More often nobody looks, and a worker's word costs the others time."""


class Engine(Protocol):
    """Runs ``work(task, tick)`` for every task.

    What a task gives may depend on the task alone, never on the engine, the number of workers
    or the order: that is what makes results the same bytes everywhere.
    """

    def capacity(self) -> int:
        """Return how many tasks run at a time."""
        ...

    def run(
        self,
        work: Callable[[Task, Tick], Result],
        tasks: Sequence[Task],
        *,
        tick: Tick | None = None,
        lost: Callable[[int, LostTaskError], Result] | None = None,
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield (index of the task, result) as the tasks finish; closed early, stop all work.

        What ``work`` raises is raised here. A worker that dies costs only the task that it was
        at, which is done again. A task that kills its workers time after time is given up:
        ``lost`` says what stands for its result; without it, the error is raised.
        """
        ...


class Losses(Generic[Result]):
    """Count the workers that each task has killed, and give up where there are too many."""

    def __init__(
        self,
        tasks: Sequence[object],
        lost: Callable[[int, LostTaskError], Result] | None,
    ) -> None:
        self._tasks = tasks
        self._lost = lost
        self._deaths = Counter[int]()

    def count(self, index: int, reason: str) -> list[Result]:
        """Return what stands for a lost task's result; nothing while it is worth another try."""
        self._deaths[index] += 1
        if self._deaths[index] < MOST_DEATHS:
            return []
        error = LostTaskError(
            f"task {index} killed its worker {MOST_DEATHS} times ({reason}) and was given up: "
            f"{self._tasks[index]}."
        )
        if self._lost is None:
            raise error
        return [self._lost(index, error)]

    def forget(self, index: int) -> None:
        """Count no longer what a task has killed: it got on since."""
        del self._deaths[index]


class Ticks:
    """Gather a task's ticks in its worker, and pass them on only now and then."""

    def __init__(self, tell: Tick) -> None:
        self._tell = tell
        self._last = monotonic()
        self._waiting = 0
        self.total = 0

    def __call__(self, done: int) -> None:
        """Count work that is done."""
        self.total += done
        self._waiting += done
        if monotonic() - self._last >= SECONDS_BETWEEN_TICKS:
            self.flush()

    def flush(self) -> None:
        """Pass on what was held back."""
        if self._waiting:
            self._tell(self._waiting)
        self._waiting, self._last = 0, monotonic()
