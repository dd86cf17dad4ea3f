"""A Gaussian posterior over all users' means on an arm, updated by every released total.

Per arm the users' means have a joint normal prior: a common part and one of each user's own, whose
variance is learnt on the way (``spread``), unless means drift. A total over the reporters G is one
linear observation 1_G'mu + noise: a rank-one (Kalman) update. Its noise is the sum of m(1-m) over
G for rewards in [0, 1], times the ``misfit``, the ratio of squared surprises to what they should
be, also learnt: so that rewards of any variance, of unit variance for example, are believed as
much as they deserve.

With drift, every variance grows from round to round, by little if changes are rare. So that a
sudden change of everything is not learnt at that pace, the surprises of a shard are watched: the
``ALARM`` is the log likelihood ratio of totals with twice the expected variance, kept at 0 or more
(Page's test). Where it exceeds log(prior variance / drift), the odds against a change in a given
round, the shard starts again from what it believes, with the prior's doubt.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, CountArray, FloatArray, IntArray, LongArray
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem, Stateful
from shoal.model.numbers import not_negative
from shoal.policies.shoal.joint.prior import learn_spread

JOINT = 256  # users in a shard up to which the joint posterior is affordable every round
PRIOR_MEAN = 0.5
PRIOR_VARIANCE = 1 / 12  # of a uniform mean; of what all share, and at first of each user's own
LEAST_VARIANCE = 1e-12
LOG_2 = math.log(2)
EDGE = 0.05  # a mean's distance from 0 and 1 below which the noise is not believed
PACE = 1.3  # by which the rounds grow until it is learnt anew how much users differ
TRUST = 20  # totals' worth of belief, before the first, that the noise model fits

SURPRISE, EXPECTED, REPORTS, MEMBERS, ALARM = range(5)


class Belief(NamedTuple):
    """What is believed of one shard, or, with one more axis in front, of every shard.

    ``tallies`` sums squared surprises and their expectation, reports and members of groups, and
    the evidence that everything has changed;
    ``noise`` is the running mean of a total's noise variance on each arm.
    """

    means: FloatArray  # (n_arms, n_users)
    covariances: FloatArray  # (n_arms, n_users, n_users)
    noise: FloatArray  # (n_arms,)
    tallies: FloatArray  # (5,)


class JointPosterior(Stateful):
    """The joint posterior of every shard's users on every arm.

    Parameters
    ----------
    drift
        Variance that each user's mean gains per round, up to the prior's: old rounds fade. All of
        the prior's variance comes back at once where the totals say that everything has changed.
    """

    changing = ("means", "covariances", "noise", "tallies", "own", "_rounds", "_due")

    def __init__(self, problem: Problem, *, drift: float = 0.0) -> None:
        self._problem = problem
        self._drift = not_negative("drift", drift)
        shards, arms, users = problem.n_shards, problem.n_arms, problem.shard_size
        covariance = np.full((users, users), PRIOR_VARIANCE)
        covariance[np.diag_indices(users)] += PRIOR_VARIANCE
        least = problem.min_group_size
        trust = TRUST * 0.2 * least
        self.means: FloatArray = np.full((shards, arms, users), PRIOR_MEAN)
        self.covariances: FloatArray = np.tile(covariance, (shards, arms, 1, 1))
        self.noise: FloatArray = np.full((shards, arms), least / 6)
        self.tallies: FloatArray = np.tile([trust, trust, least, least, 0.0], (shards, 1))
        self.own: FloatArray = np.full((shards, arms), PRIOR_VARIANCE)  # each user's, a priori
        self._rounds, self._due = 0, 1

    def belief(self) -> Belief:
        """Return the arrays themselves, of all shards."""
        return Belief(self.means, self.covariances, self.noise, self.tallies)

    def estimates(self) -> FloatArray:
        """Return the posterior means, (n_users, n_arms)."""
        return self.means.transpose(0, 2, 1).reshape(self._problem.n_users, -1)

    def average(self, users: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return each arm's mean over ``users`` and its deviation, (n_arms,) each."""
        weights = users.reshape(len(self.means), -1).astype(np.float64)
        weights /= max(1.0, weights.sum())
        means: FloatArray = np.einsum("su,sau->a", weights, self.means)
        variances = np.einsum("su,sauv,sv->a", weights, self.covariances, weights, optimize=True)
        return means, np.sqrt(np.maximum(variances, 0.0))

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Return each user's arm with the highest draw from its own margin of the posterior."""
        variances = np.diagonal(self.covariances, axis1=2, axis2=3)  # (n_shards, n_arms, n_users)
        draws = rng.normal(self.means, np.sqrt(variances))
        arms: IntArray = draws.argmax(axis=1).ravel().astype(np.int32)
        return arms

    def absorb(self, plan: Plan, feedback: Feedback) -> None:
        """Update by every released total, then let drift widen what is known."""
        _absorb_all(
            self.belief(), plan.arms, plan.groups, feedback.totals, feedback.released,
            feedback.reported, self._problem.min_group_size, self._drift,
        )  # fmt: skip
        self._rounds += 1
        if self._rounds >= self._due and self._drift == 0:
            self._due = math.ceil(self._rounds * PACE)
            for shard in zip(self.means, self.covariances, self.own, strict=True):
                learn_spread(*shard, PRIOR_MEAN, PRIOR_VARIANCE)


