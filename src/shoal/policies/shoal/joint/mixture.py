"""What a user's mean is, if most users are near the crowd and a few are outsiders.

The joint posterior takes a user's distance from the crowd as normal. Here that prior is exchanged
for the mixture of ``UserPrior``, user by user: the distance's posterior, divided by its prior, is
an observation x with a precision, which either kind of user explains with its own variance. A user
is an outsider with the probability that Bayes' rule gives, and has a normal posterior as either.
"""

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import FloatArray
from shoal.kernels import kernel
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.posterior import Belief

CORE, OUTSIDER = range(2)


class Mixture(NamedTuple):
    """The posterior of one shard's users on every arm."""

    chances: FloatArray  # (2, n_arms, n_users) of being of either kind
    means: FloatArray  # (2, n_arms, n_users) as either kind
    variances: FloatArray  # (2, n_arms, n_users)


class Crowd(NamedTuple):
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
        crowd = _crowd(belief, arm)
        for user in range(n_users):
            _exchange_prior(belief, arm, user, crowd, mixture)
    return mixture


@kernel()
def _crowd(belief: Belief, arm: int) -> Crowd:
    """Return the posterior of the crowd's mean, normal given all users' means."""
    prior, n_users = belief.prior, belief.means.shape[1]
    share = prior.share[arm]
    user_variance = (1.0 - share) * prior.core[arm] + share * prior.outsider[arm]
    precision = n_users / user_variance + 1.0 / JOINT.prior_variance
    weight = 1.0 / (user_variance * precision)
    mean = weight * belief.means[arm].sum()
    mean += JOINT.prior_mean / (JOINT.prior_variance * precision)
    variance = 1.0 / precision + weight * weight * belief.covariances[arm].sum()
    return Crowd(mean, variance, user_variance, weight)


@kernel()
def _exchange_prior(belief: Belief, arm: int, user: int, crowd: Crowd, mixture: Mixture) -> None:
    """Fill one user's part of an arm."""
    prior = belief.prior
    mean, variance = belief.means[arm, user], belief.covariances[arm, user, user]
    with_crowd = crowd.weight * belief.covariances[arm, user].sum()
    distance = mean - crowd.mean
    spread = max(variance - 2.0 * with_crowd + crowd.variance, JOINT.min_variance)
    spread = min(spread, crowd.user_variance)
    precision = max(1.0 / spread - 1.0 / crowd.user_variance, JOINT.min_information)
    pull = distance / spread
    x = pull / precision
    near, far = prior.core[arm] + 1.0 / precision, prior.outsider[arm] + 1.0 / precision
    log_odds = 0.5 * (math.log(near / far) + x * x * (1.0 / near - 1.0 / far))
    odds = prior.share[arm] / (1.0 - prior.share[arm]) * math.exp(min(log_odds, 300.0))
    mixture.chances[OUTSIDER, arm, user] = odds / (1.0 + odds)
    mixture.chances[CORE, arm, user] = 1.0 / (1.0 + odds)
    slope = (variance - with_crowd) / spread  # of the mean against its distance from the crowd
    for kind in range(2):
        distance_variance = prior.core[arm] if kind == CORE else prior.outsider[arm]
        new_spread = 1.0 / (1.0 / distance_variance + precision)
        new_variance = variance + slope * slope * (new_spread - spread)
        mixture.means[kind, arm, user] = mean + slope * (new_spread * pull - distance)
        mixture.variances[kind, arm, user] = max(new_variance, JOINT.min_variance)


@kernel()
def mixed_moments(mixture: Mixture, arm: int, user: int) -> tuple[float, float]:
    """Return the mean and the variance of a user of unknown kind."""
    chance = mixture.chances[OUTSIDER, arm, user]
    first, second = mixture.means[CORE, arm, user], mixture.means[OUTSIDER, arm, user]
    mean = first + chance * (second - first)
    variance = (1.0 - chance) * mixture.variances[CORE, arm, user]
    variance += chance * mixture.variances[OUTSIDER, arm, user]
    return mean, variance + chance * (1.0 - chance) * (second - first) ** 2
