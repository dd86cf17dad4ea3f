"""A Gaussian posterior over all users' means on an arm, updated by every released total.

The model is that of docs/theory.md, "The flagship": a prior with a shared part and a part of each
user, learnt (``prior``) unless means drift, and a Kalman step for each total. The posterior is that
of a normal prior with the variance of the mixture.

``mixed`` exchanges that prior for the mixture of ``UserPrior``, user by user: the posterior of a
user's distance from the crowd, divided by its prior, is an observation x with a precision, which
either kind of user explains with its own variance. A user is an outsider with the probability that
Bayes' rule gives, and has a normal posterior as either kind.

Every variance gains ``drift`` per round, up to the prior's. Sudden changes are detected by Page's
test: the log likelihood ratio of totals with twice the expected variance is summed and kept at 0 or
more. Where it exceeds log(prior variance / drift), the odds against a change in a given round, all
variances of the shard return to the prior's.
"""

import math
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.arrays import BoolArray, FloatArray, IntArray, LongArray
from shoal.grouping import RoundTotals, of_users, round_totals
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem, State, Stateful
from shoal.model.numbers import not_negative
from shoal.policies.base import ArmMeans
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.prior import UserPrior, learn_user_prior, uniform_prior

LOG_2 = math.log(2)

CORE, OUTSIDER = range(2)
"""The kinds of users: near the crowd, or anywhere."""

SQUARED_ERRORS, EXPECTED_SQUARES, REPORTS, MEMBERS, CHANGE = range(5)
"""Places in ``tallies``; the last is the log likelihood ratio of Page's test."""


class Belief(NamedTuple):
    """The posterior of one shard, or, with one more axis in front, of every shard."""

    means: FloatArray  # (n_arms, n_users)
    covariances: FloatArray  # (n_arms, n_users, n_users)
    noise: FloatArray  # (n_arms,) running mean of a total's noise variance
    tallies: FloatArray  # (5,) sums over all totals
    prior: UserPrior


class TotalMembers(NamedTuple):
    """Whose rewards a released total holds."""

    arm: int
    members: LongArray  # (n_members,) who reported
    times: LongArray  # (n_members,) how often
    n_rounds: int  # in which it was released


class JointPosterior(Stateful):
    """The joint posterior of every shard's users on every arm."""

    changing = ("belief", "_rounds", "_next_refresh")
    earlier_names: ClassVar = {"core": "own", "outsider": "own", "_next_refresh": "_due"}

    def __init__(self, problem: Problem, *, drift: float = 0.0) -> None:
        self._problem = problem
        self._drift = not_negative("drift", drift)
        shards, arms, users = problem.n_shards, problem.n_arms, problem.shard_size
        covariance = np.full((users, users), JOINT.prior_variance)
        covariance[np.diag_indices(users)] += JOINT.prior_variance
        min_size = problem.min_group_size
        squares = JOINT.noise_prior * 0.2 * min_size
        self.belief = Belief(
            np.full((shards, arms, users), JOINT.prior_mean),
            np.tile(covariance, (shards, arms, 1, 1)),
            np.full((shards, arms), min_size / 6),
            np.tile([squares, squares, min_size, min_size, 0.0], (shards, 1)),
            uniform_prior((shards, arms)),
        )
        self._rounds, self._next_refresh = 0, 1

    def estimates(self) -> FloatArray:
        """Return the posterior means, (n_users, n_arms)."""
        return self.belief.means.transpose(0, 2, 1).reshape(self._problem.n_users, -1)

    def arm_means(self, present: BoolArray) -> ArmMeans:
        """Return each arm's mean over the users who are ``present``."""
        belief = self.belief
        weights = present.reshape(len(belief.means), -1).astype(np.float64)
        weights /= weights.sum() or math.nan
        means: FloatArray = np.einsum("su,sau->a", weights, belief.means)
        variances = np.einsum("su,sauv,sv->a", weights, belief.covariances, weights, optimize=True)
        return ArmMeans.normal(means, np.sqrt(np.maximum(variances, 0.0)))

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Return each user's arm with the highest draw from its marginal posterior."""
        variances = np.diagonal(self.belief.covariances, axis1=2, axis2=3)
        draws = rng.normal(self.belief.means, np.sqrt(variances))  # (n_shards, n_arms, n_users)
        arms: IntArray = draws.argmax(axis=1).ravel().astype(np.int32)
        return arms

    def absorb(self, plan: Plan, feedback: Feedback) -> None:
        """Update by every released total, then add the drift to the variances."""
        min_size = self._problem.min_group_size
        _absorb_all(self.belief, round_totals(plan, feedback), min_size, self._drift)
        self._rounds += plan.repeats
        if self._rounds >= self._next_refresh and self._drift == 0:
            self._next_refresh = math.ceil(self._rounds * JOINT.refresh_growth)
            for shard in range(self._problem.n_shards):
                belief = shard_belief(self.belief, shard)
                learn_user_prior(belief.means, belief.covariances, belief.prior)

    def restore(self, state: State) -> None:
        """Continue from ``state``; version 0.1 knew of no outsiders."""
        if "own" in state:
            state = state | {"share": self.belief.prior.share}
        super().restore(state)


