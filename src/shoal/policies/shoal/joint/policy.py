"""The flagship: learn from totals every round, and never explore what can't be seen or learnt.

Every round, each user samples its means from the posterior (Thompson), but only on arms where an
observation is worth more than it costs (``information``); others play their favourite. An arm
that too few want gets a recruited group if one is worth its cost (``recruiting``). Nobody explores
unseen: who would be in no group plays the favourite instead. Crowds are cut into random groups,
and a group whose total is not worth what its members lose is dissolved. Each released total then
updates the joint posterior of its arm (``estimators.posterior``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, FloatArray, IntArray, LongArray
from shoal.grouping.random_groups import group_size, safe_size
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.model.numbers import not_negative
from shoal.policies.base import HALF_95, ArmMeans, Choice, Policy
from shoal.policies.shoal.joint.posterior import (
    Belief,
    JointPosterior,
    participation,
)
from shoal.policies.shoal.joint.recruiting import merit, recruit
from shoal.policies.shoal.joint.value_of_information import Prices, lesson_life, look

PATIENCE = 2.0  # rounds left count so often: a lesson is used by many later decisions
LEAST_LEFT = 1000.0  # rounds to come, where the horizon is not known, before the first round
YET_TO_COME = 3.0  # and so many for each round played
SETTLED = 2000  # rounds after which prices are reckoned anew only every LOOK_EVERY rounds
LOOK_EVERY = 8
WORTHLESS = 1e-3  # a crowd whose members would pay less than this in all is not observed


class Memory(NamedTuple):
    """What one shard remembers of its thin arms."""

    teams: LongArray  # (n_arms, n_users) the last team, -1 beyond its end
    merits: FloatArray  # (n_arms,) its merit
    pauses: LongArray  # (n_arms,) rounds before a team is sought again


class Shoal(Policy):
    """Thompson sampling with a price on information, over the joint posterior of all users.

    Parameters
    ----------
    drift
        Variance by which each user's mean may move in a round; old rounds fade accordingly.
    """

    changing = (
        *Policy.changing, "posterior", "_favourites", "_losses", "_gaps", "_rivals", "_prices",
        "_doubts", "_teams", "_merits", "_pauses", "_allowed",
    )  # fmt: skip

    takes_merged = True

    def __init__(self, problem: Problem, *, rng: np.random.Generator, drift: float = 0.0) -> None:
        super().__init__(problem, rng=rng)
        self._drift = not_negative("drift", drift)
        self.posterior = JointPosterior(problem, drift=drift)
        shards, arms, users = problem.n_shards, problem.n_arms, problem.shard_size
        self._favourites = np.zeros((shards, users), np.int64)
        self._losses, self._gaps, self._rivals, self._prices = np.zeros((4, shards, arms, users))
        self._doubts = np.zeros((shards, users))
        self._teams = np.full((shards, arms, users), -1)
        self._merits = np.full((shards, arms), np.inf)
        self._pauses = np.zeros((shards, arms), np.int64)
        self._allowed = np.ones((shards, arms, users), np.bool_)

    def _allow(self, eligible: BoolArray) -> None:
        problem = self.problem
        by_shard = eligible.reshape(problem.n_shards, problem.shard_size, problem.n_arms)
        allowed = np.ascontiguousarray(by_shard.transpose(0, 2, 1))
        moved = (allowed != self._allowed).any(axis=1)
        self._allowed = allowed
        if moved.any():  # not every user is looked at in every round
            _look_again(
                self.posterior.belief(), self._all_prices(), allowed, moved, self._rounds_ahead()
            )

    def _choose(self) -> Choice:
        problem = self.problem
        arms = np.empty(problem.n_users, np.int32)
        groups = np.empty(problem.n_users, np.int32)
        memory = Memory(self._teams, self._merits, self._pauses)
        _choose_all(
            self.posterior.belief(), self._all_prices(), memory, self._allowed,
            problem.min_group_size, self._rounds_ahead(), self.rounds, self.rng, arms, groups,
        )  # fmt: skip
        return arms, groups, 1

    def _all_prices(self) -> Prices:
        return Prices(
            self._favourites, self._losses, self._gaps, self._rivals, self._prices, self._doubts
        )

    def _rounds_ahead(self) -> float:
        """Return the rounds for which a lesson is worth having."""
        horizon = self.problem.horizon
        if horizon is None:
            left = LEAST_LEFT + YET_TO_COME * self.rounds
        else:
            left = float(horizon - self.rounds)
        if self._drift > 0:
            left = min(left, lesson_life(self.problem.min_group_size, self._drift))
        return PATIENCE * left

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self.posterior.absorb(plan, feedback)

    def arm_means(self, present: BoolArray) -> ArmMeans:
        """Return each arm's mean over the users who are ``present``, from the posterior."""
        means, deviations = self.posterior.average(present)
        return ArmMeans(means, HALF_95 * deviations)


@kernel()
def _choose_all(
    beliefs: Belief,
    prices: Prices,
    memory: Memory,
    allowed: BoolArray,
    min_group_size: int,
    left: float,
    rounds: int,
    rng: np.random.Generator,
    arms: IntArray,
    groups: IntArray,
) -> None:
    n_shards, _, size = beliefs.means.shape
    for s in range(n_shards):
        belief, own = _shard_of(beliefs, prices, s)
        kept = Memory(memory.teams[s], memory.merits[s], memory.pauses[s])
        first, end = s * size, (s + 1) * size
        _choose_shard(
            belief, own, kept, allowed[s], min_group_size, left, rounds, rng,
            arms[first:end], groups[first:end], first,
        )  # fmt: skip


