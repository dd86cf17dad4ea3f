"""The mean-field posterior: every user's mean on every arm is a normal of its own.

The cheap sister of ``posterior``: a total over the reporters G with prediction error e and
variance q = sum of (v + noise) moves each member's mean by v/q·e and shrinks its variance by
v²/q. Correlations are dropped, so that a round costs a few operations per user and arm, and a
user takes eight bytes per arm. All kernels are single passes over memory.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.arrays import BoolArray, CountArray, FloatArray, IntArray, SmallFloatArray
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem, Stateful
from shoal.model.numbers import not_negative
from shoal.policies.shoal.joint.posterior import PRIOR_MEAN, PRIOR_VARIANCE, TRUST

EVEN_BYTES = np.uint32(0x00FF00FF)
BLOCK = 512  # users whose draws stay in the nearest cache
MEAN, NOISE, VARIANCE = range(3)
EDGE = 0.01  # means are taken to be at least this far from 0 and 1 when noise is reckoned


class MeanField(Stateful):
    """The mean-field posterior of every user on every arm.

    Parameters
    ----------
    drift
        Variance that each mean gains per round, up to the prior's: old rounds fade.
    """

    changing = ("means", "deviations", "tallies")

    def __init__(self, problem: Problem, *, drift: float = 0.0) -> None:
        self._problem = problem
        self._drift = not_negative("drift", drift)
        shape = (problem.n_users, problem.n_arms)
        self.means: SmallFloatArray = np.full(shape, PRIOR_MEAN, np.float32)
        self.deviations: SmallFloatArray = np.full(shape, math.sqrt(PRIOR_VARIANCE), np.float32)
        self.tallies = np.full(2, TRUST * 0.2 * problem.min_group_size)

    def estimates(self) -> SmallFloatArray:
        """Return the posterior means, (n_users, n_arms)."""
        return self.means

    def average(self, users: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return each arm's mean over ``users`` and at most its deviation, (n_arms,) each.

        How users' errors hang together is not known here, so they count as wrong together: the
        deviation of a mean is at most the mean of the deviations.
        """
        n_users = max(1, np.count_nonzero(users))
        means: FloatArray = self.means[users].sum(axis=0, dtype=np.float64) / n_users
        deviations: FloatArray = self.deviations[users].sum(axis=0, dtype=np.float64) / n_users
        return means, deviations

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Return each user's arm with the highest draw from the posterior."""
        arms: IntArray = np.empty(self._problem.n_users, np.int32)
        sample_arms(self.means, self.deviations, int(rng.integers(2**63)), arms)
        return arms

    def absorb(self, plan: Plan, feedback: Feedback) -> None:
        """Update by every released total, then let drift widen what is known."""
        absorb_totals(
            self.means, self.deviations, plan.arms, plan.groups, feedback.totals,
            feedback.released, feedback.reported, self.tallies, self._drift, PRIOR_VARIANCE,
        )  # fmt: skip


@kernel(fastmath=True)
def sample_arms(
    means: SmallFloatArray, deviations: SmallFloatArray, seed: int, arms: IntArray
) -> None:
    """Fill ``arms`` with the highest of normal draws, one per user and arm.

    A draw is a hash of its place and the round's seed: the sum of its four bytes, with the
    kurtosis put right (Cornish and Fisher). Against a true normal its deviation is 0.997 and its
    tails end at 3.85; it is branch-free, so that the compiler can make vectors of it.
    """
    n_users, n_arms = means.shape
    flat_means, flat_deviations = means.reshape(-1), deviations.reshape(-1)
    draws = np.empty(BLOCK * n_arms, np.float32)
    mixed = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    low, high = np.uint32(mixed), np.uint32(mixed >> np.uint64(32))
    for first in range(0, n_users, BLOCK):
        n = min(BLOCK, n_users - first)
        offset = first * n_arms
        key = np.uint32(np.uint32(offset) + low)
        # Slices from 0, and every sum put back into 32 bits: else no vectors are made of it.
        own_means = flat_means[offset : offset + n * n_arms]
        own_deviations = flat_deviations[offset : offset + n * n_arms]
        for place in range(len(own_means)):
            x = np.uint32(np.uint32(place) + key)
            x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D))
            x = np.uint32((x ^ (x >> np.uint32(15)) ^ high) * np.uint32(0x846CA68B))
            x = np.uint32(x ^ (x >> np.uint32(16)))
            pairs = np.uint32((x & EVEN_BYTES) + ((x >> np.uint32(8)) & EVEN_BYTES))
            total = np.int32(np.uint32((pairs & np.uint32(0xFFFF)) + (pairs >> np.uint32(16))))
            z = (np.float32(total) - np.float32(510.0)) * np.float32(0.0067658234)
            z = z * (np.float32(0.9625) + np.float32(0.0125) * z * z)
            draws[place] = own_means[place] + own_deviations[place] * z
        for user in range(n):
            start = user * n_arms
            best, highest = 0, draws[start]
            for arm in range(1, n_arms):
                higher = draws[start + arm] > highest
                highest = draws[start + arm] if higher else highest
                best = arm if higher else best
            arms[first + user] = best


@kernel(fastmath=True)
def absorb_totals(
    means: SmallFloatArray,
    deviations: SmallFloatArray,
    arms: IntArray,
    groups: IntArray,
    totals: FloatArray,
    released: CountArray,
    reported: CountArray,
    tallies: FloatArray,
    drift: float,
    most: float,
) -> None:
    """Move every reporter's mean by its share of its group's surprise, and shrink its variance.

    ``tallies`` sums squared surprises and their expectation: noise beyond the model's widens
    what a total may be. ``drift`` is added to every variance up to ``most``.
    """
    sums = np.zeros((len(totals), 3))  # of a group side by side: one place in memory, not three
    for user in range(len(arms)):
        group = groups[user]
        if group >= 0 and reported[user]:
            mean = means[user, arms[user]]
            inside = min(max(mean, EDGE), 1.0 - EDGE)
            sums[group, MEAN] += mean
            sums[group, NOISE] += inside * (1.0 - inside)
            sums[group, VARIANCE] += deviations[user, arms[user]] ** 2
    misfit = max(1.0, tallies[0] / tallies[1])
    for group in range(len(totals)):
        if released[group]:
            mean, noise, variance = sums[group]
            surprise = totals[group] - mean
            if variance < noise:
                tallies[0] += surprise**2 - variance
                tallies[1] += noise
            sums[group, VARIANCE] = 1.0 / (variance + misfit * noise)
            sums[group, MEAN] = surprise * sums[group, VARIANCE]
    for user in range(len(arms)):
        group = groups[user]
        if group >= 0 and reported[user]:
            arm = arms[user]
            own = deviations[user, arm] ** 2
            means[user, arm] += own * sums[group, MEAN]
            deviations[user, arm] *= math.sqrt(1.0 - own * sums[group, VARIANCE])
    if drift > 0.0:
        for user in range(len(arms)):
            for arm in range(means.shape[1]):
                own = deviations[user, arm] ** 2
                deviations[user, arm] = math.sqrt(min(own + drift, max(own, most)))
