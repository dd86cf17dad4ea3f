"""What is known of a large population: evidence of each user, and a prior that all users share.

Users alone learn too slowly where rewards are rare and groups large, so users teach each other
what people are like. User i's means are normal, theta_i ~ N(b, F F' + diag(s)): b are the
population's ``means``, F the ``factors`` of taste, s the spread of each user's ``own``. From
totals, user i and arm j only gather a ``precision`` L_ij and a weighted ``value`` h_ij (two
float32). The posterior (``factor_posterior``) follows from them and the prior whenever it is
needed, so that a better prior (``shared_prior`` learns it) also makes more of old evidence.

A released total y of arm j over the reporters G, with m_i and v_i the mean and variance believed
of member i, teaches in two steps:

1. The crowd. All groups of an arm share the mean surprise e = sum(y - sum m) / reporters. It moves
   b_j by a Kalman step, of gain k = V_j / (V_j + (misfit b(1 - b) + sum v) / reporters); V_j,
   the ``doubts``, is the variance of b_j. (The mean of v is not divided once more: members chose
   the arm, and what is wrong about one may be wrong about all. Only an arm's first crowd, where
   nobody could choose, is a fair sample.) Then shift = max(k, 1 - 1 / groups) e is taken out of
   every prediction: what the groups tell beyond it is only how they differ.
2. The user. Member i sees x = y - sum over the others of (m + shift), with noise of variance
   q = misfit |G| r(1 - r), less its own v_i: L_ij += w and h_ij += w x for w = 1 / (q - v_i). Here
   r, the mean of m + k e over the crowd, is the same for all its members: were the noise reckoned
   from each one's own m, rewards would weigh less than the lack of them, as they raise m. And v_i
   counts no more than means like Beta(1, .) around r can vary, nor than q / 2.

The ``misfit`` of an arm is the ratio of squared surprises to those expected, learnt on the way, so
that rewards of any variance are believed as much as they deserve.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray, CountArray, FloatArray, IntArray, SmallFloatArray
from shoal.kernels import kernel
from shoal.model import Stateful
from shoal.policies.shoal.population.posterior import Prior

FIRST_MEAN = 0.3  # most rewards are rather rare
FIRST_DOUBT = 0.1  # about the variance of a uniform mean, and a little more
TRUST = 2.0  # totals of least size that the noise model is worth before the first
LEAST_MEAN = 1e-4  # the population's means stay this far from 0 and 1
OBSERVED, EXPECTED = range(2)


class PopulationBelief(Stateful):
    """Everything that one shard believes.

    Attributes
    ----------
    precision, value : SmallFloatArray
        The evidence, (n_users, n_arms).
    means, doubts : FloatArray
        The population's mean on each arm and its variance, (n_arms,).
    factors, hidden : FloatArray
        Tastes that were found, (n_arms, rank), and the variance that could still be there without
        having been found, (n_arms,).
    surprises : FloatArray
        Squared surprises of totals, observed and expected, (2, n_arms).
    """

    changing = ("precision", "value", "means", "doubts", "factors", "hidden", "surprises")

    def __init__(self, n_users: int, n_arms: int, min_group_size: int) -> None:
        self.precision: SmallFloatArray = np.zeros((n_users, n_arms), np.float32)
        self.value: SmallFloatArray = np.zeros((n_users, n_arms), np.float32)
        self.means = np.full(n_arms, FIRST_MEAN)
        self.doubts = np.full(n_arms, FIRST_DOUBT)
        self.factors = np.zeros((n_arms, 0))
        self.hidden = np.full(n_arms, FIRST_DOUBT)
        self.surprises = np.full((2, n_arms), TRUST * min_group_size)

    @property
    def misfit(self) -> FloatArray:
        """By how much the noise on each arm exceeds r(1 - r), (n_arms,)."""
        ratio: FloatArray = self.surprises[OBSERVED] / self.surprises[EXPECTED]
        return ratio

    def prior(self) -> Prior:
        """Return what to believe of a new user; what is not known counts as the user's own."""
        return Prior(self.means, self.factors, self.hidden + self.doubts)

    def fade(self, drift: float) -> None:
        """Let every mean move by a variance of ``drift``: 1 / L becomes 1 / L + drift."""
        _fade(self.precision, self.value, drift)
        np.minimum(self.doubts + drift, np.maximum(self.doubts, FIRST_DOUBT), out=self.doubts)


@kernel()
def _fade(precision: SmallFloatArray, value: SmallFloatArray, drift: float) -> None:
    n_users, n_arms = precision.shape
    for user in range(n_users):
        for arm in range(n_arms):
            kept = np.float32(1.0 / (1.0 + drift * precision[user, arm]))
            precision[user, arm] *= kept
            value[user, arm] *= kept


