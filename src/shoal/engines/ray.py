"""The distributed engine: tasks on all machines of a Ray cluster.

Every worker is an actor that does one job after another, step by step. Ray moves tasks and results;
what a lost worker costs, and when a task is given up, follows the same rule as on one machine.

Work in ``Steps`` leaves its state after every step, in the object store of the actor's node,
outside its process. Where the actor dies, a new one takes the state and does the interrupted step
again; where the whole node dies, and the state with it, the job starts over. Any other function is
a job without a state, which starts over. Either way the result is the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from shoal.engines.base import (
    Engine,
    Result,
    Results,
    Steps,
    Task,
    TaskBatch,
    TickBuffer,
    WorkFunction,
)
from shoal.engines.cluster import check_address, check_version, connect
from shoal.errors import ShoalError
from shoal.model import State
from shoal.model.numbers import whole_number

if TYPE_CHECKING:
    from ray import ObjectRef


class RayEngine(Engine):
    """Run tasks on a Ray cluster.

    Parameters
    ----------
    address
        HOST:PORT of a cluster that this machine is a node of, or "auto" for the one that runs
        here. Without it, a cluster of this machine alone is started, for this process.
    n_workers
        Tasks at a time, at most; by default as many as the cluster has cores.
    """

    def __init__(self, *, address: str | None = None, n_workers: int | None = None) -> None:
        self.address = None if address is None else check_address(address)
        self.n_workers = None if n_workers is None else whole_number("workers", n_workers)

    def capacity(self) -> int:
        """Return how many tasks run at a time, once the cluster is joined or started."""
        connect(address=self.address, n_workers=self.n_workers)

        import ray

        return self.n_workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

    def _run(self, batch: TaskBatch[Task, Result]) -> Results[Result]:
        self.capacity()  # connects

        import ray

        try:
            yield from _run_in_actors(batch, self.capacity)
        except ray.exceptions.RayTaskError as error:
            raise _cause(error) from None


@dataclass(eq=False)
class _RunningJob:
    """A job's actor, its last state and the work done until then."""

    index: int
    actor: Any = None
    state: ObjectRef[Any] | None = None
    done: int = 0


def _run_in_actors(batch: TaskBatch[Task, Result], capacity: Callable[[], int]) -> Results[Result]:
    """Yield (index, result) as jobs finish; ``capacity`` changes where nodes come and go."""
    import ray

    make_actor: Any = ray.remote(num_cpus=1, max_restarts=0)(_JobActor)
    waiting = deque(_RunningJob(index) for index in range(len(batch.tasks)))
    running: dict[ObjectRef[Any], tuple[_RunningJob, ObjectRef[Any]]] = {}
    idle: list[Any] = []

    def submit(job: _RunningJob, method: Any, *arguments: Any) -> None:
        amount, state = method.options(num_returns=2).remote(*arguments)
        running[amount] = job, state

    def begin_jobs() -> None:
        while waiting and len(running) < capacity():
            job = waiting.popleft()
            job.actor = idle.pop() if idle else make_actor.remote()
            task = batch.tasks[job.index]
            submit(job, job.actor.begin, version("shoal"), batch.work, task, job.state)
        while idle:  # an actor that waits for a core of this one may now have it
            ray.kill(idle.pop())

    try:
        begin_jobs()
        while running:
            (ready,), _ = ray.wait(list(running))
            job, state = running.pop(ready)
            try:
                amount = ray.get(ready)
                results = [] if amount else [ray.get(state)]
            except ray.exceptions.RayError as error:
                ray.kill(job.actor)
                if _is_lost(error):  # the node has died, and the state with it
                    job.state = None
                elif isinstance(error, ray.exceptions.RayTaskError):
                    raise
                if job.state is None:
                    batch.tick(-job.done)
                    job.done = 0
                results = batch.count_death(job.index, type(error).__name__)
                if not results:
                    waiting.appendleft(job)
            else:
                if amount:
                    batch.tick(amount)
                    job.done += amount
                    if isinstance(batch.work, Steps):
                        job.state = state
                        batch.reset_deaths(job.index)
                    submit(job, job.actor.step)
                else:
                    idle.append(job.actor)
            begin_jobs()  # before somebody takes the result, which may last
            yield from ((job.index, result) for result in results)
    finally:
        for job, _ in running.values():
            ray.kill(job.actor)


class _JobActor:
    """An actor with one job at a time."""

    def begin(
        self,
        expected_version: str,
        work: WorkFunction[Any, Any],
        task: Any,
        state: State | None,
    ) -> tuple[int, Any]:
        """Start a job, or resume it at ``state``, and do one step."""
        check_version(expected_version)
        start: Callable[[Any], Any] = (
            work.start if isinstance(work, Steps) else partial(_FunctionJob, work)
        )
        self._job = start(task)
        if state is not None:
            self._job.restore(state)
        return self.step()

    def step(self) -> tuple[int, Any]:
        """Do one step; return its amount and the state after it, or 0 and the result."""
        done = self._job.step()
        return done, self._job.state() if done else self._job.result()


class _FunctionJob:
    """A function as a job without a state: it runs in a thread, and a step ends where it ticks."""

    def __init__(self, work: WorkFunction[Any, Any], task: Any) -> None:
        self._ticks = SimpleQueue[int]()
        self._future = ThreadPoolExecutor(1).submit(self._do, work, task)

    def _do(self, work: WorkFunction[Any, Any], task: Any) -> Any:
        ticks = TickBuffer(self._ticks.put)
        try:
            return work(task, ticks)
        finally:
            ticks.flush()
            self._ticks.put(0)

    def step(self) -> int:
        return self._ticks.get()

    def state(self) -> None:
        return None

    def result(self) -> Any:
        return self._future.result()


def _cause(error: Any) -> Exception:
    """Return what the task raised, without Ray's wrapping."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, ModuleNotFoundError):
        return ShoalError(f"the same code must be on all nodes of the cluster; got: {cause}.")
    return cause if isinstance(cause, Exception) else ShoalError(str(error))


def _is_lost(error: Exception) -> bool:
    import ray

    return isinstance(getattr(error, "cause", None) or error, ray.exceptions.ObjectLostError)
