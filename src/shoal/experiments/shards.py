"""A population larger than a machine's memory, played shard by shard.

Regret is a sum over users, and shards learn alone, so that no two of them need to be in memory
together. A shard draws its own users, around what the whole population shares, and plays its own
rounds; what it gives depends on the seed and its number alone. On a Ray cluster each shard lives
in an actor that keeps its state, and goes on after a kill as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.engines import Engine, LocalEngine, Steps
from shoal.errors import UnknownNameError
from shoal.experiments.run import Play, PolicyMaker, Run
from shoal.experiments.seeds import stream
from shoal.instances import INSTANCES, instance
from shoal.model import Problem, State
from shoal.model.numbers import whole_number
from shoal.policies.registry import check_options

STEPS = 20
"""A shard's state is kept so many times in a run: that is the most that a kill costs."""


@dataclass(frozen=True)
class Shard:
    """One shard: all that a worker needs to know."""

    number: int
    instance: str
    policy: str | PolicyMaker
    problem: Problem  # of the shard alone
    seed: int
    play: Mapping[str, Any]


def simulate_shards(
    policy: str | PolicyMaker,
    *,
    n_users: int,
    n_arms: int,
    n_shards: int,
    min_group_size: int,
    horizon: int,
    instance: str = "clustered",
    rewards: str = "bernoulli",
    participation: float = 1.0,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    n_checkpoints: int = 200,
    engine: Engine | None = None,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Play a policy on a population of any size, a few shards at a time.

    Parameters
    ----------
    n_users, n_shards
        Users over all shards, a multiple of the shards. A shard of 10,000 to 100,000 users learns
        what people have in common as well as all of them would.
    instance
        Class of the population. Its users are drawn shard by shard; tastes or arms are the same
        for all.
    engine
        Where the shards run; by default a process per core.
    progress
        Called with the rounds just played, counted over all shards; below 0 where a worker died
        and they are played again.

    Examples
    --------
    >>> run = simulate_shards("shoal", n_users=1_200, n_arms=3, n_shards=4, min_group_size=5,
    ...                       horizon=20, engine=LocalEngine(n_workers=1))
    >>> run.curves.shape, run.smallest_group
    ((4, 20), 5)
    """
    whole = Problem(
        n_users, n_arms, min_group_size, whole_number("horizon", horizon), n_shards=n_shards
    )
    if instance not in INSTANCES:
        raise UnknownNameError("instance", instance, INSTANCES)
    if isinstance(policy, str):
        check_options(policy, options or {})
    play = {
        "rewards": rewards,
        "participation": participation,
        "options": options,
        "n_checkpoints": n_checkpoints,
    }
    own = Problem(whole.shard_size, n_arms, min_group_size, horizon)
    shards = [Shard(number, instance, policy, own, seed, play) for number in range(n_shards)]
    found = dict((engine or LocalEngine()).run(Steps(ShardJob), shards, tick=progress))
    runs = [found[number] for number in range(n_shards)]
    return Run(
        policy=runs[0].policy,
        problem=replace(
            whole,
            min_group_size=runs[0].problem.min_group_size,
            bounded=runs[0].problem.bounded,
        ),
        rounds=runs[0].rounds,
        curves=np.concatenate([run.curves for run in runs]),
        smallest_group=min((run.smallest_group for run in runs if run.smallest_group), default=0),
        withheld=sum(run.withheld for run in runs),
        seconds=sum(run.seconds for run in runs),
    )


class ShardJob:
    """A shard under way: drawn here, and never sent anywhere."""

    def __init__(self, shard: Shard) -> None:
        problem, seed, number = shard.problem, shard.seed, shard.number
        means = instance(
            shard.instance,
            problem.n_users,
            problem.n_arms,
            rng=stream(seed, "shard", "users", number),
            common=stream(seed, "shard", "population", shard.instance),
        )
        self._play = Play(
            shard.policy,
            means,
            min_group_size=problem.min_group_size,
            horizon=whole_number("horizon", problem.horizon),
            seed=int(stream(seed, "shard", "play", number).integers(2**32)),
            **shard.play,
        )
        self.state: Callable[[], State] = self._play.state
        self.restore: Callable[[State], None] = self._play.restore
        self.result: Callable[[], Run] = self._play.run

    def step(self) -> int:
        """Play on for a twentieth of the rounds; return how many were played."""
        before = self._play.played
        self._play.advance(max(1, self._play.horizon // STEPS))
        return self._play.played - before
