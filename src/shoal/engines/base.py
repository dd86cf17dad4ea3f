"""The interface of an engine: run independent tasks, return the results as they finish."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from time import monotonic
from typing import Generic, Protocol, TypeAlias, TypeVar

from shoal.errors import LostTaskError
from shoal.model import State

Tick = Callable[[int], None]
"""Called with the amount of work just done; negative where a worker died and its work is lost."""

Task = TypeVar("Task")
Result = TypeVar("Result")
JobResult = TypeVar("JobResult", covariant=True)
WorkFunction: TypeAlias = Callable[[Task, Tick], Result]
Results: TypeAlias = Generator[tuple[int, Result], None, None]

MAX_DEATHS = 3
"""A task that has killed this many workers is given up."""

SECONDS_BETWEEN_TICKS = 0.2
"""Nobody looks more often, and each message from a worker costs time."""


class Engine(ABC):
    """Runs ``work(task, tick)`` for every task.

    A result may depend on the task alone, never on the engine, the number of workers or the
    order: that is what makes results the same bytes everywhere.
    """

    @abstractmethod
    def capacity(self) -> int:
        """Return how many tasks run at a time."""

    def run(
        self,
        work: WorkFunction[Task, Result],
        tasks: Sequence[Task],
        *,
        tick: Tick | None = None,
        lost: Callable[[int, LostTaskError], Result] | None = None,
    ) -> Results[Result]:
        """Yield (index of the task, result) as the tasks finish; closed early, stop all work.

        What ``work`` raises is raised here. A worker that dies costs only its unfinished task,
        which is done again. A task that kills its workers time after time is given up: ``lost``
        returns what replaces its result; without it, the error is raised.
        """
        if tasks:
            yield from self._run(TaskBatch(work, tasks, tick, lost))

    @abstractmethod
    def _run(self, batch: TaskBatch[Task, Result]) -> Results[Result]: ...


class TaskBatch(Generic[Task, Result]):
    """The tasks of a run, and the workers that each has killed."""

    def __init__(
        self,
        work: WorkFunction[Task, Result],
        tasks: Sequence[Task],
        tick: Tick | None,
        lost: Callable[[int, LostTaskError], Result] | None,
    ) -> None:
        self.work, self.tasks = work, tasks
        self.tick: Tick = tick or (lambda done: None)
        self.expects_losses, self._lost = lost is not None, lost
        self._deaths = Counter[int]()

    def count_death(self, index: int, reason: str) -> list[Result]:
        """Return the replacement of a lost task's result; nothing if it is to be tried again."""
        self._deaths[index] += 1
        if self._deaths[index] < MAX_DEATHS:
            return []
        error = LostTaskError(
            f"task {index} killed its worker {MAX_DEATHS} times ({reason}) and was given up: "
            f"{self.tasks[index]}."
        )
        if self._lost is None:
            raise error
        return [self._lost(index, error)]

    def reset_deaths(self, index: int) -> None:
        """Start to count again: the task has made progress."""
        del self._deaths[index]


class TickBuffer:
    """Gather a task's ticks in its worker, and pass them on only now and then."""

    def __init__(self, send: Tick) -> None:
        self._send = send
        self._last = monotonic()
        self._waiting = 0

    def __call__(self, done: int) -> None:
        """Count work that is done."""
        self._waiting += done
        if monotonic() - self._last >= SECONDS_BETWEEN_TICKS:
            self.flush()

    def flush(self) -> None:
        """Pass on what was held back."""
        if self._waiting:
            self._send(self._waiting)
        self._waiting, self._last = 0, monotonic()


class Job(Protocol[JobResult]):
    """A started task, whose result must not depend on where it was interrupted."""

    def step(self) -> int:
        """Do the next part and return its amount, or 0 where nothing is left."""

    def state(self) -> State:
        """Return everything that changes while this runs."""

    def restore(self, state: State) -> None:
        """Continue from ``state``."""

    def result(self) -> JobResult:
        """Return the result of the finished job."""


class Steps(Generic[Task, JobResult]):
    """Work in steps: ``start(task)`` makes the job that is then done step by step.

    The distributed engine keeps a job's state between the steps, so that a worker that dies costs
    one step and not the whole task.
    """

    def __init__(self, start: Callable[[Task], Job[JobResult]]) -> None:
        self.start = start

    def __call__(self, task: Task, tick: Tick) -> JobResult:
        """Do a task from beginning to end."""
        job = self.start(task)
        while done := job.step():
            tick(done)
        return job.result()
