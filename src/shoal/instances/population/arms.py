"""Arm means that a log allows: drawn towards each other as far as the log says.

The largest of several estimates is too large on average, and most so where the arms are equal. The
arms' means therefore have a normal distribution around a common mean in the prior, with a variance
that is 0 with probability 1/5 and otherwise anything, on a logarithmic scale.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import FloatArray
from shoal.instances.population.moments import Moments

PRIOR_EQUAL = 0.2
"""Prior probability that all arms have the same mean."""

N_SCALES = 25
NEARLY_ZERO = 1e-6  # times the smallest error: a variance of 0 whose inverse exists


def draw_arm_means(moments: Moments, rng: np.random.Generator) -> FloatArray:
    """Draw the arms' means from their posterior, (n_arms,)."""
    estimates = moments.arm_means
    n_arms = len(estimates)
    # Without any variation in the log, the estimated errors are proportional to each other.
    errors = moments.arm_covariance + 1e-6 * np.diag(np.diag(moments.arm_covariance))
    information = np.linalg.inv(errors)
    if n_arms > 1:
        contrasts = np.eye(n_arms) - 1 / n_arms
        scales = _scales(moments)
        variance = rng.choice(scales, p=_scale_probabilities(moments, scales))
        covariance = np.linalg.inv(information + contrasts / variance)
    else:
        covariance = errors
    centre = covariance @ information @ estimates
    drawn = rng.multivariate_normal(centre, covariance, method="eigh")
    means: FloatArray = np.clip(drawn, 0.1 * estimates, 1 - 0.1 * (1 - estimates))
    return means


def _scales(moments: Moments) -> FloatArray:
    """Return the variances between arms that are considered; the first stands for 0."""
    errors = np.diag(moments.arm_covariance)
    largest = (moments.arm_means * (1 - moments.arm_means)).max()
    low = 0.01 * errors.min()
    return np.concatenate(
        [[NEARLY_ZERO * errors.min()], np.geomspace(low, max(largest, 2 * low), N_SCALES)]
    )


def _scale_probabilities(moments: Moments, scales: FloatArray) -> FloatArray:
    n_arms = len(moments.arm_means)
    basis = np.linalg.qr(np.column_stack([np.ones(n_arms), np.eye(n_arms)[:, 1:]]))[0][:, 1:]
    values, vectors = np.linalg.eigh(basis.T @ moments.arm_covariance @ basis)
    squares = (vectors.T @ basis.T @ moments.arm_means) ** 2
    variances = values + scales[:, None]  # (n_scales, n_arms - 1)
    logs = -0.5 * (np.log(variances) + squares / variances).sum(axis=1)
    priors = np.full(len(scales), (1 - PRIOR_EQUAL) / (len(scales) - 1))
    priors[0] = PRIOR_EQUAL
    weights = priors * np.exp(logs - logs.max())
    probabilities: FloatArray = weights / weights.sum()
    return probabilities
