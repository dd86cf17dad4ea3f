"""Which arm is worth testing: the value of a number of plays, user by user.

The formulas are in docs/theory.md, "Tests".
"""

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, FloatArray, IntArray, SmallFloatArray
from shoal.grouping import draw, play_favourites, small_crowds
from shoal.kernels import kernel
from shoal.policies.shoal.constants import POPULATION
from shoal.policies.shoal.joint.value_of_information import expected_improvement
from shoal.policies.shoal.population.belief import Decision
from shoal.policies.shoal.population.posterior import (
    Evidence,
    Posterior,
    Prior,
    infer,
    infer_core,
    infer_kinds,
    workspace,
)

NO_ASSIGNMENTS = np.empty(0, np.int32)
CORE_END, OUTSIDER_END = POPULATION.early_ends
MIN_VARIANCE = 1e-12  # that a test can move; guard


class Test(NamedTuple):
    """A number of plays of an arm that is ``gap`` behind and moves by up to ``variance``."""

    gain: float  # reward until the end, as expected
    n_plays: float
    gap: float
    variance: float


NO_TEST = Test(0.0, 1.0, 0.0, 1.0)


class Explorers(NamedTuple):
    """Who plays what for the sake of others."""

    ranks: SmallFloatArray  # (n_users,) in [0, 1); users below panel_share play a random arm
    panel_share: float
    assigned: IntArray  # (n_users,) the arm to try, -1 for none; or empty
    seed: np.uint64  # of the panel's arms


class UserRange(NamedTuple):
    """A range of users."""

    first: int
    end: int


class DecisionSchedule(NamedTuple):
    """When users outside the panel decide, and for how long it counts."""

    rounds_left: float
    rounds: int  # played
    period: int  # a user decides in one of so many rounds, or when its arm is not allowed any more


@kernel(fastmath=True, threads=True)
def decide(
    prior: Prior,
    evidence: Evidence,
    allowed: BoolArray,
    explorers: Explorers,
    noise: FloatArray,
    schedule: DecisionSchedule,
    decision: Decision,
    users: UserRange,
) -> None:
    """Fill the decisions of those of ``users`` who explore, or whose turn it is.

    ``noise`` is by how much a total is noisier than one reward's b(1 - b), (n_arms,). A user who
    may play nothing gets the arm -1.
    """
    n_arms = len(noise)
    posterior = workspace(n_arms, prior.factors.shape[1])
    covariance = np.empty((n_arms, n_arms))
    for user in range(users.first, users.end):
        able = allowed[user]
        n_able = 0
        for arm in range(n_arms):
            n_able += able[arm]
        if n_able == 0:
            decision.arms[user] = -1
            continue
        assigned = explorers.assigned[user] if len(explorers.assigned) else -1
        explores = assigned >= 0 or explorers.ranks[user] < explorers.panel_share
        old = decision.arms[user]
        due = (user + schedule.rounds) % schedule.period == 0
        if not (explores or old < 0 or due or not able[old]):
            continue
        if explores:
            pick = _pick(able, draw(explorers.seed, user, n_able))
            chosen = assigned if assigned >= 0 else pick
            infer_core(prior, evidence, user, posterior)
            infer_kinds(prior, evidence, user, posterior, chosen, chosen + 1)
        else:
            infer(prior, evidence, user, posterior)
            chosen = _look_ahead(prior, posterior, able, noise, schedule.rounds_left, covariance)
        _settle(user, chosen, posterior, decision)


@kernel()
def return_unseen(
    prior: Prior, evidence: Evidence, allowed: BoolArray, min_group_size: int, decision: Decision
) -> None:
    """Let explorers in crowds that are too small for a group play their favourites."""
    arms, n_arms = decision.arms, len(prior.means)
    crowds, users = small_crowds(arms, arms >= 0, n_arms, min_group_size)
    if len(users) == 0:
        return
    posterior = workspace(n_arms, prior.factors.shape[1])
    favourites = np.empty(len(users), np.int64)
    for place in range(len(users)):
        infer(prior, evidence, users[place], posterior)
        favourites[place] = _favourite(posterior, allowed[users[place]])
    before = arms[users]
    play_favourites(users, favourites, arms, crowds, min_group_size)
    for place in range(len(users)):
        user = users[place]
        if arms[user] != before[place]:
            infer(prior, evidence, user, posterior)
            _settle(user, arms[user], posterior, decision)


@kernel(borrows=True)
def _settle(user: int, arm: int, posterior: Posterior, decision: Decision) -> None:
    """Let the user play ``arm``, and record what is predicted of it."""
    decision.arms[user] = arm
    decision.predicted[user] = posterior.means[arm]
    decision.variances[user] = posterior.variances[arm]


@kernel(borrows=True)
def _favourite(posterior: Posterior, able: BoolArray) -> int:
    """Return the arm of the highest mean among those that the user may play."""
    favourite = -1
    for arm in range(len(able)):
        if able[arm] and (favourite < 0 or posterior.means[arm] > posterior.means[favourite]):
            favourite = arm
    return favourite


