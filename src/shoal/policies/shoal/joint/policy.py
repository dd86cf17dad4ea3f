"""The learner for small shards: Thompson sampling with a price on information.

Every round, each user samples its means from the posterior, but only on arms where an observation
is worth more than it costs (``value_of_information``); others play their favourite. An arm that too
few want gets a recruited group if one is worth its cost (``recruit``). Nobody explores unseen.
Crowds are cut into random groups, and a group whose total is not worth what its members lose is
dissolved. Each released total then updates the posterior of its arm (``posterior``).
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.arrays import BoolArray, IntArray, LongArray
from shoal.grouping import group_size, play_favourites, safe_size, small_crowds
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.model.numbers import not_negative
from shoal.policies.base import ArmMeans, Choice, Policy, rounds_left
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.mixture import CORE, OUTSIDER, Mixture, crowd, update_mixture
from shoal.policies.shoal.joint.posterior import Belief, JointPosterior, report_rate, shard_belief
from shoal.policies.shoal.joint.value_of_information import (
    Prices,
    Recruits,
    ShardRound,
    merit,
    recruit,
    update_prices,
)


class JointState(NamedTuple):
    """What a shard's plan depends on; with one more axis in front, of all shards."""

    belief: Belief
    mixture: Mixture
    prices: Prices
    recruits: Recruits
    allowed: BoolArray  # (n_arms, n_users)


class ShardPlan(NamedTuple):
    """One shard's part of a plan while it is made."""

    arms: IntArray  # (n_users,)
    groups: IntArray  # (n_users,) -1 for none
    free: BoolArray  # (n_users,) who may play something and is in no recruited group


class JointPolicy(Policy):
    """Thompson sampling with a price on information, over the joint posterior of all users.

    ``make_shoal`` says what ``drift`` is.
    """

    changing = (*Policy.changing, "posterior", "_mixture", "_prices", "_recruits", "_allowed")
    earlier_names: ClassVar = {
        "rival_means": "_gaps",
        "rival_variances": "_rivals",
        "regrets": "_doubts",
    }
    takes_merged = True

    def __init__(self, problem: Problem, *, rng: np.random.Generator, drift: float = 0.0) -> None:
        super().__init__(problem, rng=rng)
        self._drift = not_negative("drift", drift)
        self.posterior = JointPosterior(problem, drift=drift)
        shards, arms, users = problem.n_shards, problem.n_arms, problem.shard_size
        self._mixture = Mixture(*np.zeros((3, shards, 2, arms, users)))
        self._prices = Prices(
            np.zeros((shards, users), np.int64),
            *np.zeros((4, shards, arms, users)),
            np.zeros((shards, users)),
        )
        self._recruits = Recruits(
            np.full((shards, arms, users), -1),
            np.full((shards, arms), np.inf),
            np.zeros((shards, arms), np.int64),
        )
        self._allowed = np.ones((shards, arms, users), np.bool_)

    def _allow(self, eligible: BoolArray) -> None:
        problem = self.problem
        by_shard = eligible.reshape(problem.n_shards, problem.shard_size, problem.n_arms)
        allowed = np.ascontiguousarray(by_shard.transpose(0, 2, 1))
        changed = (allowed != self._allowed).any(axis=1)
        self._allowed = allowed
        if changed.any():  # not every round updates every user's prices
            _update_changed(self._all_shards(), changed, self._rounds_left())

    def _choose(self) -> Choice:
        problem = self.problem
        arms = np.empty(problem.n_users, np.int32)
        groups = np.empty(problem.n_users, np.int32)
        _choose_all(
            self._all_shards(), problem.min_group_size, self._rounds_left(), self.rounds, self.rng,
            arms, groups,
        )  # fmt: skip
        return arms, groups, 1

    def _all_shards(self) -> JointState:
        return JointState(
            self.posterior.belief, self._mixture, self._prices, self._recruits, self._allowed
        )

    def _rounds_left(self) -> float:
        """Return the rounds left that count in the value of information."""
        return JOINT.patience * rounds_left(
            self.problem, self.rounds, self._drift, JOINT.unknown_rounds, JOINT.unknown_growth
        )

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self.posterior.absorb(plan, feedback)

    def arm_means(self, present: BoolArray) -> ArmMeans:
        """Return each arm's mean over the users who are ``present``, from the posterior."""
        return self.posterior.arm_means(present)


@kernel()
def _one_shard(shards: JointState, s: int) -> JointState:
    mixture, prices, recruits = shards.mixture, shards.prices, shards.recruits
    return JointState(
        shard_belief(shards.belief, s),
        Mixture(mixture.chances[s], mixture.means[s], mixture.variances[s]),
        Prices(
            prices.favourites[s], prices.losses[s], prices.rival_means[s],
            prices.rival_variances[s], prices.prices[s], prices.regrets[s],
        ),
        Recruits(recruits.teams[s], recruits.merits[s], recruits.pauses[s]),
        shards.allowed[s],
    )  # fmt: skip


@kernel()
def _update_changed(shards: JointState, changed: BoolArray, left: float) -> None:
    """Recompute the prices of the users whose arms have ``changed``, (n_shards, n_users)."""
    for s in range(len(changed)):
        _update_users(_one_shard(shards, s), changed[s], left)


