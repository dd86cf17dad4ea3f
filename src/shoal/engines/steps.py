"""Work in steps, which can be taken up where it was.

Any engine runs it from the beginning to the end. The distributed one keeps its state between the
steps, so that a worker that dies costs one step and not the whole task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from shoal.engines.base import Task, Tick
from shoal.model import State

Outcome = TypeVar("Outcome", covariant=True)


class Job(Protocol[Outcome]):
    """A task under way. What it gives must not depend on where it was interrupted."""

    def step(self) -> int:
        """Do the next part and return its amount, or 0 where nothing is left."""
        ...

    def state(self) -> State:
        """Return everything that changes while this runs."""
        ...

    def restore(self, state: State) -> None:
        """Go on from ``state``."""
        ...

    def result(self) -> Outcome:
        """Return what the finished job gives."""
        ...


class Steps(Generic[Task, Outcome]):
    """Work for an engine: ``start(task)`` makes the job that is then done step by step."""

    def __init__(self, start: Callable[[Task], Job[Outcome]]) -> None:
        self.start = start

    def __call__(self, task: Task, tick: Tick) -> Outcome:
        """Do a task from beginning to end."""
        job = self.start(task)
        while done := job.step():
            tick(done)
        return job.result()