@kernel()
def misfit(belief: Belief) -> float:
    """Return by how much noise exceeds the model's; never less than 1."""
    return max(1.0, float(belief.tallies[SURPRISE] / belief.tallies[EXPECTED]))


@kernel()
def participation(belief: Belief) -> float:
    """Return the share of group members who report."""
    return float(belief.tallies[REPORTS] / belief.tallies[MEMBERS])


@kernel()
def reward_noise(mean: float, variance: float) -> float:
    """Return m(1-m) at the value half a standard deviation from the mean towards 1/2.

    A few unlucky zeros must not make the posterior believe that it sees without noise.
    """
    inside = min(max(mean, EDGE), 1.0 - EDGE)
    far = max(0.0, abs(inside - 0.5) - 0.5 * math.sqrt(variance))
    return 0.25 - far * far


@kernel()
def spread_of(covariance: FloatArray, members: LongArray, row: FloatArray) -> float:
    """Fill ``row`` with the covariance of everyone with the members' sum; return its variance."""
    row[:] = 0.0
    for member in members:
        row += covariance[member]
    variance = 0.0
    for member in members:
        variance += row[member]
    return variance


@kernel()
def absorb(
    belief: Belief,
    arms: IntArray,
    groups: IntArray,
    totals: FloatArray,
    released: CountArray,
    reported: CountArray,
    min_group_size: int,
) -> None:
    """Update one shard's belief by the totals of its groups.

    ``arms``, ``groups`` and ``reported`` are the shard's users; ``totals`` and ``released`` are
    those of all groups.
    """
    n_users = len(arms)
    low, high = len(totals), -1
    for group in groups:
        if group >= 0:
            low, high = min(low, group), max(high, group)
    reports = np.empty(n_users, np.int64)
    row = np.empty(n_users)
    scale, share = misfit(belief), participation(belief)
    for number in range(low, high + 1):
        n_members, n_reports, arm = 0, 0, -1
        for user in range(n_users):
            if groups[user] == number:
                n_members += 1
                arm = arms[user]
                if reported[user]:
                    reports[n_reports] = user
                    n_reports += 1
        if n_members == 0:
            continue
        belief.tallies[MEMBERS] += n_members
        if not released[number]:
            # Withheld: fewer than min_group_size of them reported.
            belief.tallies[REPORTS] += min(min_group_size - 1.0, n_members * share)
            continue
        belief.tallies[REPORTS] += n_reports
        members = reports[:n_reports]
        means, covariance = belief.means[arm], belief.covariances[arm]
        surprise, noise = totals[number], 0.0
        for user in members:
            surprise -= means[user]
            noise += reward_noise(means[user], covariance[user, user])
        spread = spread_of(covariance, members, row)
        if spread < noise:  # what is known well shows how large the noise is
            belief.tallies[SURPRISE] += surprise * surprise - spread
            belief.tallies[EXPECTED] += noise
        noise *= scale
        belief.noise[arm] += 0.01 * (noise - belief.noise[arm])
        gain = 1.0 / (spread + noise)
        evidence = 0.25 * surprise * surprise * gain - 0.5 * LOG_2  # for twice the variance
        belief.tallies[ALARM] = max(0.0, belief.tallies[ALARM] + evidence)
        for user in range(n_users):
            means[user] += row[user] * gain * surprise
            covariance[user] -= (row[user] * gain) * row
            covariance[user, user] = max(covariance[user, user], LEAST_VARIANCE)


@kernel()
def _absorb_all(
    beliefs: Belief,
    arms: IntArray,
    groups: IntArray,
    totals: FloatArray,
    released: CountArray,
    reported: CountArray,
    min_group_size: int,
    drift: float,
) -> None:
    n_shards, n_arms, size = beliefs.means.shape
    for s in range(n_shards):
        belief = Belief(
            beliefs.means[s], beliefs.covariances[s], beliefs.noise[s], beliefs.tallies[s]
        )
        first, end = s * size, (s + 1) * size
        absorb(
            belief, arms[first:end], groups[first:end], totals, released, reported[first:end],
            min_group_size,
        )  # fmt: skip
        if drift > 0.0:
            changed = belief.tallies[ALARM] > math.log(PRIOR_VARIANCE / drift)
            if changed:
                belief.tallies[ALARM] = 0.0
            for arm in range(n_arms):
                for user in range(size):
                    variance = belief.covariances[arm, user, user]
                    widened = variance + (PRIOR_VARIANCE if changed else drift)
                    faded = min(widened, max(variance, 2 * PRIOR_VARIANCE))
                    belief.covariances[arm, user, user] = faded