@kernel(borrows=True)
def _pick(able: BoolArray, place: int) -> int:
    """Return the arm at ``place`` among those that the user may play."""
    chosen = -1
    for arm in range(len(able)):
        if able[arm]:
            if place == 0:
                chosen = arm
            place -= 1
    return chosen


@kernel(fastmath=True, borrows=True)
def _look_ahead(
    prior: Prior,
    posterior: Posterior,
    able: BoolArray,
    noise: FloatArray,
    rounds_left: float,
    covariance: FloatArray,
) -> int:
    """Return the arm of the most valuable test; ``covariance`` is workspace."""
    means, n_arms = posterior.means, len(posterior.means)
    favourite = _favourite(posterior, able)
    _fill_covariance(posterior, covariance)
    chosen, highest = favourite, 0.0
    for arm in range(n_arms):
        if not able[arm]:
            continue
        noise_variance = noise[arm] * prior.means[arm] * (1.0 - prior.means[arm])
        variance, chance = covariance[arm, arm], posterior.chances[arm]
        core = NO_TEST
        for other in range(n_arms):
            if other != favourite and able[other]:
                moved = (covariance[other, arm] - covariance[favourite, arm]) ** 2 / variance
                behind = means[favourite] - (posterior.core[arm] if other == arm else means[other])
                if rounds_left * most_gain(behind, moved) > core.gain:
                    test = best_test(behind, moved, noise_variance / variance, rounds_left)
                    if test.gain > core.gain:
                        core = test
        outsider = NO_TEST
        if arm != favourite:
            behind = means[favourite] - posterior.outsider[arm]
            variance = posterior.outsider_variances[arm]
            outsider = best_test(behind, variance, noise_variance / variance, rounds_left)
        loss = means[favourite] - means[arm]
        price, value = 0.0, 0.0
        if core.gain > 0.0:
            length = expected_length(core, CORE_END)
            price += (1.0 - chance) * core.gain / length
            value += (1.0 - chance) * (core.gain - length * loss)
        if outsider.gain > 0.0:
            length = expected_length(outsider, OUTSIDER_END)
            price += chance * outsider.gain / length
            value += chance * (outsider.gain - length * loss)
        if price > loss and value > highest:
            chosen, highest = arm, value
    return chosen


@kernel(fastmath=True, borrows=True)
def _fill_covariance(posterior: Posterior, covariance: FloatArray) -> None:
    """Fill the covariance of a core user's means."""
    loadings = posterior.loadings
    n_arms, rank = loadings.shape
    for arm in range(n_arms):
        for other in range(arm + 1):
            shared = 0.0
            for a in range(rank):
                shared += loadings[arm, a] * loadings[other, a]
            covariance[arm, other] = shared
            covariance[other, arm] = shared
        covariance[arm, arm] += posterior.specific[arm]


@kernel(fastmath=True)
def most_gain(gap: float, variance: float) -> float:
    """Return more than a test can gain in a round that is left, without its costly functions.

    With z = gap / deviation, E[(Z - z)+] < phi(z) / (1 + z²) and exp(-z² / 2) < 1 / (1 + z² / 2 +
    z⁴ / 8); z is least where the test tells everything.
    """
    if variance <= MIN_VARIANCE:
        return 0.0
    if gap < 0.0:
        return math.inf
    square = gap * gap / variance
    growth = (1.0 + square) * (1.0 + 0.5 * square + 0.125 * square * square)
    return 0.4 * math.sqrt(variance) / growth


@kernel(fastmath=True)
def best_test(gap: float, variance: float, halving: float, rounds_left: float) -> Test:
    """Return a test of an arm that is ``gap`` behind and moves by up to ``variance``.

    ``halving`` is the number of plays that halve the variance of what is played. The best number
    is that of ``joint.value_of_information.price``; nothing is gained where it takes too long.
    """
    limit = POPULATION.max_deviations
    ratio = gap * gap / max(variance, MIN_VARIANCE) if gap >= 0.0 else 1.0
    if variance <= MIN_VARIANCE or ratio > limit * limit:
        return NO_TEST
    n = max(1.0, 0.25 * halving * (ratio - 1.0 + math.sqrt(1.0 + 6.0 * ratio + ratio * ratio)))
    deviation = math.sqrt(variance / (1.0 + halving / n))
    if n > 0.5 * rounds_left or gap > limit * deviation:
        return NO_TEST
    gain = (rounds_left - n) * deviation * expected_improvement(-gap / deviation)
    return Test(gain, n, gap, variance)


@kernel(fastmath=True)
def expected_length(test: Test, early_end: float) -> float:
    """Return how long a test takes, if it ends at ``early_end`` where the arm is not better."""
    better = min(1.0, math.erfc(test.gap / math.sqrt(2.0 * test.variance)))  # twice its chance
    return float(test.n_plays * (better + (1.0 - better) * early_end))
