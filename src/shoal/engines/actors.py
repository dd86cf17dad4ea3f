"""Work in steps on a Ray cluster: jobs live in actors and leave their state after every step.

The state lies in the object store of the actor's node, outside the actor's process. Where the
actor dies, a new one takes the state and does the interrupted step again; where the whole node
dies, and the state with it, the job starts over. Either way it gives the same result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from shoal.engines.base import Losses, Tick
from shoal.engines.cluster import check_version
from shoal.engines.steps import Job, Steps
from shoal.model import State

if TYPE_CHECKING:
    from ray import ObjectRef


class Host:
    """An actor: it has one job at a time."""

    def __init__(self, work: Steps[Any, Any], expected: str) -> None:
        check_version(expected)
        self._start = work.start

    def begin(self, task: Any, state: State | None) -> tuple[int, Any]:
        """Start a job, or take it up at ``state``, and do one step."""
        self._job: Job[Any] = self._start(task)
        if state is not None:
            self._job.restore(state)
        return self.step()

    def step(self) -> tuple[int, Any]:
        """Do one step; return its amount and the state after it, or 0 and the result."""
        done = self._job.step()
        return done, self._job.state() if done else self._job.result()


@dataclass(eq=False)
class Place:
    """Where one job is: its actor, its last state and the work behind that."""

    actor: Any
    index: int
    state: ObjectRef[Any] | None = None
    done: int = 0


def run_in_actors(
    work: Steps[Any, Any], tasks: Sequence[Any], *, n_actors: int, tick: Tick, losses: Losses[Any]
) -> Iterator[tuple[int, Any]]:
    """Yield (index, result) as the jobs finish, ``n_actors`` at a time."""
    import ray

    make: Any = ray.remote(num_cpus=1, max_restarts=0)(Host)
    waiting = deque(range(len(tasks)))
    running: dict[ObjectRef[Any], tuple[Place, ObjectRef[Any]]] = {}

    def go_on(place: Place, *, begin: bool) -> None:
        actor = place.actor
        method = actor.begin if begin else actor.step
        given = (tasks[place.index], place.state) if begin else ()
        amount, state = method.options(num_returns=2).remote(*given)
        running[amount] = place, state

    def take_next(actor: Any) -> None:
        if waiting:
            go_on(Place(actor, waiting.popleft()), begin=True)
        else:
            ray.kill(actor)

    try:
        for _ in range(min(n_actors, len(tasks))):
            take_next(make.remote(work, version("shoal")))
        while running:
            (ready,), _ = ray.wait(list(running))
            place, state = running.pop(ready)
            try:
                amount = ray.get(ready)
                result = None if amount else ray.get(state)
            except ray.exceptions.RayError as error:
                if _is_lost(error):  # the node has died, and the state with it
                    tick(-place.done)
                    place.state, place.done = None, 0
                elif isinstance(error, ray.exceptions.RayTaskError):
                    raise
                ray.kill(place.actor)
                place.actor = make.remote(work, version("shoal"))
                given_up = losses.count(place.index, type(error).__name__)
                if given_up:
                    yield place.index, given_up[0]
                    take_next(place.actor)
                else:
                    go_on(place, begin=True)
                continue
            if amount:
                losses.forget(place.index)
                place.state, place.done = state, place.done + amount
                tick(amount)
                go_on(place, begin=False)
            else:
                yield place.index, result
                take_next(place.actor)
    finally:
        for place, _ in running.values():
            ray.kill(place.actor)


def _is_lost(error: Exception) -> bool:
    import ray

    return isinstance(getattr(error, "cause", None) or error, ray.exceptions.ObjectLostError)
