"""Groups for arms that too few users want.

Nothing would ever be learnt about such an arm. So a group is recruited from all who may play it:
the candidate of the highest merit, if there is one whose total is worth what its members lose.
"""

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.kernels import kernel
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.value_of_information import Prices, ShardRound, merit


class Recruits(NamedTuple):
    """The recruited groups of one shard's thin arms."""

    teams: LongArray  # (n_arms, n_users) the last team, -1 beyond its end
    merits: FloatArray  # (n_arms,) its merit
    pauses: LongArray  # (n_arms,) rounds before the next attempt


@kernel()
def recruit(
    this_round: ShardRound,
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
            candidate[:] = _highest_gains(this_round.prices, arm, users, size, rng)
        elif attempt == 2:
            candidate[:] = _one_and_cheapest(this_round.prices, arm, users, size, rng)
        elif best > 0.0 or again:
            candidate[:] = team if best > 0.0 else last_team
            new = users[rng.integers(0, len(users))]
            if (candidate == new).any():
                continue
            candidate[rng.integers(0, size)] = new
        else:
            break
        candidate_merit = merit(this_round, arm, candidate, rng)
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