@kernel()
def _shard_of(beliefs: Belief, prices: Prices, s: int) -> tuple[Belief, Prices]:
    belief = Belief(beliefs.means[s], beliefs.covariances[s], beliefs.noise[s], beliefs.tallies[s])
    own = Prices(
        prices.favourites[s], prices.losses[s], prices.gaps[s], prices.rivals[s],
        prices.prices[s], prices.doubts[s],
    )  # fmt: skip
    return belief, own


@kernel()
def _look_again(
    beliefs: Belief,
    prices: Prices,
    allowed: BoolArray,
    moved: BoolArray,
    left: float,
) -> None:
    """Reckon anew for the users who ``moved`` (n_shards, n_users): their arms have changed."""
    for s in range(len(moved)):
        belief, own = _shard_of(beliefs, prices, s)
        seen = left * participation(belief)
        for user in range(moved.shape[1]):
            if moved[s, user]:
                look(belief, own, allowed[s], user, seen)


@kernel()
def _choose_shard(
    belief: Belief,
    prices: Prices,
    memory: Memory,
    allowed: BoolArray,
    min_group_size: int,
    left: float,
    rounds: int,
    rng: np.random.Generator,
    arms: IntArray,
    groups: IntArray,
    number: int,
) -> None:
    """Fill one shard's arms and groups, numbered from ``number``."""
    n_arms, n_users = belief.means.shape
    share = participation(belief)
    size = safe_size(min_group_size, share, n_users)
    settled = rounds >= SETTLED
    groups[:] = -1
    for user in range(n_users):
        if not settled or (rounds + user) % LOOK_EVERY == 0:
            look(belief, prices, allowed, user, left * share)  # as many observations
        arms[user] = _sample(belief, prices, user, rng)
    doubt = prices.doubts.sum()
    free = np.zeros(n_users, np.bool_)
    for user in range(n_users):
        free[user] = allowed[:, user].any()
    row = np.empty(n_users)
    # Thin arms first: their groups may need anyone.
    for arm in np.argsort(-memory.merits):
        wanted = 0
        for user in range(n_users):
            wanted += free[user] and arms[user] == arm
        if wanted >= size:
            continue
        if memory.pauses[arm] > 0:
            memory.pauses[arm] -= 1
            continue
        able = free & allowed[arm]
        team = np.empty(size, np.int64)
        found = 0.0
        if able.sum() >= size and prices.prices[arm].max() > 0.0:
            found = recruit(
                belief, prices, arm, able, memory.teams[arm, :size], team, min_group_size, left,
                doubt, row, rng,
            )  # fmt: skip
        memory.merits[arm] = found
        if found > 0.0:
            memory.teams[arm] = -1
            memory.teams[arm, :size] = team
            arms[team] = arm
            groups[team] = number
            free[team] = False
            number += 1
        elif settled:
            memory.pauses[arm] = rng.integers(0, LOOK_EVERY)
    _never_unseen(prices, free, arms, size, n_arms)
    cut = group_size(min_group_size, share, size)  # short groups of a crowd are merged
    for arm in range(n_arms):
        crowd = np.flatnonzero(free & (arms == arm))
        number = _cut_crowd(
            belief, prices, arm, crowd, size, cut, min_group_size, left, doubt, row, rng,
            arms, groups, number,
        )  # fmt: skip


@kernel()
def _sample(belief: Belief, prices: Prices, user: int, rng: np.random.Generator) -> int:
    """Return the highest sampled arm among those whose information is worth its loss."""
    best, highest = int(prices.favourites[user]), -np.inf
    for arm in range(len(belief.means)):
        if prices.prices[arm, user] >= prices.losses[arm, user]:
            deviation = math.sqrt(belief.covariances[arm, user, user])
            draw = belief.means[arm, user] + deviation * rng.standard_normal()
            if draw > highest:
                best, highest = arm, draw
    return best


@kernel()
def _never_unseen(prices: Prices, free: BoolArray, arms: IntArray, size: int, n_arms: int) -> None:
    """Send explorers in crowds that are too small for a group back to their favourites."""
    crowds = np.zeros(n_arms, np.int64)
    for user in range(len(arms)):
        crowds[arms[user]] += free[user]
    for user in range(len(arms)):
        favourite = prices.favourites[user]
        if free[user] and crowds[arms[user]] < size and arms[user] != favourite:
            crowds[arms[user]] -= 1
            crowds[favourite] += 1
            arms[user] = favourite


@kernel()
def _cut_crowd(
    belief: Belief,
    prices: Prices,
    arm: int,
    crowd: LongArray,
    size: int,
    cut: int,
    min_group_size: int,
    left: float,
    doubt: float,
    row: FloatArray,
    rng: np.random.Generator,
    arms: IntArray,
    groups: IntArray,
    number: int,
) -> int:
    """Cut a crowd into random groups that are worth their cost; return the next group number."""
    stake = 0.0
    for user in crowd:
        stake += prices.prices[arm, user] + prices.losses[arm, user]
    if len(crowd) < size or stake < WORTHLESS:
        return number
    rng.shuffle(crowd)
    for start in range(0, len(crowd) - cut + 1, cut):
        members = crowd[start : start + cut]
        cost = 0.0
        for user in members:
            cost += prices.losses[arm, user]
        if cost == 0.0 or (
            merit(belief, prices, arm, members, min_group_size, left, doubt, row, rng) > 0.0
        ):
            for user in members:
                groups[user] = number
            number += 1
    for user in crowd:
        if groups[user] < 0:
            arms[user] = prices.favourites[user]
    return number
