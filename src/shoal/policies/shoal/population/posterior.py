"""One user's posterior under the factor prior N(b, F F' + diag(s)), from evidence per arm.

The evidence is a precision L_j and a weighted value h_j on each arm j; the means are b + F f + e
with factor scores f ~ N(0, I) and e ~ N(0, diag(s)). No matrix over arms is formed: the cost is the
rank's.
"""

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import FloatArray, SmallFloatArray
from shoal.kernels import kernel


class Prior(NamedTuple):
    """The distribution of a user's means before any evidence."""

    means: FloatArray  # (n_arms,) b
    factors: FloatArray  # (n_arms, rank) F
    specific: FloatArray  # (n_arms,) s, the variance that no factor explains


class Evidence(NamedTuple):
    """What totals say about each user on each arm."""

    precision: SmallFloatArray  # (n_users, n_arms) L
    value: SmallFloatArray  # (n_users, n_arms) h, precision times observed mean


class Posterior(NamedTuple):
    """One user's means, N(means, loadings loadings' + diag(specific)), with workspace."""

    means: FloatArray  # (n_arms,)
    loadings: FloatArray  # (n_arms, rank)
    specific: FloatArray  # (n_arms,)
    root: FloatArray  # (rank, rank) workspace
    scores: FloatArray  # (rank,) workspace


@kernel()
def workspace(n_arms: int, rank: int) -> Posterior:
    """Return a posterior to be filled, once for all users."""
    return Posterior(
        np.empty(n_arms), np.empty((n_arms, rank)), np.empty(n_arms), np.empty((rank, rank)),
        np.empty(rank),
    )  # fmt: skip


@kernel(fastmath=True)
def infer(prior: Prior, evidence: Evidence, user: int, posterior: Posterior) -> None:
    """Fill one user's posterior from its evidence, in O(n_arms rank² + rank³).

    Given the scores, arms are independent; so the scores come first, from evidence of weight
    L / (1 + s L), by the Cholesky root of I + F' diag(weight) F.
    """
    precision, value = evidence.precision[user], evidence.value[user]
    means, loadings, specific, root, scores = posterior
    n_arms, rank = loadings.shape
    for a in range(rank):
        scores[a] = 0.0
        root[a, : a + 1] = 0.0
        root[a, a] = 1.0
    for arm in range(n_arms):
        weight = precision[arm]
        if weight > 0.0:
            share = 1.0 / (1.0 + prior.specific[arm] * weight)
            error = (value[arm] - weight * prior.means[arm]) * share
            for a in range(rank):
                factor = prior.factors[arm, a]
                scores[a] += factor * error
                for c in range(a + 1):
                    root[a, c] += factor * weight * share * prior.factors[arm, c]
    for a in range(rank):
        for c in range(a + 1):
            rest = root[a, c]
            for e in range(c):
                rest -= root[a, e] * root[c, e]
            root[a, c] = math.sqrt(rest) if a == c else rest / root[c, c]
        rest = scores[a]
        for e in range(a):
            rest -= root[a, e] * scores[e]
        scores[a] = rest / root[a, a]
    for arm in range(n_arms):
        weight = precision[arm]
        share = 1.0 / (1.0 + prior.specific[arm] * weight)
        mean = prior.means[arm]
        for a in range(rank):
            rest = prior.factors[arm, a]
            for e in range(a):
                rest -= root[a, e] * loadings[arm, e]
            loadings[arm, a] = rest / root[a, a]
            mean += loadings[arm, a] * scores[a]
        for a in range(rank):
            loadings[arm, a] *= share
        specific[arm] = prior.specific[arm] * share
        means[arm] = mean + specific[arm] * (value[arm] - weight * mean)


@kernel(fastmath=True)
def marginals(prior: Prior, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Return every user's means and their variances, each (n_users, n_arms)."""
    n_users, n_arms = evidence.precision.shape
    posterior = workspace(n_arms, prior.factors.shape[1])
    means, variances = np.empty((2, n_users, n_arms))
    for user in range(n_users):
        infer(prior, evidence, user, posterior)
        means[user] = posterior.means
        for arm in range(n_arms):
            variances[user, arm] = posterior.specific[arm] + (posterior.loadings[arm] ** 2).sum()
    return means, variances
