"""The distributed engine: tasks on all machines of a Ray cluster.

Ray moves tasks and results; what a lost worker costs, and when a task is given up, follows the
same rule as on one machine.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from importlib.metadata import version
from time import monotonic
from typing import TYPE_CHECKING, Any

from shoal.engines.actors import run_in_actors
from shoal.engines.base import SECONDS_BETWEEN_TICKS, Losses, Result, Task, Tick, Ticks
from shoal.engines.cluster import check_address, check_version, connect
from shoal.engines.steps import Steps
from shoal.errors import LostTaskError, ShoalError
from shoal.model.numbers import whole_number

if TYPE_CHECKING:
    from ray import ObjectRef

Key = tuple[int, int]  # a task and which try at it this is

TASKS_PER_CORE = 4
"""Tasks handed to Ray ahead of time, so that no core waits for the next one."""


class RayEngine:
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

    def run(
        self,
        work: Callable[[Task, Tick], Result],
        tasks: Sequence[Task],
        *,
        tick: Tick | None = None,
        lost: Callable[[int, LostTaskError], Result] | None = None,
    ) -> Generator[tuple[int, Result], None, None]:
        """Yield (index, result) as the tasks finish."""
        if not tasks:
            return
        self.connect()

        import ray

        losses = Losses(tasks, lost)
        if isinstance(work, Steps):
            n_actors, told = self.n_workers or _cores(), tick or (lambda done: None)
            try:
                yield from run_in_actors(work, tasks, n_actors=n_actors, tick=told, losses=losses)
            except ray.exceptions.RayTaskError as error:
                raise _cause(error) from None
            return
        remote: Any = ray.remote(num_cpus=1, max_retries=0)(_work)
        board = _Board(tick) if tick else None
        waiting = deque((index, 0) for index in range(len(tasks)))
        running: dict[ObjectRef[Any], Key] = {}
        try:
            while waiting or running:
                room = self.n_workers or TASKS_PER_CORE * _cores()
                while waiting and len(running) < room:
                    key = waiting.popleft()
                    actor = board.actor if board else None
                    ref = remote.remote(work, tasks[key[0]], version("shoal"), actor, key)
                    running[ref] = key
                ready, _ = ray.wait(list(running), timeout=SECONDS_BETWEEN_TICKS)
                if board:
                    board.read()
                for ref in ready:
                    key = running.pop(ref)
                    try:
                        result, ticked = ray.get(ref)
                    except ray.exceptions.RayTaskError as error:
                        raise _cause(error) from None
                    except ray.exceptions.RayError as error:
                        if board:
                            board.finish(key, 0)
                        given_up = losses.count(key[0], type(error).__name__)
                        if not given_up:
                            waiting.appendleft((key[0], key[1] + 1))
                        yield from ((key[0], result) for result in given_up)
                        continue
                    if board:
                        board.finish(key, ticked)
                    yield key[0], result
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
    work: Callable[[Task, Tick], Result], task: Task, expected: str, board: Any, key: Key
) -> tuple[Result, int]:
    """Do a task on a node of the cluster; return its result and its ticks."""
    check_version(expected)
    ticks = Ticks(lambda done: None if board is None else board.add.remote(key, done))
    return work(task, ticks), ticks.total


class _Notes:
    """What workers have told and nobody has read; lives in an actor."""

    def __init__(self) -> None:
        self._notes = defaultdict[Key, int](int)

    def add(self, key: Key, done: int) -> None:
        self._notes[key] += done

    def take(self) -> dict[Key, int]:
        notes, self._notes = dict(self._notes), defaultdict(int)
        return notes


class _Board:
    """Where workers tell how far they are, and the engine reads it."""

    def __init__(self, tick: Tick) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = ray.get_runtime_context().get_node_id()
        self.actor: Any = (
            ray.remote(num_cpus=0, max_restarts=-1)(_Notes)
            .options(scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False))
            .remote()
        )
        self._tick = tick
        self._told = defaultdict[Key, int](int)
        self._finished = set[Key]()
        self._last = monotonic()

    def read(self) -> None:
        """Pass on what is new. Progress only decorates: where it can't be had, work goes on."""
        import ray

        if monotonic() - self._last < SECONDS_BETWEEN_TICKS:
            return
        self._last = monotonic()
        with suppress(ray.exceptions.RayError):
            for key, done in ray.get(self.actor.take.remote(), timeout=5.0).items():
                if key not in self._finished:
                    self._told[key] += done
                    self._tick(done)

    def finish(self, key: Key, ticked: int) -> None:
        """Make up for what a task did and did not tell; what a lost one told is taken back."""
        self._finished.add(key)
        missing = ticked - self._told.pop(key, 0)
        if missing:
            self._tick(missing)
