"""One policy against one environment, round by round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import FloatArray, LongArray
from shoal.environments import REWARDS, make_environment
from shoal.environments.registry import check_rewards
from shoal.environments.regret import RegretMeter, spread_checkpoints
from shoal.errors import InvalidInputError
from shoal.experiments.seeds import stream
from shoal.model import Problem, Stateful
from shoal.model.numbers import whole_number
from shoal.policies import Policy, find_policy, make_policy

PolicyMaker = Callable[..., Policy]


@dataclass(frozen=True, eq=False)
class Run:
    """What happened.

    Attributes
    ----------
    policy
        The policy's name.
    problem
        The problem that was played; ``min_group_size`` is 1 for a policy that is not anonymous.
    rounds
        Checkpoints, (n_checkpoints,); the last is the horizon.
    curves
        Pseudo-regret of each shard up to each checkpoint, (n_shards, n_checkpoints).
    smallest_group
        Users behind the smallest released total, 0 if nothing was released.
    withheld
        Totals that were not released, because too few of their users reported.
    seconds
        Time taken by the rounds.
    """

    policy: str
    problem: Problem
    rounds: LongArray
    curves: FloatArray
    smallest_group: int
    withheld: int
    seconds: float

    @property
    def cumulative_regret(self) -> FloatArray:
        """Pseudo-regret of all users up to each checkpoint, (n_checkpoints,)."""
        total: FloatArray = self.curves.sum(axis=0)
        return total

    @property
    def regret(self) -> float:
        """Total pseudo-regret over all users and rounds."""
        return float(self.curves[:, -1].sum())


def simulate(
    policy: str | PolicyMaker,
    means: ArrayLike,
    *,
    min_group_size: int,
    horizon: int,
    rewards: str = "bernoulli",
    participation: ArrayLike = 1.0,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    n_checkpoints: int = 200,
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Play a policy for ``horizon`` rounds.

    Parameters
    ----------
    policy
        A name from ``shoal policies``, or anything that makes a Policy from
        ``(problem, rng=..., **options)``.
    means
        Expected rewards, (n_users, n_arms); or (n_shards, n_users, n_arms) for shards that
        learn alone, for example replications.
    min_group_size
        Least users behind a total. A policy that is not anonymous plays with 1.
    rewards
        "bernoulli", "gaussian", "bounded" or "deterministic".
    participation
        Probability that a user reports in a round, one number or (n_users,).
    options
        Options of the policy.
    progress
        Called with the rounds just played, about a hundred times in a run.

    Examples
    --------
    >>> from shoal.instances import uniform
    >>> means = uniform(50, 5, rng=np.random.default_rng(0))
    >>> run = simulate("elimination-greedy", means, min_group_size=4, horizon=10_000)
    >>> run.rounds[-1], run.smallest_group
    (np.int64(10000), 4)
    """
    play = Play(
        policy,
        means,
        min_group_size=min_group_size,
        horizon=horizon,
        rewards=rewards,
        participation=participation,
        seed=seed,
        options=options,
        n_checkpoints=n_checkpoints,
    )
    told = 0
    while not play.finished:
        play.advance(max(1, play.horizon // 100))
        if progress:
            progress(play.played - told)
            told = play.played
    return play.run()


class Play(Stateful):
    """A run under way, which can be saved and taken up again, bit for bit.

    What changes is small: the means are not part of the state, so that who takes it up must make
    the same ``Play`` first. Parameters are those of ``simulate``.
    """

    changing = ("learner", "environment", "meter", "played", "seconds")

    def __init__(
        self,
        policy: str | PolicyMaker,
        means: ArrayLike,
        *,
        min_group_size: int,
        horizon: int,
        rewards: str = "bernoulli",
        participation: ArrayLike = 1.0,
        seed: int = 0,
        options: Mapping[str, Any] | None = None,
        n_checkpoints: int = 200,
    ) -> None:
        stack = np.asarray(means)
        if stack.ndim not in (2, 3) or stack.dtype.kind not in "fiub":
            raise InvalidInputError(
                "means must be numbers of shape (n_users, n_arms) or (n_shards, n_users, n_arms); "
                f"got shape {stack.shape} of {stack.dtype}."
            )
        if stack.ndim == 2:
            stack = stack[None]
        n_shards, shard_size, n_arms = stack.shape
        entry = find_policy(policy) if isinstance(policy, str) else None
        problem = Problem(
            n_users=n_shards * shard_size,
            n_arms=n_arms,
            min_group_size=min_group_size,
            horizon=whole_number("horizon", horizon),
            n_shards=n_shards,
            bounded=REWARDS[check_rewards(rewards)].bounded,
        )
        if entry and not entry.anonymous:
            problem = replace(problem, min_group_size=1)
        flat = np.ascontiguousarray(stack.reshape(-1, n_arms), dtype=np.float64)
        environment = make_environment(
            rewards, problem, flat, rng=stream(seed, "rewards"), participation=participation
        )
        chosen = dict(options or {})
        if entry and entry.hindsight:
            chosen.setdefault("arm", stack.sum(axis=1).argmax(axis=1))
        rng = stream(seed, "policy")
        if isinstance(policy, str):
            learner = make_policy(policy, problem, rng=rng, options=chosen)
        else:
            learner = policy(problem, rng=rng, **chosen)
        self.policy = policy if isinstance(policy, str) else type(learner).__name__
        self.learner = learner
        self.environment = environment
        self.horizon = learner.need_horizon()
        checkpoints = spread_checkpoints(self.horizon, whole_number("n_checkpoints", n_checkpoints))
        self.checkpoints = checkpoints
        self.meter = RegretMeter(flat, problem, checkpoints)
        self.played = 0
        self.seconds = 0.0

    @property
    def finished(self) -> bool:
        """Whether all rounds are played."""
        return self.played >= self.horizon

    def advance(self, rounds: int) -> None:
        """Play that many rounds, and more where a plan is repeated for longer."""
        learner, environment, meter = self.learner, self.environment, self.meter
        ask, play, tell, add = learner.ask, environment.play, learner.tell, meter.add
        end = min(self.played + rounds, self.horizon)
        start = perf_counter()
        while self.played < end:
            plan = ask()
            tell(play(plan))
            add(plan)
            self.played += plan.repeats
        self.seconds += perf_counter() - start

    def run(self) -> Run:
        """Return what happened so far."""
        return Run(
            policy=self.policy,
            problem=self.learner.problem,
            rounds=self.checkpoints,
            curves=self.meter.curves,
            smallest_group=self.environment.smallest_group,
            withheld=self.environment.withheld,
            seconds=self.seconds,
        )
