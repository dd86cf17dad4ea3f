"""How much users differ: learnt from the totals that told them apart.

On an arm of mean b, users' own parts are taken to have a variance of r b(1 - b). Uniform means
have r = 1/3; where all agree, r is 0. One ratio r holds for all arms of a shard. Of ``RATIOS``, all
equally likely beforehand, the posterior mean is believed: while totals say little, users may
differ much.

What totals told is in the posterior: its inverse covariance less the prior's is the information
A, and its inverse covariance times its mean, counted from the prior's, a vector v. In A's
eigenvectors, with eigenvalues a, the likelihood of an own variance t is a product, but for one
number that all share, with a prior variance of c:

    2 log L = sum of (t v² / (1 + a t) - log(1 + a t)) + h² / p - log(c p),
    h = sum of u v / (1 + a t),  p = 1 / c + sum of u² a / (1 + a t),

u being the vector of ones. The posterior under another t follows from the same sums.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.arrays import FloatArray
from shoal.threads import one_thread

RATIOS = 2.0 ** -np.arange(13)
EDGE = 0.01  # an arm's distance from 0 and 1 below which its mean is not believed
NEWS = 0.05  # a change of a variance's logarithm that is worth reckoning anew


class Told(NamedTuple):
    """What totals told of users' means on one arm, without any prior."""

    directions: FloatArray  # (n_users, n_users) orthogonal, in columns
    precisions: FloatArray  # (n_users,) of the means in these directions
    values: FloatArray  # (n_users,) precisions times what the means were told to be


@one_thread
def learn_spread(
    means: FloatArray, covariances: FloatArray, own: FloatArray, centre: float, common: float
) -> None:
    """Learn the users' own variance on every arm of a shard, and believe all in that light.

    Parameters
    ----------
    means, covariances
        The posterior of each arm, (n_arms, n_users) and (n_arms, n_users, n_users); changed in
        place.
    own
        The users' own variance before any total, as believed so far, (n_arms,); likewise.
    centre, common
        The prior's mean, and its variance of what all users share.
    """
    inside = np.clip(means.mean(axis=1), EDGE, 1 - EDGE)
    most = inside * (1 - inside)
    told = [
        take_prior_out(mean - centre, covariance, variance, common)
        for mean, covariance, variance in zip(means, covariances, own, strict=True)
    ]
    likelihood = np.zeros(len(RATIOS))
    for seen, room in zip(told, most, strict=True):
        likelihood += log_likelihoods(seen, RATIOS * room, common)
    weights = np.exp(likelihood - likelihood.max())
    learnt = most * (weights @ RATIOS / weights.sum())
    for arm in np.flatnonzero(np.abs(np.log(learnt / own)) > NEWS):
        own[arm] = learnt[arm]
        offsets, covariances[arm] = put_prior_in(told[arm], own[arm], common)
        means[arm] = centre + offsets


def take_prior_out(offsets: FloatArray, covariance: FloatArray, own: float, common: float) -> Told:
    """Return what a posterior has learnt since its prior; ``offsets`` are from the prior's mean."""
    inverse = np.linalg.inv(covariance)
    information = inverse + common / (own * (own + len(offsets) * common))
    information[np.diag_indices(len(offsets))] -= 1 / own
    precisions, directions = np.linalg.eigh((information + information.T) / 2)
    return Told(directions, np.maximum(precisions, 0.0), inverse @ offsets @ directions)


def put_prior_in(told: Told, own: float, common: float) -> tuple[FloatArray, FloatArray]:
    """Return the offsets from the prior's mean, and the covariance, under this prior."""
    ones = told.directions.sum(axis=0)
    doubt = 1 / (1 + told.precisions * own)
    precision = 1 / common + (ones**2 * told.precisions * doubt).sum()
    shared = (ones * told.values * doubt).sum() / precision
    offsets = told.directions @ (doubt * (own * told.values + ones * shared))
    column = told.directions @ (ones * doubt)
    covariance = (told.directions * (own * doubt)) @ told.directions.T
    return offsets, covariance + np.outer(column, column) / precision


def log_likelihoods(told: Told, own: FloatArray, common: float) -> FloatArray:
    """Return the log likelihood of each own variance, up to a constant."""
    ones = told.directions.sum(axis=0)
    growth = 1 + told.precisions * own[:, None]
    alone = (told.values**2 * own[:, None] / growth - np.log(growth)).sum(axis=1)
    precision = 1 / common + (ones**2 * told.precisions / growth).sum(axis=1)
    shared = (ones * told.values / growth).sum(axis=1)
    return np.asarray(alone + shared**2 / precision - np.log(common * precision)) / 2
