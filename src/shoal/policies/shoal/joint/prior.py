"""How much users differ: the prior variance of a user's part, learnt from the totals.

On an arm of mean b, users' parts have a variance of r b(1 - b). One ratio r holds for all arms of a
shard; it is the posterior mean over ``RATIOS``, equally likely a priori.

A posterior's inverse covariance less the prior's is the information A, and its inverse covariance
times its mean, counted from the prior's, a vector v. In A's eigenvectors, with eigenvalues a and u
the vector of ones, the likelihood of a user variance t, with a shared prior variance c, is

    2 log L = sum of (t v² / (1 + a t) - log(1 + a t)) + h² / p - log(c p),
    h = sum of u v / (1 + a t),  p = 1 / c + sum of u² a / (1 + a t).

The posterior under another t follows from the same sums.
"""

from typing import NamedTuple

import numpy as np

from shoal.arrays import FloatArray
from shoal.policies.shoal.constants import JOINT
from shoal.threads import one_thread

RATIOS = 2.0 ** -np.arange(JOINT.n_ratios)


class Likelihood(NamedTuple):
    """The likelihood of users' means on one arm, in its eigenvectors."""

    directions: FloatArray  # (n_users, n_users) orthogonal, in columns
    precisions: FloatArray  # (n_users,) information on the means in these directions
    values: FloatArray  # (n_users,) precisions times the maximum's place


@one_thread
def learn_user_variances(
    means: FloatArray, covariances: FloatArray, user_variances: FloatArray
) -> None:
    """Learn the user variance on every arm of a shard, and recompute the posterior.

    The posterior of each arm and ``user_variances``, the prior's, (n_arms,), change in place.
    """
    centre, shared = JOINT.prior_mean, JOINT.prior_variance
    inside = np.clip(means.mean(axis=1), JOINT.min_ratio_mean, 1 - JOINT.min_ratio_mean)
    scales = inside * (1 - inside)
    likelihoods = [
        remove_prior(mean - centre, covariance, variance, shared)
        for mean, covariance, variance in zip(means, covariances, user_variances, strict=True)
    ]
    total = np.zeros(len(RATIOS))
    for likelihood, scale in zip(likelihoods, scales, strict=True):
        total += log_likelihoods(likelihood, RATIOS * scale, shared)
    weights = np.exp(total - total.max())
    learnt = scales * (weights @ RATIOS / weights.sum())
    for arm in np.flatnonzero(np.abs(np.log(learnt / user_variances)) > JOINT.min_log_change):
        user_variances[arm] = learnt[arm]
        offsets, covariances[arm] = apply_prior(likelihoods[arm], learnt[arm], shared)
        means[arm] = centre + offsets


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
