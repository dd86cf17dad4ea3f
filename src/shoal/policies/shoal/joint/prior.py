"""How users differ: the prior of a user's distance from the crowd, learnt from the totals.

On an arm of mean b most users differ from the crowd by a variance of r b(1 - b); a few, the
outsiders, by that of uniform means. The ratio r is one of ``RATIOS``, the outsiders' share one of
``SHARES``, each learnt per arm. With probability 1/2 all arms of a shard have the same r, so that
an arm of which little is known learns from the others, and an arm on which users agree does not
make them agree elsewhere.

A posterior's inverse covariance less the prior's is the information A, and its inverse covariance
times its mean, counted from the prior's, a vector v. In A's eigenvectors, with eigenvalues a and u
the vector of ones, the likelihood of a normal prior with user variance t, and with shared variance
c, is

    2 log L = sum of (t v² / (1 + a t) - log(1 + a t)) + h² / p - log(c p),
    h = sum of u v / (1 + a t),  p = 1 / c + sum of u² a / (1 + a t).

The posterior under another t follows from the same sums. A mixture's likelihood is that of the
normal with its variance, corrected user by user as if users were observed apart
(``mixture_likelihoods``).
"""

from typing import NamedTuple

import numpy as np

from shoal.arrays import FloatArray
from shoal.policies.shoal.constants import JOINT
from shoal.threads import one_thread

RATIOS: FloatArray = 2.0 ** -np.arange(JOINT.n_ratios, dtype=np.float64)
SHARES = np.array(JOINT.outsider_shares)


class UserPrior(NamedTuple):
    """How a user's mean differs from the crowd's, on each arm; or, with an axis in front, shards'.

    >>> uniform_prior((2,)).variance.round(4)
    array([0.0833, 0.0833])
    """

    core: FloatArray  # (n_arms,) variance of most users
    outsider: FloatArray  # (n_arms,) variance of the outsiders
    share: FloatArray  # (n_arms,) probability of being one

    @property
    def variance(self) -> FloatArray:
        """The variance of a user of unknown kind, (n_arms,)."""
        return (1 - self.share) * self.core + self.share * self.outsider


def uniform_prior(shape: tuple[int, ...]) -> UserPrior:
    """Return the prior before the first total: everyone's mean is uniform."""
    variance = np.full(shape, JOINT.prior_variance)
    return UserPrior(variance, variance.copy(), np.full(shape, SHARES.mean()))


class Likelihood(NamedTuple):
    """The likelihood of users' means on one arm, in its eigenvectors."""

    directions: FloatArray  # (n_users, n_users) orthogonal, in columns
    precisions: FloatArray  # (n_users,) information on the means in these directions
    values: FloatArray  # (n_users,) precisions times the maximum's place


@one_thread
def learn_user_prior(means: FloatArray, covariances: FloatArray, prior: UserPrior) -> None:
    """Learn how users differ on every arm of a shard, and recompute the posterior.

    The posterior of each arm and ``prior``, (n_arms,), change in place.
    """
    centre, shared = JOINT.prior_mean, JOINT.prior_variance
    inside = np.clip(means.mean(axis=1), JOINT.min_ratio_mean, 1 - JOINT.min_ratio_mean)
    scales = inside * (1 - inside)
    log_tables, likelihoods = [], []
    for mean, covariance, variance, scale in zip(
        means, covariances, prior.variance, scales, strict=True
    ):
        likelihood = remove_prior(mean - centre, covariance, variance, shared)
        candidates = _candidates(scale, RATIOS[:, None], SHARES)
        normal = log_likelihoods(likelihood, candidates.variance.ravel(), shared)
        apart = distances(mean, covariance, variance)
        log_tables.append(
            mixture_likelihoods(normal.reshape(candidates.share.shape), *apart, candidates)
        )
        likelihoods.append(likelihood)
    learnt = _candidates(scales, *partially_pool(np.array(log_tables)))
    for old, new in zip(prior, learnt, strict=True):
        old[:] = new
    for arm, likelihood in enumerate(likelihoods):
        offsets, covariances[arm] = apply_prior(likelihood, learnt.variance[arm], shared)
        means[arm] = centre + offsets


def _candidates(scale: FloatArray, ratio: FloatArray, share: FloatArray) -> UserPrior:
    """Return priors on arms of b(1 - b) = ``scale``; outsiders are at least as far as others."""
    core, share = np.broadcast_arrays(ratio * scale, share)
    return UserPrior(core, np.maximum(scale / 3, core), share)


