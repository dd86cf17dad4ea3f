"""Work in steps on a Ray cluster: jobs live in actors and leave their state after every step.

The state lies in the object store of the actor's node, outside the actor's process. Where the
actor dies, a new one takes the state and does the interrupted step again; where the whole node
dies, and the state with it, the job starts over. Either way the result is the same.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shoal.engines.base import Job, Results, Steps, TaskBatch
from shoal.engines.cluster import check_version
from shoal.model import State

if TYPE_CHECKING:
    from ray import ObjectRef


class JobActor:
    """An actor with one job at a time."""

    def __init__(self, work: Steps[Any, Any], expected_version: str) -> None:
        check_version(expected_version)
        self._start = work.start

    def begin(self, task: Any, state: State | None) -> tuple[int, Any]:
        """Start a job, or resume it at ``state``, and do one step."""
        self._job: Job[Any] = self._start(task)
        if state is not None:
            self._job.restore(state)
        return self.step()

    def step(self) -> tuple[int, Any]:
        """Do one step; return its amount and the state after it, or 0 and the result."""
        done = self._job.step()
        return done, self._job.state() if done else self._job.result()


@dataclass(eq=False)
class RunningJob:
    """A job's actor, its last state and the work done until then."""

    actor: Any
    index: int
    state: ObjectRef[Any] | None = None
    done: int = 0


def run_in_actors(batch: TaskBatch[Any, Any], *, n_actors: int) -> Results[Any]:
    """Yield (index, result) as the jobs of work in ``Steps`` finish, ``n_actors`` at a time."""
    import ray

    work, tasks, tick = batch.work, batch.tasks, batch.tick

    make: Any = ray.remote(num_cpus=1, max_restarts=0)(JobActor)
    waiting = deque(range(len(tasks)))
    running: dict[ObjectRef[Any], tuple[RunningJob, ObjectRef[Any]]] = {}

    def submit(job: RunningJob, *, begin: bool) -> None:
        method = job.actor.begin if begin else job.actor.step
        arguments = (tasks[job.index], job.state) if begin else ()
        amount, state = method.options(num_returns=2).remote(*arguments)
        running[amount] = job, state

    def start_next(actor: Any) -> None:
        if waiting:
            submit(RunningJob(actor, waiting.popleft()), begin=True)
        else:
            ray.kill(actor)

    try:
        for _ in range(min(n_actors, len(tasks))):
            start_next(make.remote(work, version("shoal")))
        while running:
            (ready,), _ = ray.wait(list(running))
            job, state = running.pop(ready)
            try:
                amount = ray.get(ready)
                result = None if amount else ray.get(state)
            except ray.exceptions.RayError as error:
                if _is_lost(error):  # the node has died, and the state with it
                    tick(-job.done)
                    job.state, job.done = None, 0
                elif isinstance(error, ray.exceptions.RayTaskError):
                    raise
                ray.kill(job.actor)
                job.actor = make.remote(work, version("shoal"))
                replacement = batch.count_death(job.index, type(error).__name__)
                if replacement:
                    yield job.index, replacement[0]
                    start_next(job.actor)
                else:
                    submit(job, begin=True)
                continue
            if amount:
                batch.reset_deaths(job.index)
                job.state, job.done = state, job.done + amount
                tick(amount)
                submit(job, begin=False)
            else:
                yield job.index, result
                start_next(job.actor)
    finally:
        for job, _ in running.values():
            ray.kill(job.actor)


def _is_lost(error: Exception) -> bool:
    import ray

    return isinstance(getattr(error, "cause", None) or error, ray.exceptions.ObjectLostError)
