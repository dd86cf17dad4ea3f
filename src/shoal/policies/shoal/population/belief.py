"""What is known of a large population: evidence of each user, and a prior that all users share.

The model, and the two steps by which a total updates it, are those of docs/theory.md, "Large
populations": b are the ``means`` and V their ``mean_variances``, F the ``factors``, L and h the
``evidence``, o the ``overdispersion``, m and v what a ``Decision`` predicts.
"""

from typing import ClassVar, NamedTuple

import numpy as np

from shoal.arrays import FloatArray, IntArray, SmallFloatArray
from shoal.grouping import RoundTotals
from shoal.kernels import kernel
from shoal.model import State, Stateful
from shoal.policies.shoal.constants import JOINT, POPULATION
from shoal.policies.shoal.population.posterior import Evidence, Prior

OBSERVED, EXPECTED = range(2)


class Decision(NamedTuple):
    """What users play, with what is predicted of their means there."""

    arms: IntArray  # (n_users,) -1 for users who may play nothing
    predicted: SmallFloatArray  # (n_users,) m
    variances: SmallFloatArray  # (n_users,) v


class PopulationBelief(Stateful):
    """Everything that one shard believes: evidence of its users, and what they have in common.

    ``hidden`` is the variance that factors not found yet could have, (n_arms,); ``squares`` are the
    squared errors of totals, observed and expected, (2, n_arms). ``shares`` are the outsiders',
    (n_arms,).
    """

    changing = ("evidence", "means", "mean_variances", "factors", "hidden", "squares", "shares")
    earlier_names: ClassVar = {"mean_variances": "doubts", "squares": "surprises"}

    def __init__(self, n_users: int, n_arms: int, min_group_size: int) -> None:
        self.evidence = Evidence(*np.zeros((2, n_users, n_arms), np.float32))
        self.means = np.full(n_arms, POPULATION.first_mean)
        self.mean_variances = np.full(n_arms, POPULATION.first_variance)
        self.factors = np.zeros((n_arms, 0))
        self.hidden = np.full(n_arms, POPULATION.first_variance)
        self.shares = np.full(n_arms, np.mean(JOINT.outsider_shares))
        self.squares = np.full((2, n_arms), POPULATION.noise_prior * min_group_size)

    def restore(self, state: State) -> None:
        """Take over a ``state``; one of version 0.1 knows nothing of outsiders."""
        super().restore({"shares": self.shares, **state})

    @property
    def overdispersion(self) -> FloatArray:
        """By how much the noise on each arm exceeds r(1 - r), (n_arms,)."""
        ratio: FloatArray = self.squares[OBSERVED] / self.squares[EXPECTED]
        return ratio

    def prior(self) -> Prior:
        """Return the prior of a new user; what is not known yet counts as specific.

        Outsiders have the variance of uniform means around b, or that of the core if it is more.
        """
        specific = self.hidden + self.mean_variances
        core = (self.factors**2).sum(axis=1) + specific
        outsider = np.maximum(self.means * (1 - self.means) / 3, core)
        return Prior(self.means, self.factors, specific, self.shares, outsider)

    def add_drift(self, drift: float) -> None:
        """Let every mean move by a variance of ``drift``: 1 / L becomes 1 / L + drift."""
        _add_drift(self.evidence, drift)
        variances = self.mean_variances
        limit = np.maximum(variances, POPULATION.first_variance)
        np.minimum(variances + drift, limit, out=variances)

    def absorb(self, played: RoundTotals, decision: Decision) -> None:
        """Update by one round of the shard, whose groups are numbered from 0."""
        played = played._replace(reported=played.reported > 0)
        _absorb(self.evidence, self.means, self.mean_variances, self.squares, played, decision)


@kernel()
def _add_drift(evidence: Evidence, drift: float) -> None:
    n_users, n_arms = evidence.precision.shape
    for user in range(n_users):
        for arm in range(n_arms):
            shrinkage = np.float32(1.0 / (1.0 + drift * evidence.precision[user, arm]))
            evidence.precision[user, arm] *= shrinkage
            evidence.value[user, arm] *= shrinkage


