"""The distributed engine: tasks on all machines of a Ray cluster.

Ray moves tasks and results; what a lost worker costs, and when a task is given up, follows the
same rule as on one machine. Jobs in steps live in actors and leave their state after every step, in
the object store of the actor's node, outside its process. Where the actor dies, a new one takes the
state and does the interrupted step again; where the whole node dies, and the state with it, the job
starts over. Either way the result is the same.
"""

from __future__ import annotations

from collections import defaultdict, deque
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from time import monotonic
from typing import TYPE_CHECKING, Any

from shoal.engines.base import (
    SECONDS_BETWEEN_TICKS,
    Engine,
    Job,
    Result,
    Results,
    Steps,
    Task,
    TaskBatch,
    Tick,
    TickBuffer,
    WorkFunction,
)
from shoal.engines.cluster import check_address, check_version, connect
from shoal.errors import ShoalError
from shoal.model import State
from shoal.model.numbers import whole_number

if TYPE_CHECKING:
    from ray import ObjectRef

Attempt = tuple[int, int]  # the index of a task, and how often it was tried before

TASKS_PER_CORE = 4
"""Tasks handed to Ray ahead of time, so that no core waits for the next one."""


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

    def connect(self) -> None:
        """Join or start the cluster now; ``run`` does so by itself."""
        connect(address=self.address, n_workers=self.n_workers)

    def capacity(self) -> int:
        """Return how many tasks run at a time."""
        self.connect()
        return self.n_workers or _cores()

    def _run(self, batch: TaskBatch[Task, Result]) -> Results[Result]:
        n_tasks = self.capacity()  # connects

        import ray

        try:
            if isinstance(batch.work, Steps):
                yield from run_in_actors(batch, n_actors=n_tasks)
            else:
                yield from self._run_tasks(batch)
        except ray.exceptions.RayTaskError as error:
            raise _cause(error) from None

    def _run_tasks(self, batch: TaskBatch[Task, Result]) -> Results[Result]:
        import ray

        remote: Any = ray.remote(num_cpus=1, max_retries=0)(_work)
        board = _TickBoard(batch.tick) if batch.wants_ticks else None
        waiting = deque((index, 0) for index in range(len(batch.tasks)))
        running: dict[ObjectRef[Any], Attempt] = {}
        try:
            while waiting or running:
                most_running = self.n_workers or TASKS_PER_CORE * _cores()
                while waiting and len(running) < most_running:
                    attempt = waiting.popleft()
                    actor = board.actor if board else None
                    task = batch.tasks[attempt[0]]
                    ref = remote.remote(batch.work, task, version("shoal"), actor, attempt)
                    running[ref] = attempt
                ready, _ = ray.wait(list(running), timeout=SECONDS_BETWEEN_TICKS)
                if board:
                    board.read()
                for ref in ready:
                    attempt = running.pop(ref)
                    index, number = attempt
                    try:
                        result, ticked = ray.get(ref)
                    except ray.exceptions.RayTaskError:
                        raise
                    except ray.exceptions.RayError as error:
                        if board:
                            board.finish(attempt, 0)
                        replacement = batch.count_death(index, type(error).__name__)
                        if not replacement:
                            waiting.appendleft((index, number + 1))
                        yield from ((index, result) for result in replacement)
                        continue
                    if board:
                        board.finish(attempt, ticked)
                    yield index, result
        finally:
            for ref in running:
                ray.cancel(ref, force=True)
            if board:
                ray.kill(board.actor)


def _cores() -> int:
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _cause(error: Any) -> Exception:
    """Return what the task raised, without Ray's wrapping."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, ModuleNotFoundError):
        return ShoalError(f"the same code must be on all nodes of the cluster; got: {cause}.")
    return cause if isinstance(cause, Exception) else ShoalError(str(error))


def _work(
    work: WorkFunction[Task, Result],
    task: Task,
    expected_version: str,
    actor: Any,
    attempt: Attempt,
) -> tuple[Result, int]:
    """Do a task on a node of the cluster; return its result and its ticks."""
    check_version(expected_version)
    ticks = TickBuffer(lambda done: None if actor is None else actor.add.remote(attempt, done))
    return work(task, ticks), ticks.total


class _TickActor:
    """An actor with the ticks that workers have sent and the engine has not read."""

    def __init__(self) -> None:
        self._ticks = defaultdict[Attempt, int](int)

    def add(self, attempt: Attempt, done: int) -> None:
        self._ticks[attempt] += done

    def take(self) -> dict[Attempt, int]:
        ticks, self._ticks = dict(self._ticks), defaultdict(int)
        return ticks


class _TickBoard:
    """Read ticks from the actor, and keep count of them by attempt."""

    def __init__(self, tick: Tick) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = ray.get_runtime_context().get_node_id()
        self.actor: Any = (
            ray.remote(num_cpus=0, max_restarts=-1)(_TickActor)
            .options(scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False))
            .remote()
        )
        self._tick = tick
        self._ticked = defaultdict[Attempt, int](int)
        self._finished = set[Attempt]()
        self._last = monotonic()

    def read(self) -> None:
        """Pass on what is new. Where progress can't be read, the work continues without."""
        import ray

        if monotonic() - self._last < SECONDS_BETWEEN_TICKS:
            return
        self._last = monotonic()
        with suppress(ray.exceptions.RayError):
            for attempt, done in ray.get(self.actor.take.remote(), timeout=5.0).items():
                if attempt not in self._finished:
                    self._ticked[attempt] += done
                    self._tick(done)

    def finish(self, attempt: Attempt, ticked: int) -> None:
        """Tick what an attempt has done and not sent; what a lost one sent is taken back."""
        self._finished.add(attempt)
        missing = ticked - self._ticked.pop(attempt, 0)
        if missing:
            self._tick(missing)


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
