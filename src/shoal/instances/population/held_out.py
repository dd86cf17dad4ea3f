"""Do tastes predict rows that were not used? The check of a population on half of each user's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.instances.population.moments import estimate_moments
from shoal.instances.population.pairs import PairTotals
from shoal.instances.population.posterior import CovariancePosterior, fit_posterior
from shoal.instances.population.worlds import posterior_means

MAX_CHECKED = 20_000
"""Users whose held-out rows are predicted; of more, a random sample."""


class HeldOut(NamedTuple):
    """By how much tastes predict rows that were held out, against users without tastes.

    Attributes
    ----------
    gain
        Difference of the log likelihood, per 1,000 rows.
    error
        Its standard error, over users.
    """

    gain: float
    error: float


def check_held_out(train: PairTotals, test: PairTotals, rng: np.random.Generator) -> HeldOut | None:
    """Fit one half, predict the other; None where no user has rows in both."""
    rows = test.counts.sum(axis=1)
    users = np.flatnonzero((train.counts.sum(axis=1) > 0) & (rows > 0))
    if len(users) < 2 or train.n_arms < 2:
        return None
    if len(users) > MAX_CHECKED:
        users = rng.choice(users, MAX_CHECKED, replace=False)
    moments = estimate_moments(train)
    posterior = fit_posterior(moments, rng)
    train, test = train.of_users(users), test.of_users(users)
    scores = []
    for taste in (False, True):
        chosen = np.array([(model.rank > 0) == taste for model in posterior.models])
        weights = np.where(chosen, posterior.probabilities, 0.0)
        only = CovariancePosterior(
            posterior.models, posterior.particles, weights / max(weights.sum(), 1e-300)
        )
        mean = moments.arm_means
        centre, _ = posterior_means(train, moments, only.covariance, mean)
        centre = np.clip(centre, 0.02 * mean, 1 - 0.02 * (1 - mean))
        logs = test.sums * np.log(centre) + (test.counts - test.sums) * np.log1p(-centre)
        scores.append(logs.sum(axis=1))
    difference = scores[1] - scores[0]
    total = rows[users].sum() / 1000
    error = difference.std(ddof=1) * np.sqrt(len(users)) / total
    return HeldOut(float(difference.sum() / total), float(error))
