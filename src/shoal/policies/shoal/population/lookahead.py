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
    workspace,
)

NO_ASSIGNMENTS = np.empty(0, np.int32)
CORE_END, OUTSIDER_END = POPULATION.early_ends


class Test(NamedTuple):
    """What playing an arm for a while gains until the end, and for how long, as expected."""

    gain: float  # reward
    length: float  # rounds


class Explorers(NamedTuple):
    """Who plays what for the sake of others."""

    ranks: SmallFloatArray  # (n_users,) in [0, 1); users below panel_share play a random arm
    panel_share: float
    assigned: IntArray  # (n_users,) the arm to try, -1 for none; or empty


class DecisionSchedule(NamedTuple):
    """When users outside the panel decide, and for how long it counts."""

    rounds_left: float
    rounds: int  # played
    period: int  # a user decides in one of so many rounds, or when its arm is not allowed any more


@kernel(fastmath=True)
def decide(
    prior: Prior,
    evidence: Evidence,
    allowed: BoolArray,
    explorers: Explorers,
    noise: FloatArray,
    schedule: DecisionSchedule,
    seed: np.uint64,
    decision: Decision,
) -> None:
    """Fill the decisions of explorers and of those whose turn it is.

    ``noise`` is by how much a total is noisier than one reward's b(1 - b), (n_arms,). A user who
    may play nothing gets the arm -1.
    """
    n_users, n_arms = evidence.precision.shape
    posterior = workspace(n_arms, prior.factors.shape[1])
    covariance = np.empty((n_arms, n_arms))
    for user in range(n_users):
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
        infer(prior, evidence, user, posterior)
        if assigned >= 0:
            chosen = assigned
        elif explores:
            chosen = _pick(able, draw(seed, user, n_able))
        else:
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


@kernel()
def _settle(user: int, arm: int, posterior: Posterior, decision: Decision) -> None:
    """Let the user play ``arm``, and record what is predicted of it."""
    decision.arms[user] = arm
    decision.predicted[user] = posterior.means[arm]
    decision.variances[user] = posterior.variances[arm]


@kernel()
def _favourite(posterior: Posterior, able: BoolArray) -> int:
    """Return the arm of the highest mean among those that the user may play."""
    favourite = -1
    for arm in range(len(able)):
        if able[arm] and (favourite < 0 or posterior.means[arm] > posterior.means[favourite]):
            favourite = arm
    return favourite


@kernel()
def _pick(able: BoolArray, place: int) -> int:
    """Return the arm at ``place`` among those that the user may play."""
    chosen = -1
    for arm in range(len(able)):
        if able[arm]:
            if place == 0:
                chosen = arm
            place -= 1
    return chosen


@kernel(fastmath=True)
def _look_ahead(
    prior: Prior,
    posterior: Posterior,
    able: BoolArray,
    noise: FloatArray,
    rounds_left: float,
    covariance: FloatArray,
) -> int:
    """Return the arm of the most valuable test; ``covariance`` is workspace."""
    means, loadings = posterior.means, posterior.loadings
    n_arms, rank = loadings.shape
    favourite = _favourite(posterior, able)
    for arm in range(n_arms):
        for other in range(arm + 1):
            shared = 0.0
            for a in range(rank):
                shared += loadings[arm, a] * loadings[other, a]
            covariance[arm, other] = shared
            covariance[other, arm] = shared
        covariance[arm, arm] += posterior.specific[arm]
    chosen, highest = favourite, 0.0
    for arm in range(n_arms):
        if not able[arm]:
            continue
        loss = means[favourite] - means[arm]
        noise_variance = noise[arm] * prior.means[arm] * (1.0 - prior.means[arm])
        variance = covariance[arm, arm]
        core = Test(0.0, 1.0)
        for other in range(n_arms):
            if other != favourite and able[other]:
                moved = (covariance[other, arm] - covariance[favourite, arm]) ** 2 / variance
                behind = means[favourite] - (posterior.core[arm] if other == arm else means[other])
                test = best_test(behind, moved, noise_variance / variance, rounds_left, CORE_END)
                if test.gain > core.gain:
                    core = test
        outsider = Test(0.0, 1.0)
        if arm != favourite:
            variance = posterior.outsider_variances[arm]
            behind = means[favourite] - posterior.outsider[arm]
            halving = noise_variance / variance
            outsider = best_test(behind, variance, halving, rounds_left, OUTSIDER_END)
        chance = posterior.chances[arm]
        price = (1.0 - chance) * core.gain / core.length
        price += chance * outsider.gain / outsider.length
        value = (1.0 - chance) * _net(core, loss) + chance * _net(outsider, loss)
        if price > loss and value > highest:
            chosen, highest = arm, value
    return chosen


@kernel(fastmath=True)
def best_test(
    gap: float, variance: float, halving: float, rounds_left: float, early_end: float
) -> Test:
    """Return a test of an arm that is ``gap`` behind and moves by up to ``variance``.

    ``halving`` is the number of plays that halve the variance of what is played. The best number
    is that of ``joint.value_of_information.price``; nothing is gained where it takes too long.
    """
    nothing, most = Test(0.0, 1.0), POPULATION.max_deviations
    ratio = gap * gap / max(variance, 1e-12) if gap >= 0.0 else 1.0
    if variance <= 1e-12 or ratio > most * most:
        return nothing
    n = max(1.0, 0.25 * halving * (ratio - 1.0 + math.sqrt(1.0 + 6.0 * ratio + ratio * ratio)))
    deviation = math.sqrt(variance / (1.0 + halving / n))
    if n > 0.5 * rounds_left or gap > most * deviation:
        return nothing
    chance = min(1.0, math.erfc(gap / math.sqrt(2.0 * variance)))  # twice that the arm is better
    gain = (rounds_left - n) * deviation * expected_improvement(-gap / deviation)
    return Test(gain, n * (chance + (1.0 - chance) * early_end))


@kernel()
def _net(test: Test, loss: float) -> float:
    """Return what a test gains less what it costs, where it gains anything."""
    return test.gain - test.length * loss if test.gain > 0.0 else 0.0