def partially_pool(log_tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the posterior mean of each arm's ratio and of its share of outsiders.

    ``log_tables`` are log likelihoods, (n_arms, n_ratios, n_shares).
    """
    log_tables = log_tables + JOINT.ratio_power * np.log(RATIOS)[:, None]
    likelihood = np.exp(log_tables - log_tables.max(axis=(1, 2), keepdims=True))
    by_ratio = np.maximum(likelihood.mean(axis=2), np.finfo(np.float64).tiny)
    log_common = np.log(by_ratio).sum(axis=0)
    common = np.exp(log_common - log_common.max())
    log_odds = log_common.max() + np.log(common.mean()) - np.log(by_ratio.mean(axis=1)).sum()
    together = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    apart = by_ratio / by_ratio.sum(axis=1, keepdims=True)
    weights = together * common / common.sum() + (1 - together) * apart
    shares = (likelihood * SHARES).mean(axis=2) / by_ratio
    return weights @ RATIOS, (weights * shares).sum(axis=1)


def distances(
    means: FloatArray, covariance: FloatArray, user_variance: float
) -> tuple[FloatArray, FloatArray]:
    """Return what the totals alone say of each user's distance from the crowd, with its variance.

    The crowd's mean is that of the model, whose users' parts have a mean of 0: given all users'
    means it is normal, and a user's distance from it has the posterior below. The prior of the
    distance is divided out.
    """
    shared = JOINT.prior_variance
    precision = len(means) / user_variance + 1 / shared
    with_crowd = covariance.sum(axis=1) / (user_variance * precision)
    crowd = (means.sum() / user_variance + JOINT.prior_mean / shared) / precision
    crowd_variance = 1 / precision + with_crowd.sum() / (user_variance * precision)
    variances = np.diag(covariance) - 2 * with_crowd + crowd_variance
    variances = np.clip(variances, JOINT.min_variance, user_variance)
    information = np.maximum(1 / variances - 1 / user_variance, JOINT.min_information)
    return (means - crowd) / (variances * information), 1 / information


def mixture_likelihoods(
    normal: FloatArray, values: FloatArray, errors: FloatArray, prior: UserPrior
) -> FloatArray:
    """Return the log likelihood of mixtures from that of normals of the same variances.

    ``values`` are observations of users' distances with variances ``errors``. Taken as independent
    they say too much, as totals hold several users: by how much, the ``normal`` likelihood shows,
    which is exact, beside the one that such observations would have.
    """
    users_apart = log_density(values, errors, prior.variance)
    best = np.unravel_index(normal.argmax(), normal.shape)
    exact, apart = normal - normal[best], users_apart - users_apart[best]
    weight = np.clip((exact * apart).sum() / max((apart**2).sum(), JOINT.min_variance), 0, 1)
    return np.asarray(normal + weight * (log_mixture_density(values, errors, prior) - users_apart))


def log_density(values: FloatArray, errors: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the log density of all values under each normal prior ``variance``, to a constant."""
    total = variance[..., None] + errors
    return np.asarray(-0.5 * (values**2 / total + np.log(total)).sum(axis=-1))


def log_mixture_density(values: FloatArray, errors: FloatArray, prior: UserPrior) -> FloatArray:
    """Return the log density of all values under each prior, to the same constant."""
    core, outsider = prior.core[..., None] + errors, prior.outsider[..., None] + errors
    share = prior.share[..., None]
    of_core = np.log1p(-share) - 0.5 * (values**2 / core + np.log(core))
    of_outsider = np.log(share) - 0.5 * (values**2 / outsider + np.log(outsider))
    return np.asarray(np.logaddexp(of_core, of_outsider).sum(axis=-1))


def remove_prior(
    offsets: FloatArray, covariance: FloatArray, user_variance: float, shared_variance: float
) -> Likelihood:
    """Return the likelihood behind a posterior; ``offsets`` are from the prior's mean."""
    n_users = len(offsets)
    inverse = np.linalg.inv(covariance)
    information = inverse + shared_variance / (
        user_variance * (user_variance + n_users * shared_variance)
    )
    information[np.diag_indices(n_users)] -= 1 / user_variance
    precisions, directions = np.linalg.eigh((information + information.T) / 2)
    return Likelihood(directions, np.maximum(precisions, 0.0), inverse @ offsets @ directions)


def apply_prior(
    likelihood: Likelihood, user_variance: float, shared_variance: float
) -> tuple[FloatArray, FloatArray]:
    """Return the offsets from the prior's mean, and the covariance, under this prior."""
    directions, precisions, values = likelihood
    ones = directions.sum(axis=0)
    shrinkage = 1 / (1 + precisions * user_variance)
    precision = 1 / shared_variance + (ones**2 * precisions * shrinkage).sum()
    shared = (ones * values * shrinkage).sum() / precision
    offsets = directions @ (shrinkage * (user_variance * values + ones * shared))
    column = directions @ (ones * shrinkage)
    covariance = (directions * (user_variance * shrinkage)) @ directions.T
    return offsets, covariance + np.outer(column, column) / precision


def log_likelihoods(
    likelihood: Likelihood, user_variances: FloatArray, shared_variance: float
) -> FloatArray:
    """Return the log likelihood of each user variance, up to a constant."""
    directions, precisions, values = likelihood
    ones = directions.sum(axis=0)
    growth = 1 + precisions * user_variances[:, None]
    alone = (values**2 * user_variances[:, None] / growth - np.log(growth)).sum(axis=1)
    precision = 1 / shared_variance + (ones**2 * precisions / growth).sum(axis=1)
    shared = (ones * values / growth).sum(axis=1)
    return np.asarray(alone + shared**2 / precision - np.log(shared_variance * precision)) / 2
