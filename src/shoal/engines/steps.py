"""Work in steps, which can be resumed after any of them.

Any engine runs it from the beginning to the end. The distributed one keeps its state between the
steps, so that a worker that dies costs one step and not the whole task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from shoal.engines.base import Task, Tick
from shoal.model import State

JobResult = TypeVar("JobResult", covariant=True)


class Job(Protocol[JobResult]):
    """A started task, whose result must not depend on where it was interrupted."""

    def step(self) -> int:
        """Do the next part and return its amount, or 0 where nothing is left."""
        ...

    def state(self) -> State:
        """Return everything that changes while this runs."""
        ...

    def restore(self, state: State) -> None:
        """Continue from ``state``."""
        ...

    def result(self) -> JobResult:
        """Return the result of the finished job."""
        ...


class Steps(Generic[Task, JobResult]):
    """Work for an engine: ``start(task)`` makes the job that is then done step by step."""

    def __init__(self, start: Callable[[Task], Job[JobResult]]) -> None:
        self.start = start

    def __call__(self, task: Task, tick: Tick) -> JobResult:
        """Do a task from beginning to end."""
        job = self.start(task)
        while done := job.step():
            tick(done)
        return job.result()