@kernel()
def beta_spread(means: FloatArray) -> FloatArray:
    """Return the variance of Beta(1, .) with these means, or mirrored: 1/12 at 1/2.

    >>> beta_spread(np.array([0.5, 1 / 13])).round(5)
    array([0.08333, 0.00507])
    """
    low = np.minimum(means, 1 - means)
    variance: FloatArray = low**2 * (1 - low) / (1 + low)
    return variance


def absorb(
    belief: PopulationBelief,
    arms: IntArray,
    groups: IntArray,
    totals: FloatArray,
    reported: CountArray,
    predicted: SmallFloatArray,
    variances: SmallFloatArray,
) -> None:
    """Take in one round of a shard.

    Parameters
    ----------
    arms, groups, reported
        Each user's arm, group (-1 for none) and whether it is part of a released total,
        (n_users,).
    totals
        Each group's total, (n_groups,).
    predicted, variances
        What was believed of each user's mean on its arm, (n_users,).
    """
    _absorb(
        belief.precision, belief.value, belief.means, belief.doubts, belief.surprises,
        arms, groups, totals, reported > 0, predicted, variances,
    )  # fmt: skip


@kernel(fastmath=True)
def _absorb(
    precision: SmallFloatArray,
    value: SmallFloatArray,
    means: FloatArray,
    doubts: FloatArray,
    surprises: FloatArray,
    arms: IntArray,
    groups: IntArray,
    totals: FloatArray,
    counted: BoolArray,
    predicted: SmallFloatArray,
    variances: SmallFloatArray,
) -> None:
    n_groups, n_arms = len(totals), len(means)
    gaps = totals.copy()  # total - sum of the members' means, later with the shift
    sizes = np.zeros(n_groups)
    arm_of = np.zeros(n_groups, np.int64)
    expected, doubted = np.zeros(n_arms), np.zeros(n_arms)  # sums of the crowd's m and v
    for user in range(len(arms)):
        if counted[user]:
            group, arm = groups[user], arms[user]
            arm_of[group] = arm
            gaps[group] -= predicted[user]
            sizes[group] += 1.0
            expected[arm] += predicted[user]
            doubted[arm] += variances[user]
    n_seen, n_reports, surprise = np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms)
    for group in range(n_groups):
        if sizes[group] > 0.0:
            arm = arm_of[group]
            n_seen[arm] += 1.0
            n_reports[arm] += sizes[group]
            surprise[arm] += gaps[group]
    shifts, crowd = np.zeros(n_arms), np.full(n_arms, 0.5)
    for arm in range(n_arms):
        n = n_reports[arm]
        if n > 0.0:
            misfit = surprises[OBSERVED, arm] / surprises[EXPECTED, arm]
            spread = doubted[arm]
            if doubts[arm] >= FIRST_DOUBT:  # an arm's first crowd is there by chance
                spread /= n
            noise = misfit * means[arm] * (1.0 - means[arm])
            gain = doubts[arm] / (doubts[arm] + (noise + spread) / n)
            means[arm] = _inside(means[arm] + gain * surprise[arm] / n)
            doubts[arm] *= 1.0 - gain
            crowd[arm] = _inside((expected[arm] + gain * surprise[arm]) / n)
            shifts[arm] = max(gain, 1.0 - 1.0 / n_seen[arm]) * surprise[arm] / n
    noises, spreads = crowd * (1.0 - crowd), beta_spread(crowd)
    for group in range(n_groups):
        if sizes[group] > 0.0:
            arm = arm_of[group]
            gaps[group] -= sizes[group] * shifts[arm]
            n = n_seen[arm]
            if n > 1.0:  # the shift, fitted to n groups, hides one n-th of their squares
                surprises[OBSERVED, arm] += gaps[group] ** 2 * n / (n - 1.0)
                surprises[EXPECTED, arm] += sizes[group] * noises[arm]
    for user in range(len(arms)):
        if counted[user]:
            group, arm = groups[user], arms[user]
            misfit = surprises[OBSERVED, arm] / surprises[EXPECTED, arm]
            noise = misfit * sizes[group] * noises[arm]
            weight = 1.0 / (noise - min(variances[user], spreads[arm], 0.5 * noise))
            precision[user, arm] += weight
            value[user, arm] += weight * (gaps[group] + predicted[user] + shifts[arm])


@kernel()
def _inside(mean: float) -> float:
    return min(max(mean, LEAST_MEAN), 1.0 - LEAST_MEAN)
