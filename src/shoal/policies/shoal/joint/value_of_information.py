"""What an observation is worth: the price that a user would pay for it, in reward per round.

A user with gap d between an arm's mean and its rival's, posterior variances v and v' of the two,
and ``left`` rounds to go gains s·f(-d/s) per round from observations that move the difference by
a standard deviation of s, with f(z) = E[(Z + z)+] for a standard normal Z (the knowledge
gradient). One observation of a group moves little, so what counts is the best number n of
equal observations; a closed form after Frazier and Powell (2010) is within 15 % of the best. The
price is the gain over the rounds left, per observation, shared between the arm and its rival by
their variances.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.kernels import kernel
from shoal.policies.shoal.joint.posterior import Belief, spread_of

FAR = 8.0  # standard deviations beyond which nothing is gained


class Prices(NamedTuple):
    """What one shard's users would lose and pay on each arm, as of the last look."""

    favourites: LongArray  # (n_users,) the arm with the highest mean
    losses: FloatArray  # (n_arms, n_users) expected loss against the favourite, per round
    gaps: FloatArray  # (n_arms, n_users) distance from the rival: the favourite, or its second
    rivals: FloatArray  # (n_arms, n_users) the rival's variance
    prices: FloatArray  # (n_arms, n_users) worth of one typical observation
    doubts: FloatArray  # (n_users,) expected loss per round of playing the favourite


def lesson_life(min_group_size: int, drift: float) -> float:
    """Return for how many rounds a lesson lasts where means gain a variance of ``drift`` in each.

    A filter that is told of them by totals with a variance of q forgets at the rate of
    sqrt(drift / q); a lesson is taken to last twice as long. Means are spread evenly in q.
    """
    return 2.0 * math.sqrt(min_group_size / 6 / drift)


@kernel()
def gain(z: float) -> float:
    """Return E[(Z + z)+] of a standard normal Z."""
    density = math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return density + z * 0.5 * math.erfc(-z / math.sqrt(2))


@kernel()
def price(gap: float, variance: float, rival: float, halving: float, left: float) -> float:
    """Return the largest loss per round worth paying for observations of one user on one arm.

    ``halving`` is the number of observations, at the present rate, that halve ``variance``.
    """
    both = variance + rival
    ratio = gap * gap / both
    if ratio > FAR * FAR:
        return 0.0
    n = 0.25 * halving * (ratio - 1.0 + math.sqrt(1.0 + 6.0 * ratio + ratio * ratio))
    n = max(1.0, n)
    if n > 0.5 * left:
        return 0.0
    moved = math.sqrt(both / (1.0 + halving / n))
    if gap > FAR * moved:
        return 0.0
    return variance / both * (left - n) / n * moved * gain(-gap / moved)


@kernel()
def look(belief: Belief, prices: Prices, allowed: BoolArray, user: int, left: float) -> None:
    """Reckon one user's losses and prices anew; ``allowed`` (n_arms, n_users) arms only."""
    n_arms = len(belief.means)
    first, second = -1, -1
    for arm in range(n_arms):
        if allowed[arm, user]:
            if first < 0 or belief.means[arm, user] > belief.means[first, user]:
                first, second = arm, first
            elif second < 0 or belief.means[arm, user] > belief.means[second, user]:
                second = arm
    prices.favourites[user] = max(first, 0)
    prices.doubts[user] = 0.0
    for arm in range(n_arms):
        prices.prices[arm, user] = 0.0
        prices.losses[arm, user] = np.inf
        if second < 0 or not allowed[arm, user]:
            continue
        rival = second if arm == first else first
        variance = belief.covariances[arm, user, user]
        other = belief.covariances[rival, user, user]
        gap = abs(belief.means[arm, user] - belief.means[rival, user])
        prices.losses[arm, user] = belief.means[first, user] - belief.means[arm, user]
        prices.gaps[arm, user] = gap
        prices.rivals[arm, user] = other
        prices.prices[arm, user] = price(gap, variance, other, belief.noise[arm] / variance, left)
        if arm != first:
            deviation = math.sqrt(variance + other)
            doubt = deviation * gain(-gap / deviation)
            prices.doubts[user] = max(prices.doubts[user], doubt)
    if first >= 0:
        prices.losses[first, user] = 0.0


@kernel()
def total_worth(
    belief: Belief,
    prices: Prices,
    arm: int,
    members: LongArray,
    noise: float,
    left: float,
    row: FloatArray,
) -> float:
    """Return what all users together would pay for the total of ``members`` on ``arm``.

    A total tells about everyone whose mean is correlated with the members' sum: it removes the
    share row_i² / (variance of the total · variance_i) of a user's variance. What counts is
    that share, not how many users are on the arm.
    """
    covariance = belief.covariances[arm]
    variance = spread_of(covariance, members, row) + noise
    worth = 0.0
    for user in range(len(row)):
        own = covariance[user, user]
        share = row[user] * row[user] / (variance * own)
        if share * left > 1.0 and prices.losses[arm, user] < np.inf:
            worth += price(
                prices.gaps[arm, user], own, prices.rivals[arm, user], 1.0 / share - 1.0, left
            )
    return worth
