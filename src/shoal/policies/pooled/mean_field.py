"""The mean-field posterior: every user's mean on every arm is a normal of its own.

The cheap form of the joint posterior: a total over the reporters G with prediction error e and
variance q = sum of (v + noise) moves each member's mean by v/q·e and shrinks its variance by
v²/q. Correlations are dropped, so that a round costs a few operations per user and arm, and a
user takes eight bytes per arm. All kernels are single passes over memory.
"""

import math

import numpy as np

from shoal.arrays import BoolArray, FloatArray, IntArray, SmallFloatArray
from shoal.grouping import RoundTotals, round_totals
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem, Stateful
from shoal.model.numbers import not_negative
from shoal.policies.base import ArmMeans
from shoal.policies.shoal.constants import JOINT

EVEN_BYTES = np.uint32(0x00FF00FF)
BLOCK = 512  # users whose draws stay in the nearest cache
MIN_NOISE_MEAN = 0.01  # distance from 0 and 1 that a mean has at least in its noise m(1 - m)
MEAN, NOISE, VARIANCE = range(3)


class MeanField(Stateful):
    """The mean-field posterior of every user on every arm; ``drift`` as in ``JointPosterior``."""

    changing = ("means", "deviations", "tallies")

    def __init__(self, problem: Problem, *, drift: float = 0.0) -> None:
        self._problem = problem
        self._drift = not_negative("drift", drift)
        shape = (problem.n_users, problem.n_arms)
        deviation = math.sqrt(JOINT.prior_variance)
        self.means: SmallFloatArray = np.full(shape, JOINT.prior_mean, np.float32)
        self.deviations: SmallFloatArray = np.full(shape, deviation, np.float32)
        self.tallies = np.full(2, JOINT.noise_prior * 0.2 * problem.min_group_size)

    def estimates(self) -> SmallFloatArray:
        """Return the posterior means, (n_users, n_arms)."""
        return self.means

    def arm_means(self, present: BoolArray) -> ArmMeans:
        """Return each arm's mean over the users who are ``present``.

        Correlations of users' errors are not known here, so they count as 1: the deviation of a
        mean is at most the mean of the deviations.
        """
        n_users = np.count_nonzero(present) or math.nan
        means: FloatArray = self.means[present].sum(axis=0, dtype=np.float64) / n_users
        deviations: FloatArray = self.deviations[present].sum(axis=0, dtype=np.float64) / n_users
        return ArmMeans.normal(means, deviations)

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Return each user's arm with the highest draw from the posterior."""
        arms: IntArray = np.empty(self._problem.n_users, np.int32)
        sample_arms(self.means, self.deviations, int(rng.integers(2**63)), arms)
        return arms

    def absorb(self, plan: Plan, feedback: Feedback) -> None:
        """Update by every released total, then add the drift to the variances."""
        played = round_totals(plan, feedback)
        absorb_totals(self.means, self.deviations, played, self.tallies, self._drift)


@kernel(fastmath=True)
def sample_arms(
    means: SmallFloatArray, deviations: SmallFloatArray, seed: int, arms: IntArray
) -> None:
    """Fill ``arms`` with the highest of normal draws, one per user and arm.

    A draw is a hash of its place and the round's seed: the sum of its four bytes, with the
    kurtosis corrected (Cornish and Fisher). Against a true normal its deviation is 0.997 and its
    tails end at 3.85; it is branch-free, so that the compiler can vectorise it.
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
        # Slices from 0, and every sum in 32 bits: else the compiler does not vectorise.
        block_means = flat_means[offset : offset + n * n_arms]
        block_deviations = flat_deviations[offset : offset + n * n_arms]
        for place in range(len(block_means)):
            x = np.uint32(np.uint32(place) + key)
            x = np.uint32((x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D))
            x = np.uint32((x ^ (x >> np.uint32(15)) ^ high) * np.uint32(0x846CA68B))
            x = np.uint32(x ^ (x >> np.uint32(16)))
            pairs = np.uint32((x & EVEN_BYTES) + ((x >> np.uint32(8)) & EVEN_BYTES))
            total = np.int32(np.uint32((pairs & np.uint32(0xFFFF)) + (pairs >> np.uint32(16))))
            z = (np.float32(total) - np.float32(510.0)) * np.float32(0.0067658234)
            z = z * (np.float32(0.9625) + np.float32(0.0125) * z * z)
            draws[place] = block_means[place] + block_deviations[place] * z
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
    means: SmallFloatArray, deviations: SmallFloatArray, played: RoundTotals, tallies: FloatArray,
    drift: float,
) -> None:  # fmt: skip
    """Move every reporter's mean by its share of its group's error, and shrink its variance.

    ``tallies`` sums squared errors and their expectation, whose ratio is the overdispersion.
    ``drift`` is added to every variance up to the prior's.
    """
    arms, groups, totals, released, reported = played
    sums = np.zeros((len(totals), 3))  # of a group side by side: one place in memory, not three
    for user in range(len(arms)):
        group = groups[user]
        if group >= 0 and reported[user]:
            mean = means[user, arms[user]]
            inside = min(max(mean, MIN_NOISE_MEAN), 1.0 - MIN_NOISE_MEAN)
            sums[group, MEAN] += mean
            sums[group, NOISE] += inside * (1.0 - inside)
            sums[group, VARIANCE] += deviations[user, arms[user]] ** 2
    overdispersion = max(1.0, tallies[0] / tallies[1])
    for group in range(len(totals)):
        if released[group]:
            mean, noise, variance = sums[group]
            error = totals[group] - mean
            if variance < noise:
                tallies[0] += error**2 - variance
                tallies[1] += noise
            sums[group, VARIANCE] = 1.0 / (variance + overdispersion * noise)
            sums[group, MEAN] = error * sums[group, VARIANCE]
    for user in range(len(arms)):
        group = groups[user]
        if group >= 0 and reported[user]:
            arm = arms[user]
            variance = deviations[user, arm] ** 2
            means[user, arm] += variance * sums[group, MEAN]
            deviations[user, arm] *= math.sqrt(1.0 - variance * sums[group, VARIANCE])
    if drift > 0.0:
        for user in range(len(arms)):
            for arm in range(means.shape[1]):
                variance = deviations[user, arm] ** 2
                limit = max(variance, JOINT.prior_variance)
                deviations[user, arm] = math.sqrt(min(variance + drift, limit))