@kernel()
def _update_users(shard: JointState, due: BoolArray, left: float) -> None:
    """Recompute what the users who are ``due`` believe and would pay."""
    belief = shard.belief
    observations = left * report_rate(belief)
    for arm in range(len(belief.means)):
        around = crowd(belief, arm)
        for user in range(len(due)):
            if due[user]:
                update_mixture(belief, arm, user, around, shard.mixture)
    for user in range(len(due)):
        if due[user]:
            update_prices(belief, shard.mixture, shard.prices, shard.allowed, user, observations)


@kernel()
def _choose_all(
    shards: JointState,
    min_group_size: int,
    left: float,
    rounds: int,
    rng: np.random.Generator,
    arms: IntArray,
    groups: IntArray,
) -> None:
    """Fill the plan of all users, shard by shard."""
    n_shards, _, size = shards.belief.means.shape
    for s in range(n_shards):
        first, end = s * size, (s + 1) * size
        plan = ShardPlan(arms[first:end], groups[first:end], np.zeros(size, np.bool_))
        _choose_shard(_one_shard(shards, s), min_group_size, left, rounds, rng, plan, first)


@kernel()
def _choose_shard(
    shard: JointState,
    min_group_size: int,
    left: float,
    rounds: int,
    rng: np.random.Generator,
    plan: ShardPlan,
    number: int,
) -> None:
    """Fill one shard's plan, with groups numbered from ``number``."""
    belief, prices, allowed = shard.belief, shard.prices, shard.allowed
    n_arms, n_users = belief.means.shape
    rate = report_rate(belief)
    size = safe_size(min_group_size, rate, n_users)
    settled = rounds >= JOINT.settled_rounds
    plan.groups[:] = -1
    users = np.arange(n_users)
    _update_users(shard, (rounds + users) % (JOINT.settled_period if settled else 1) == 0, left)
    for user in users:
        plan.arms[user] = _sample(shard.mixture, prices, user, rng)
        plan.free[user] = allowed[:, user].any()
    regret, row = prices.regrets.sum(), np.empty(n_users)
    this_round = ShardRound(belief, shard.mixture, prices, min_group_size, left, regret, row)
    number = _recruit_thin_arms(shard, this_round, size, settled, rng, plan, number)
    crowds, few = small_crowds(plan.arms, plan.free, n_arms, size)
    play_favourites(few, prices.favourites[few], plan.arms, crowds, size)
    cut = group_size(min_group_size, rate, size)  # short groups of a crowd are merged
    for arm in range(n_arms):
        players = np.flatnonzero(plan.free & (plan.arms == arm))
        if len(players) >= size:
            number = _cut_crowd(this_round, arm, players, cut, rng, plan, number)


@kernel()
def _sample(mixture: Mixture, prices: Prices, user: int, rng: np.random.Generator) -> int:
    """Return the highest sampled arm among those whose information is worth its loss."""
    best, highest = int(prices.favourites[user]), -np.inf
    for arm in range(len(prices.prices)):
        if prices.prices[arm, user] >= prices.losses[arm, user]:
            outside = rng.random() < mixture.chances[OUTSIDER, arm, user]
            kind = OUTSIDER if outside else CORE
            deviation = math.sqrt(mixture.variances[kind, arm, user])
            draw = mixture.means[kind, arm, user] + deviation * rng.standard_normal()
            if draw > highest:
                best, highest = arm, draw
    return best


@kernel()
def _recruit_thin_arms(
    shard: JointState,
    this_round: ShardRound,
    size: int,
    settled: bool,
    rng: np.random.Generator,
    plan: ShardPlan,
    number: int,
) -> int:
    """Recruit groups for arms that too few users want; return the next group number.

    These arms come first, as their groups may need anyone.
    """
    recruits = shard.recruits
    for arm in np.argsort(-recruits.merits):
        if (plan.free & (plan.arms == arm)).sum() >= size:
            continue
        if recruits.pauses[arm] > 0:
            recruits.pauses[arm] -= 1
            continue
        able = plan.free & shard.allowed[arm]
        team = np.empty(size, np.int64)
        best = 0.0
        if able.sum() >= size and shard.prices.prices[arm].max() > 0.0:
            best = recruit(this_round, arm, able, recruits.teams[arm, :size], team, rng)
        recruits.merits[arm] = best
        if best > 0.0:
            recruits.teams[arm] = -1
            recruits.teams[arm, :size] = team
            plan.arms[team] = arm
            plan.groups[team] = number
            plan.free[team] = False
            number += 1
        elif settled:
            recruits.pauses[arm] = rng.integers(0, JOINT.settled_period)
    return number


@kernel()
def _cut_crowd(
    this_round: ShardRound,
    arm: int,
    players: LongArray,
    size: int,
    rng: np.random.Generator,
    plan: ShardPlan,
    number: int,
) -> int:
    """Cut a crowd into random groups that are worth their cost; return the next group number."""
    prices = this_round.prices
    stake = 0.0
    for user in players:
        stake += prices.prices[arm, user] + prices.losses[arm, user]
    if stake < JOINT.min_stake:
        return number
    rng.shuffle(players)
    for start in range(0, len(players) - size + 1, size):
        members = players[start : start + size]
        cost = 0.0
        for user in members:
            cost += prices.losses[arm, user]
        if cost == 0.0 or merit(this_round, arm, members, rng) > 0.0:
            for user in members:
                plan.groups[user] = number
            number += 1
    for user in players:
        if plan.groups[user] < 0:
            plan.arms[user] = prices.favourites[user]
    return number