@kernel()
def shard_belief(beliefs: Belief, shard: int) -> Belief:
    """Return one shard's part."""
    prior = beliefs.prior
    return Belief(
        beliefs.means[shard], beliefs.covariances[shard], beliefs.noise[shard],
        beliefs.tallies[shard],
        UserPrior(prior.core[shard], prior.outsider[shard], prior.share[shard]),
    )  # fmt: skip


@kernel(borrows=True)
def overdispersion(belief: Belief) -> float:
    """Return by how much noise exceeds the model's; never less than 1."""
    return max(1.0, float(belief.tallies[SQUARED_ERRORS] / belief.tallies[EXPECTED_SQUARES]))


@kernel(borrows=True)
def report_rate(belief: Belief) -> float:
    """Return the share of group members who report."""
    return float(belief.tallies[REPORTS] / belief.tallies[MEMBERS])


@kernel()
def reward_noise(mean: float, variance: float) -> float:
    """Return the expected variance of a reward around a mean that is known with this ``variance``.

    That is m(1-m) less the mean's own variance, which is not noise: else a first total would look
    like agreement. It is taken at the value half a standard deviation from the mean towards 1/2,
    else a few zeros by chance would look like rewards without noise.
    """
    inside = min(max(mean, JOINT.min_noise_mean), 1.0 - JOINT.min_noise_mean)
    distance = max(0.0, abs(inside - 0.5) - 0.5 * math.sqrt(variance))
    whole = 0.25 - distance * distance
    return max(whole - variance, 0.5 * whole)


@kernel(borrows=True)
def sum_variance(
    covariance: FloatArray, members: LongArray, times: LongArray, row: FloatArray
) -> float:
    """Fill ``row`` with the covariance of everyone with the members' sum; return its variance.

    Each member's mean is in the sum as many ``times`` as it reported.
    """
    row[:] = 0.0
    for index in range(len(members)):
        member = members[index]
        for user in range(len(row)):
            row[user] += times[index] * covariance[member, user]
    variance = 0.0
    for index in range(len(members)):
        variance += times[index] * row[members[index]]
    return variance


@kernel()
def absorb(belief: Belief, played: RoundTotals, min_group_size: int) -> None:
    """Update one shard's belief by the totals of its groups."""
    n_users = len(played.arms)
    low, high = len(played.totals), -1
    for group in played.groups:
        if group >= 0:
            low, high = min(low, group), max(high, group)
    reporters, times = np.empty((2, n_users), np.int64)
    row = np.empty(n_users)
    scale, rate = overdispersion(belief), report_rate(belief)
    for number in range(low, high + 1):
        n_members, n_reporters, arm = 0, 0, -1
        for user in range(n_users):
            if played.groups[user] == number:
                n_members += 1
                arm = played.arms[user]
                if played.reported[user]:
                    reporters[n_reporters] = user
                    times[n_reporters] = played.reported[user]
                    n_reporters += 1
        if n_members == 0:
            continue
        n_rounds = played.released[number]
        if n_rounds == 0:
            # Withheld: fewer than min_group_size of them reported.
            belief.tallies[MEMBERS] += n_members
            belief.tallies[REPORTS] += min(min_group_size - 1.0, n_members * rate)
            continue
        belief.tallies[MEMBERS] += n_members * n_rounds
        belief.tallies[REPORTS] += times[:n_reporters].sum()
        members = TotalMembers(arm, reporters[:n_reporters], times[:n_reporters], n_rounds)
        _update(belief, members, played.totals[number], scale, row)


@kernel(borrows=True)
def _update(belief: Belief, of: TotalMembers, total: float, scale: float, row: FloatArray) -> None:
    """Update by one total, a Kalman step; ``scale`` is the overdispersion."""
    means, covariance = belief.means[of.arm], belief.covariances[of.arm]
    error, noise = total, 0.0
    for index in range(len(of.members)):
        user, times = of.members[index], of.times[index]
        error -= times * means[user]
        noise += times * reward_noise(means[user], covariance[user, user])
    variance = sum_variance(covariance, of.members, of.times, row)
    if variance < noise:  # of well-known means the error shows the noise
        belief.tallies[SQUARED_ERRORS] += (error * error - variance) / of.n_rounds
        belief.tallies[EXPECTED_SQUARES] += noise / of.n_rounds
    noise *= scale
    rate = min(1.0, JOINT.noise_rate * of.n_rounds)
    belief.noise[of.arm] += rate * (noise / of.n_rounds - belief.noise[of.arm])
    precision = 1.0 / (variance + noise)
    evidence = 0.25 * error * error * precision - 0.5 * LOG_2  # for twice the variance
    belief.tallies[CHANGE] = max(0.0, belief.tallies[CHANGE] + evidence)
    for user in range(len(means)):
        means[user] += row[user] * precision * error
        for other in range(len(means)):
            covariance[user, other] -= (row[user] * precision) * row[other]
        covariance[user, user] = max(covariance[user, user], JOINT.min_variance)


