"""Thin arms: recruit a group whose total is worth more than its members lose.

Where fewer users want an arm than a group needs, nothing would ever be learnt about it. A group is
then recruited from all who may play it: the candidate of the highest merit, if there is one whose
total is worth its cost.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.kernels import kernel
from shoal.policies.shoal.joint.constants import JOINT
from shoal.policies.shoal.joint.posterior import (
    Belief,
    overdispersion,
    report_rate,
    reward_noise,
)
from shoal.policies.shoal.joint.value_of_information import Prices, value_of_total


class Market(NamedTuple):
    """All that the merit of a group depends on, in one shard and round."""

    belief: Belief
    prices: Prices
    min_group_size: int
    rounds_left: float
    regret: float  # what all users lose per round as long as nothing is learnt
    row: FloatArray  # (n_users,) workspace


@kernel()
def merit(market: Market, arm: int, members: LongArray, rng: np.random.Generator) -> float:
    """Return value / (cost + regret) of a group's total; 0 if it is not worth its cost.

    Where not everyone reports, a random set of reporters stands for the group: who reports is
    random, and that separates members who are never left out on purpose. A group that is too small
    to be released alone counts for its part of a merged total.
    """
    belief, prices = market.belief, market.prices
    rate = report_rate(belief)
    reporters = np.empty(len(members), np.int64)
    n, cost, noise = 0, 0.0, 0.0
    for index in range(len(members)):
        member = members[index]
        cost += prices.losses[arm, member]
        needed = len(members) - index <= market.min_group_size - n
        if rate >= 1.0 or needed or rng.random() < rate:
            noise += reward_noise(
                belief.means[arm, member], belief.covariances[arm, member, member]
            )
            reporters[n] = member
            n += 1
    noise *= overdispersion(belief)
    value = value_of_total(
        belief, prices, arm, reporters[:n], noise, market.rounds_left, market.row
    )
    value *= min(1.0, rate * len(members) / n)
    return value / (cost + market.regret) if value > cost else 0.0


@kernel()
def recruit(
    market: Market,
    arm: int,
    free: BoolArray,
    last_team: LongArray,
    team: LongArray,
    rng: np.random.Generator,
) -> float:
    """Fill ``team`` with the best candidate among ``free`` users; return its merit.

    ``last_team`` may start with -1 where there is none.
    """
    size = len(team)
    candidate = np.empty(size, np.int64)
    users = np.flatnonzero(free)
    again = last_team[0] >= 0
    for member in last_team:
        again = again and free[member]
    best = 0.0
    for attempt in range(JOINT.n_candidates):
        if attempt == 0:
            if not again:
                continue
            candidate[:] = last_team
        elif attempt == 1:
            candidate[:] = _highest_gains(market.prices, arm, users, size, rng)
        elif attempt == 2:
            candidate[:] = _one_and_cheapest(market.prices, arm, users, size, rng)
        elif best > 0.0 or again:
            candidate[:] = team if best > 0.0 else last_team
            new = users[rng.integers(0, len(users))]
            if (candidate == new).any():
                continue
            candidate[rng.integers(0, size)] = new
        else:
            break
        candidate_merit = merit(market, arm, candidate, rng)
        if candidate_merit > best:
            best = candidate_merit
            team[:] = candidate
    return best


@kernel()
def _highest_gains(
    prices: Prices, arm: int, users: LongArray, size: int, rng: np.random.Generator
) -> LongArray:
    """Return those who gain most, net of what they lose, with random weights."""
    keys = np.empty(len(users))
    for index, user in enumerate(users):
        weight = -math.log(1e-12 + rng.random())
        keys[index] = prices.losses[arm, user] - weight * prices.prices[arm, user]
    return users[np.argsort(keys)[:size]]


@kernel()
def _one_and_cheapest(
    prices: Prices, arm: int, users: LongArray, size: int, rng: np.random.Generator
) -> LongArray:
    """Return one who gains, and those who lose least by helping."""
    keys = np.empty(len(users))
    chosen, highest = 0, -1.0
    for index, user in enumerate(users):
        keys[index] = (prices.losses[arm, user] + JOINT.small_loss) * (0.5 + rng.random())
        gain = -prices.prices[arm, user] * math.log(1e-12 + rng.random())
        if gain > highest:
            chosen, highest = index, gain
    keys[chosen] = -1.0
    return users[np.argsort(keys)[:size]]
