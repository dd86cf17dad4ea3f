"""The interface of an engine: run independent tasks, give the results back as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

Tick = Callable[[int], None]
"""Called with the amount of work just done, from whichever process does it."""

Task = TypeVar("Task")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs ``work(task, tick)`` for every task.

    What a task gives may depend on the task alone, never on the engine, the number of workers
    or the order: that is what makes results the same bytes everywhere.
    """

    def run(
        self,
        work: Callable[[Task, Tick], Result],
        tasks: Sequence[Task],
        *,
        tick: Tick | None = None,
    ) -> Iterator[tuple[int, Result]]:
        """Yield (index of the task, result) as the tasks finish."""
        ...
