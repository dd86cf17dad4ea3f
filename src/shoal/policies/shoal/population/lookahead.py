"""Which arm is worth playing for a while: the value of a block of plays, user by user.

The formulas are in docs/theory.md, "Block lookahead" and "Heavy tails".
"""

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, FloatArray, IntArray, SmallFloatArray
from shoal.grouping import draw, play_favourites, small_crowds
from shoal.kernels import kernel
from shoal.policies.shoal.constants import POPULATION
from shoal.policies.shoal.population.belief import Decision
from shoal.policies.shoal.population.posterior import Evidence, Posterior, Prior, infer, workspace

NO_ASSIGNMENTS = np.empty(0, np.int32)
BLOCK_SHARES = np.array(POPULATION.block_shares)
BLOCK_HALVINGS = np.array(POPULATION.block_halvings)
THRESHOLDS = np.arange(0.0, POPULATION.max_deviations + 0.5, 1 / POPULATION.table_steps)
IMPROVEMENTS = (1 - THRESHOLDS * np.arctan2(1, THRESHOLDS)) / math.pi


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
    variance = posterior.specific[arm]
    for a in range(posterior.loadings.shape[1]):
        variance += posterior.loadings[arm, a] ** 2
    decision.variances[user] = variance


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
    """Return the arm of the most valuable block; ``covariance`` is workspace."""
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
        gap = means[favourite] - means[arm]
        total_noise = noise[arm] * prior.means[arm] * (1.0 - prior.means[arm])
        halving = total_noise / covariance[arm, arm]
        for length in range(len(BLOCK_SHARES)):
            longest = BLOCK_SHARES[length] * rounds_left
            block = max(min(longest, BLOCK_HALVINGS[length] * halving), 1.0)
            if block > rounds_left:
                continue
            per_deviation = 1.0 / math.sqrt(covariance[arm, arm] + total_noise / block)
            improvement = 0.0
            for other in range(n_arms):
                if other == favourite or not able[other]:
                    continue
                deviation = abs(covariance[other, arm] - covariance[favourite, arm])
                deviation *= per_deviation
                behind = means[favourite] - means[other]
                if deviation * POPULATION.max_deviations > behind:
                    improved = deviation * _expected_improvement(behind / deviation)
                    improvement = max(improvement, improved)
            value = (rounds_left - block) * improvement - block * gap
            if value > highest:
                chosen, highest = arm, value
    return chosen


@kernel()
def _expected_improvement(threshold: float) -> float:
    """Return E[(t - threshold)+], between two entries of the table."""
    place = threshold * POPULATION.table_steps
    below = int(place)
    part = place - below
    return float(IMPROVEMENTS[below] * (1.0 - part) + IMPROVEMENTS[below + 1] * part)
