"""Thin arms: find a group whose total is worth more than its members lose.

Where fewer users want an arm than a group needs, nothing would ever be learnt about it. A group
is then recruited from whoever is needed. Candidates are last time's team, a team of those with
most to gain, one who needs to know with those who lose least, and small changes of the best so
far; the one with most worth for its cost is taken, if it is worth its cost.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.kernels import kernel
from shoal.policies.shoal.joint.posterior import Belief, misfit, participation, reward_noise
from shoal.policies.shoal.joint.value_of_information import Prices, total_worth

N_CANDIDATES = 8
SMALL_LOSS = 0.02  # below this, losing less does not matter more than variety


@kernel()
def merit(
    belief: Belief,
    prices: Prices,
    arm: int,
    members: LongArray,
    min_group_size: int,
    left: float,
    doubt: float,
    row: FloatArray,
    rng: np.random.Generator,
) -> float:
    """Return worth / (cost + doubt) of a group's total; 0 if it is not worth its cost.

    ``doubt`` is what all users lose per round as long as nothing is learnt. Where not everyone
    reports, a random set of reporters stands for the group: who reports is chance, and chance
    tells members apart who are never left out on purpose. A group that is too small to be released
    alone counts for its part of a merged total.
    """
    share = participation(belief)
    reporters = np.empty(len(members), np.int64)
    n, cost, noise = 0, 0.0, 0.0
    for index in range(len(members)):
        member = members[index]
        cost += prices.losses[arm, member]
        must = len(members) - index <= min_group_size - n
        if share >= 1.0 or must or rng.random() < share:
            noise += reward_noise(
                belief.means[arm, member], belief.covariances[arm, member, member]
            )
            reporters[n] = member
            n += 1
    noise *= misfit(belief)
    worth = total_worth(belief, prices, arm, reporters[:n], noise, left, row)
    worth *= min(1.0, share * len(members) / n)
    return worth / (cost + doubt) if worth > cost else 0.0


@kernel()
def recruit(
    belief: Belief,
    prices: Prices,
    arm: int,
    free: BoolArray,
    last_team: LongArray,
    team: LongArray,
    min_group_size: int,
    left: float,
    doubt: float,
    row: FloatArray,
    rng: np.random.Generator,
) -> float:
    """Fill ``team`` with the best group found among ``free`` users; return its merit.

    ``last_team`` may start with -1 where there is none.
    """
    size = len(team)
    candidate = np.empty(size, np.int64)
    who = np.flatnonzero(free)
    again = last_team[0] >= 0
    for member in last_team:
        again = again and free[member]
    best = 0.0
    for attempt in range(N_CANDIDATES):
        if attempt == 0:
            if not again:
                continue
            candidate[:] = last_team
        elif attempt == 1:
            candidate[:] = _keenest(prices, arm, who, size, rng)
        elif attempt == 2:
            candidate[:] = _one_and_cheapest(prices, arm, who, size, rng)
        elif best > 0.0 or again:
            candidate[:] = team if best > 0.0 else last_team
            new = who[rng.integers(0, len(who))]
            if (candidate == new).any():
                continue
            candidate[rng.integers(0, size)] = new
        else:
            break
        found = merit(belief, prices, arm, candidate, min_group_size, left, doubt, row, rng)
        if found > best:
            best = found
            team[:] = candidate
    return best


@kernel()
def _keenest(
    prices: Prices, arm: int, who: LongArray, size: int, rng: np.random.Generator
) -> LongArray:
    """Return those who gain most, net of what they lose, with random weights."""
    keys = np.empty(len(who))
    for index, user in enumerate(who):
        draw = -math.log(1e-12 + rng.random())
        keys[index] = prices.losses[arm, user] - draw * prices.prices[arm, user]
    return who[np.argsort(keys)[:size]]


@kernel()
def _one_and_cheapest(
    prices: Prices, arm: int, who: LongArray, size: int, rng: np.random.Generator
) -> LongArray:
    """Return one who needs to know, and those who lose least by helping."""
    keys = np.empty(len(who))
    needy, most = 0, -1.0
    for index, user in enumerate(who):
        keys[index] = (prices.losses[arm, user] + SMALL_LOSS) * (0.5 + rng.random())
        need = -prices.prices[arm, user] * math.log(1e-12 + rng.random())
        if need > most:
            needy, most = index, need
    keys[needy] = -1.0
    return who[np.argsort(keys)[:size]]
