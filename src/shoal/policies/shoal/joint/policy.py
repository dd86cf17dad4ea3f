"""The learner for small shards: an index, or Thompson sampling with a price on information.

Where crowds have two groups or more, so that random groups tell their users apart, each user plays
the arm with the highest index (``value_of_information.index``). Elsewhere chance has to vary who
plays what: a user samples its means from the posterior, but only on arms where an observation is
worth more than it costs; others play their favourite. An arm that too few want gets a recruited
group if one is worth its cost (``recruit``). Nobody explores unseen. Crowds are cut into random
groups, and a group whose total is not worth what its members lose is dissolved; where there are too
few users for a group of every arm, so is one that returns less than others (``best_returns``). Each
released total then updates the posterior of its arm (``posterior``).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import BoolArray, FloatArray, IntArray, LongArray
from shoal.grouping import group_size, play_favourites, safe_size, small_crowds
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.model.numbers import not_negative
from shoal.policies.base import ArmMeans, Choice, Policy, rounds_left
from shoal.policies.beliefs import Beliefs, best_chances
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.posterior import (
    CORE,
    MEMBERS,
    OUTSIDER,
    REPORTS,
    Belief,
    JointPosterior,
    Mixture,
    mixed,
    report_rate,
    shard_belief,
)
from shoal.policies.shoal.joint.value_of_information import (
    Prices,
    Recruits,
    ShardRound,
    all_prices,
    best_returns,
    index,
    merit,
    recruit,
)


class JointState(NamedTuple):
    """What a shard's plan depends on; with one more axis in front, of all shards."""

    belief: Belief
    recruits: Recruits
    allowed: BoolArray  # (n_arms, n_users)
    bounded: bool  # whether rewards lie in [0, 1]


class Offers(NamedTuple):
    """What the groups of one shard would cost and be worth, in rewards per round."""

    costs: FloatArray  # (n_groups,) 0 for a group that is formed whatever others return
    values: FloatArray  # (n_groups, n_users) what each user would pay for its total


class ShardPlan(NamedTuple):
    """One shard's part of a plan while it is made."""

    arms: IntArray  # (n_users,)
    groups: IntArray  # (n_users,) -1 for none
    free: BoolArray  # (n_users,) who may play something and is in no recruited group
    offers: Offers
    first_group: int  # the number of its first group