@kernel()
def _absorb_all(beliefs: Belief, played: RoundTotals, min_group_size: int, drift: float) -> None:
    n_shards, n_arms, size = beliefs.means.shape
    for shard in range(n_shards):
        belief = shard_belief(beliefs, shard)
        absorb(belief, of_users(played, shard * size, (shard + 1) * size), min_group_size)
        if drift > 0.0:
            changed = belief.tallies[CHANGE] > math.log(JOINT.prior_variance / drift)
            if changed:
                belief.tallies[CHANGE] = 0.0
            for arm in range(n_arms):
                for user in range(size):
                    variance = belief.covariances[arm, user, user]
                    wider = variance + (JOINT.prior_variance if changed else drift)
                    limit = max(variance, 2 * JOINT.prior_variance)
                    belief.covariances[arm, user, user] = min(wider, limit)


class Mixture(NamedTuple):
    """The posterior of one shard's users on every arm."""

    chances: FloatArray  # (2, n_arms, n_users) of being of either kind
    means: FloatArray  # (2, n_arms, n_users) as either kind
    variances: FloatArray  # (2, n_arms, n_users)


class Centre(NamedTuple):
    """The mean of an arm's crowd, around which users' means are drawn."""

    mean: float
    variance: float
    user_variance: float  # of the normal prior around it
    weight: float  # of a user's row sum in its covariance with the crowd's mean


@kernel()
def mixed(belief: Belief) -> Mixture:
    """Return what every user's mean is as either kind, and how likely each kind is."""
    n_arms, n_users = belief.means.shape
    shape = (2, n_arms, n_users)
    mixture = Mixture(np.empty(shape), np.empty(shape), np.empty(shape))
    for arm in range(n_arms):
        centre = _centre(belief, arm)
        for user in range(n_users):
            _exchange_prior(belief, arm, user, centre, mixture)
    return mixture


@kernel(borrows=True)
def _centre(belief: Belief, arm: int) -> Centre:
    """Return the posterior of the crowd's mean, normal given all users' means."""
    prior, n_users = belief.prior, belief.means.shape[1]
    share = prior.share[arm]
    user_variance = (1.0 - share) * prior.core[arm] + share * prior.outsider[arm]
    precision = n_users / user_variance + 1.0 / JOINT.prior_variance
    weight = 1.0 / (user_variance * precision)
    mean = weight * belief.means[arm].sum()
    mean += JOINT.prior_mean / (JOINT.prior_variance * precision)
    variance = 1.0 / precision + weight * weight * belief.covariances[arm].sum()
    return Centre(mean, variance, user_variance, weight)


@kernel(borrows=True)
def _exchange_prior(belief: Belief, arm: int, user: int, centre: Centre, mixture: Mixture) -> None:
    """Fill one user's part of an arm."""
    prior = belief.prior
    mean, variance = belief.means[arm, user], belief.covariances[arm, user, user]
    with_centre = centre.weight * belief.covariances[arm, user].sum()
    distance = mean - centre.mean
    spread = max(variance - 2.0 * with_centre + centre.variance, JOINT.min_variance)
    spread = min(spread, centre.user_variance)
    precision = max(1.0 / spread - 1.0 / centre.user_variance, JOINT.min_information)
    pull = distance / spread
    x = pull / precision
    core, outsider = prior.core[arm] + 1.0 / precision, prior.outsider[arm] + 1.0 / precision
    log_odds = 0.5 * (math.log(core / outsider) + x * x * (1.0 / core - 1.0 / outsider))
    odds = prior.share[arm] / (1.0 - prior.share[arm]) * math.exp(min(log_odds, 300.0))
    mixture.chances[OUTSIDER, arm, user] = odds / (1.0 + odds)
    mixture.chances[CORE, arm, user] = 1.0 / (1.0 + odds)
    slope = (variance - with_centre) / spread  # of the mean against its distance from the crowd
    for kind in range(2):
        distance_variance = prior.core[arm] if kind == CORE else prior.outsider[arm]
        new_spread = 1.0 / (1.0 / distance_variance + precision)
        new_variance = variance + slope * slope * (new_spread - spread)
        mixture.means[kind, arm, user] = mean + slope * (new_spread * pull - distance)
        mixture.variances[kind, arm, user] = max(new_variance, JOINT.min_variance)


@kernel(borrows=True)
def mixed_moments(mixture: Mixture, arm: int, user: int) -> tuple[float, float]:
    """Return the mean and the variance of a user of unknown kind."""
    chance = mixture.chances[OUTSIDER, arm, user]
    first, second = mixture.means[CORE, arm, user], mixture.means[OUTSIDER, arm, user]
    mean = first + chance * (second - first)
    variance = (1.0 - chance) * mixture.variances[CORE, arm, user]
    variance += chance * mixture.variances[OUTSIDER, arm, user]
    return mean, variance + chance * (1.0 - chance) * (second - first) ** 2