@kernel()
def beta_variance(means: FloatArray) -> FloatArray:
    """Return the variance of Beta(1, .) with these means, or mirrored: 1/12 at 1/2.

    >>> beta_variance(np.array([0.5, 1 / 13])).round(5)
    array([0.08333, 0.00507])
    """
    low = np.minimum(means, 1 - means)
    variance: FloatArray = low**2 * (1 - low) / (1 + low)
    return variance


@kernel(fastmath=True)
def _absorb(
    evidence: Evidence,
    means: FloatArray,
    mean_variances: FloatArray,
    squares: FloatArray,
    played: RoundTotals,
    decision: Decision,
) -> None:
    n_groups, n_arms = len(played.totals), len(means)
    arms, groups, counted = decision.arms, played.groups, played.reported
    errors = played.totals.copy()  # total - sum of the members' means, later with the shift
    sizes, arm_of = np.zeros(n_groups), np.zeros(n_groups, np.int64)
    sum_predicted, sum_variances = np.zeros(n_arms), np.zeros(n_arms)
    for user in range(len(arms)):
        if counted[user]:
            group, arm = groups[user], arms[user]
            arm_of[group] = arm
            errors[group] -= decision.predicted[user]
            sizes[group] += 1.0
            sum_predicted[arm] += decision.predicted[user]
            sum_variances[arm] += decision.variances[user]
    n_seen, n_reports, error = np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms)
    for group in range(n_groups):
        if sizes[group] > 0.0:
            arm = arm_of[group]
            n_seen[arm] += 1.0
            n_reports[arm] += sizes[group]
            error[arm] += errors[group]
    shifts, parts, crowd = np.zeros(n_arms), np.ones(n_arms), np.full(n_arms, 0.5)
    for arm in range(n_arms):
        n = n_reports[arm]
        if n > 0.0:
            dispersion = squares[OBSERVED, arm] / squares[EXPECTED, arm]
            spread = sum_variances[arm]
            if mean_variances[arm] >= POPULATION.first_variance:  # nobody chose this crowd
                spread /= n
            noise = dispersion * means[arm] * (1.0 - means[arm])
            gain = mean_variances[arm] / (mean_variances[arm] + (noise + spread) / n)
            means[arm] = _inside(means[arm] + gain * error[arm] / n)
            mean_variances[arm] *= 1.0 - gain
            crowd[arm] = _inside((sum_predicted[arm] + gain * error[arm]) / n)
            common = max(gain, 1.0 - 1.0 / n_seen[arm])  # part of the mean error that is taken out
            shifts[arm], parts[arm] = common * error[arm] / n, 1.0 - common / n_seen[arm]
    noises, spreads = crowd * (1.0 - crowd), beta_variance(crowd)
    for group in range(n_groups):
        if sizes[group] > 0.0:
            arm = arm_of[group]
            errors[group] -= sizes[group] * shifts[arm]
            if n_seen[arm] > 1.0:  # the shift, fitted to n groups, hides one n-th of their squares
                squares[OBSERVED, arm] += errors[group] ** 2 * n_seen[arm] / (n_seen[arm] - 1.0)
                squares[EXPECTED, arm] += sizes[group] * noises[arm]
    for user in range(len(arms)):
        if counted[user]:
            group, arm = groups[user], arms[user]
            dispersion = squares[OBSERVED, arm] / squares[EXPECTED, arm]
            noise = dispersion * sizes[group] * noises[arm]
            weight = 1.0 / (noise - min(decision.variances[user], spreads[arm], 0.5 * noise))
            evidence.precision[user, arm] += weight * parts[arm]
            mean = decision.predicted[user] + shifts[arm]
            evidence.value[user, arm] += weight * (errors[group] + parts[arm] * mean)


@kernel()
def _inside(mean: float) -> float:
    return min(max(mean, POPULATION.min_mean), 1.0 - POPULATION.min_mean)