class JointPolicy(Policy):
    """Thompson sampling with a price on information, over the joint posterior of all users.

    ``make_shoal`` says what ``drift`` is.
    """

    changing = (*Policy.changing, "posterior", "_recruits", "_allowed")
    takes_merged = True
    takes_groups = True
    takes_shards = True

    def __init__(self, problem: Problem, *, rng: np.random.Generator, drift: float = 0.0) -> None:
        super().__init__(problem, rng=rng)
        self._drift = not_negative("drift", drift)
        self.posterior = JointPosterior(problem, drift=drift)
        shards, arms, users = problem.n_shards, problem.n_arms, problem.shard_size
        self._recruits = Recruits(
            np.full((shards, arms, users), -1), np.full((shards, arms), np.inf)
        )
        self._allowed = np.ones((shards, arms, users), np.bool_)

    def _allow(self, eligible: BoolArray) -> None:
        problem = self.problem
        by_shard = eligible.reshape(problem.n_shards, problem.shard_size, problem.n_arms)
        self._allowed = np.ascontiguousarray(by_shard.transpose(0, 2, 1))

    def _choose(self) -> Choice:
        problem = self.problem
        arms = np.empty(problem.n_users, np.int32)
        groups = np.empty(problem.n_users, np.int32)
        shards = JointState(self.posterior.belief, self._recruits, self._allowed, problem.bounded)
        left = rounds_left(
            problem, self.rounds, self._drift, JOINT.unknown_rounds, JOINT.unknown_growth
        )
        _choose_all(shards, problem.min_group_size, left, self.rng, arms, groups)
        return arms, groups, self._repeats()

    def _repeats(self) -> int:
        """Return for how many rounds a plan stays: less is learnt in a round as more is known.

        Where users may be missing, as groups may have to be merged, or means drift, for one.
        """
        tallies = self.posterior.belief.tallies
        if self._drift > 0 or (tallies[:, REPORTS] < tallies[:, MEMBERS]).any():
            return 1
        horizon = self.problem.horizon
        left = self.rounds if horizon is None else horizon - self.rounds
        return max(1, min(self.rounds, left) // (JOINT.plans_per_arm * self.problem.n_arms))

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self.posterior.absorb(plan, feedback)

    def arm_means(self, present: ArrayLike) -> ArmMeans:
        """Return each arm's mean over the users who are ``present``, from the posterior."""
        return self.posterior.arm_means(self.check_present(present))

    def beliefs(self, *, users: ArrayLike | None = None) -> Beliefs:
        """Return what is believed of users, from the posterior of both kinds of them."""
        chosen = self.check_users(users)
        shards = [
            mixed(shard_belief(self.posterior.belief, s)) for s in range(self.problem.n_shards)
        ]
        chances, means, variances = (
            np.concatenate(parts, axis=2).transpose(0, 2, 1)[:, chosen]
            for parts in zip(*shards, strict=True)
        )
        mean = (chances * means).sum(axis=0)
        variance = (chances * (variances + (means - mean) ** 2)).sum(axis=0)
        best = best_chances(chances, means, np.sqrt(variances))
        return Beliefs(mean, np.sqrt(variance), best, chances[OUTSIDER])


@kernel()
def _choose_all(
    shards: JointState,
    min_group_size: int,
    left: float,
    rng: np.random.Generator,
    arms: IntArray,
    groups: IntArray,
) -> None:
    """Fill the plan of all users, shard by shard."""
    n_shards, _, size = shards.belief.means.shape
    for s in range(n_shards):
        first, end = s * size, (s + 1) * size
        n_groups = size // min_group_size
        offers = Offers(np.zeros(n_groups), np.empty((n_groups, size)))
        free = np.zeros(size, np.bool_)
        plan = ShardPlan(arms[first:end], groups[first:end], free, offers, first)
        shard = JointState(
            shard_belief(shards.belief, s),
            Recruits(shards.recruits.teams[s], shards.recruits.merits[s]),
            shards.allowed[s],
            shards.bounded,
        )
        _choose_shard(shard, min_group_size, left, rng, plan)


@kernel()
def _choose_shard(
    shard: JointState,
    min_group_size: int,
    left: float,
    rng: np.random.Generator,
    plan: ShardPlan,
) -> None:
    """Fill one shard's plan."""
    belief, allowed = shard.belief, shard.allowed
    n_arms, n_users = belief.means.shape
    rate = report_rate(belief)
    size = safe_size(min_group_size, rate, n_users)
    mixture = mixed(belief)
    n_observations = left * rate
    prices = all_prices(belief, mixture, allowed, n_observations, shard.bounded)
    plan.groups[:] = -1
    for user in range(n_users):
        plan.arms[user] = _sample(mixture, prices, user, rng)
        plan.free[user] = allowed[:, user].any()
    by_index = n_users >= 2 * size * n_arms
    if by_index:
        _prefer_indices(shard, mixture, prices, n_observations, size, rng, plan)
    this_round = ShardRound(
        belief, mixture, prices, min_group_size, left, prices.regrets.sum(), by_index,
        np.ones(n_users, np.int64), np.empty(n_users, np.int64), np.empty(n_users),
        np.empty(n_users),
    )  # fmt: skip
    number = _recruit_thin_arms(shard, this_round, size, rng, plan)
    crowds, few = small_crowds(plan.arms, plan.free, n_arms, size)
    play_favourites(few, prices.favourites[few], plan.arms, crowds, size)
    cut = group_size(min_group_size, rate, size)  # short groups of a crowd are merged
    for arm in range(n_arms):
        crowd = np.flatnonzero(plan.free & (plan.arms == arm))
        if len(crowd) >= size:
            number = _cut_crowd(this_round, arm, crowd, cut, rng, plan, number)
    if n_users < size * n_arms:  # arms compete for users
        _dissolve(prices, plan, number - plan.first_group)


@kernel(borrows=True)
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
def _prefer_indices(
    shard: JointState,
    mixture: Mixture,
    prices: Prices,
    rounds_left: float,
    size: int,
    rng: np.random.Generator,
    plan: ShardPlan,
) -> None:
    """Move users to the arm of their highest index, if a crowd of two groups has it."""
    belief = shard.belief
    n_arms, n_users = belief.means.shape
    best = np.zeros(n_users, np.int64)
    crowds = np.zeros(n_arms, np.int64)
    for user in range(n_users):
        highest = -np.inf
        for arm in range(n_arms):
            outside = rng.random() < mixture.chances[OUTSIDER, arm, user]
            outside &= prices.prices[arm, user] >= prices.losses[arm, user]
            kind = OUTSIDER if outside else CORE
            value = index(
                mixture.means[kind, arm, user], mixture.variances[kind, arm, user],
                belief.noise[arm], rounds_left,
            )  # fmt: skip
            if shard.allowed[arm, user] and value > highest:
                best[user], highest = arm, value
        crowds[best[user]] += plan.free[user]
    for user in range(n_users):
        if crowds[best[user]] >= 2 * size:
            plan.arms[user] = best[user]


@kernel()
def _recruit_thin_arms(
    shard: JointState,
    this_round: ShardRound,
    size: int,
    rng: np.random.Generator,
    plan: ShardPlan,
) -> int:
    """Recruit groups for arms that too few users want; return the next group number.

    These arms come first, as their groups may need anyone.
    """
    recruits, number = shard.recruits, plan.first_group
    for arm in np.argsort(-recruits.merits):
        if (plan.free & (plan.arms == arm)).sum() >= size:
            continue
        able = plan.free & shard.allowed[arm]
        if able.sum() < size:
            continue  # its turn comes when it has the highest merit
        team = np.empty(size, np.int64)
        best = 0.0
        if this_round.prices.prices[arm].max() > 0.0:
            best = recruit(this_round, arm, able, recruits.teams[arm, :size], team, rng)
        recruits.merits[arm] = best
        if best > 0.0:
            _offer(this_round, arm, team, rng, plan, number)
            recruits.teams[arm] = -1
            recruits.teams[arm, :size] = team
            plan.arms[team] = arm
            plan.groups[team] = number
            plan.free[team] = False
            number += 1
    return number


@kernel()
def _cut_crowd(
    this_round: ShardRound,
    arm: int,
    crowd: LongArray,
    size: int,
    rng: np.random.Generator,
    plan: ShardPlan,
    number: int,
) -> int:
    """Cut a crowd into random groups that are worth their cost; return the next group number.

    Where indices chose a crowd's users, they have weighed the cost already.
    """
    prices = this_round.prices
    weighed = this_round.by_index and len(crowd) >= 2 * size
    stake = 0.0
    for user in crowd:
        stake += prices.prices[arm, user] + prices.losses[arm, user]
    if stake < JOINT.min_stake:
        return number
    rng.shuffle(crowd)
    for start in range(0, len(crowd) - size + 1, size):
        members = crowd[start : start + size]
        if weighed or _offer(this_round, arm, members, rng, plan, number):
            for user in members:
                plan.groups[user] = number
            number += 1
    for user in crowd:
        if plan.groups[user] < 0:
            plan.arms[user] = prices.favourites[user]
    return number


@kernel()
def _offer(
    this_round: ShardRound,
    arm: int,
    members: LongArray,
    rng: np.random.Generator,
    plan: ShardPlan,
    number: int,
) -> bool:
    """Note what a group would cost and be worth; return whether it is worth its cost."""
    cost, offers = 0.0, plan.offers
    for user in members:
        cost += this_round.prices.losses[arm, user]
    offers.costs[number - plan.first_group] = cost
    if cost == 0.0:
        return True
    pays = merit(this_round, arm, members, rng) > 0.0
    offers.values[number - plan.first_group] = this_round.values
    return pays


@kernel()
def _dissolve(prices: Prices, plan: ShardPlan, n_groups: int) -> None:
    """Dissolve the groups that their users had better wait for."""
    costs, values = plan.offers.costs[:n_groups], plan.offers.values[:n_groups]
    pays = best_returns(costs, values, prices.regrets)
    for user in range(len(plan.arms)):
        group = plan.groups[user] - plan.first_group
        if group >= 0 and not pays[group]:
            plan.groups[user] = -1
            plan.arms[user] = prices.favourites[user]
