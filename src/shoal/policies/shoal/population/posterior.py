"""One user's posterior from its evidence per arm, as a core user and as an outsider.

The evidence is a precision L_j and a weighted value h_j on each arm j. A core user's means are
b + F f + u with factor scores f ~ N(0, I) and u ~ N(0, diag(s)). No matrix over arms is formed: the
cost is the rank's. On any arm a user may be an outsider, whose mean there has the outsiders'
variance around b and nothing to do with the factors.
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
    shares: FloatArray  # (n_arms,) e, the probability of being an outsider
    outsider: FloatArray  # (n_arms,) the variance of outsiders' means


class Evidence(NamedTuple):
    """What totals say about each user on each arm."""

    precision: SmallFloatArray  # (n_users, n_arms) L
    value: SmallFloatArray  # (n_users, n_arms) h, precision times observed mean


class Posterior(NamedTuple):
    """One user's means, N(core, loadings loadings' + diag(specific)) or an outsider's."""

    core: FloatArray  # (n_arms,)
    loadings: FloatArray  # (n_arms, rank)
    specific: FloatArray  # (n_arms,)
    chances: FloatArray  # (n_arms,) of being an outsider
    outsider: FloatArray  # (n_arms,) the mean as one
    outsider_variances: FloatArray  # (n_arms,)
    means: FloatArray  # (n_arms,) of the mixture
    variances: FloatArray  # (n_arms,) of the mixture
    root: FloatArray  # (rank, rank) workspace
    scores: FloatArray  # (rank,) workspace


@kernel()
def workspace(n_arms: int, rank: int) -> Posterior:
    """Return a posterior to be filled, once for all users."""
    chances, outsider, outsider_variances, means, variances = np.empty((5, n_arms))
    return Posterior(
        np.empty(n_arms), np.empty((n_arms, rank)), np.empty(n_arms), chances, outsider,
        outsider_variances, means, variances, np.empty((rank, rank)), np.empty(rank),
    )  # fmt: skip


@kernel(fastmath=True, borrows=True)
def infer_core(prior: Prior, evidence: Evidence, user: int, posterior: Posterior) -> None:
    """Fill one core user's posterior from its evidence, in O(n_arms rank² + rank³).

    Given the scores, arms are independent; so the scores come first, from evidence of weight
    L / (1 + s L), by the Cholesky root of I + F' diag(weight) F.
    """
    precision, value = evidence.precision[user], evidence.value[user]
    means, loadings, specific = posterior.core, posterior.loadings, posterior.specific
    root, scores = posterior.root, posterior.scores
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


@kernel(fastmath=True, borrows=True)
def infer(prior: Prior, evidence: Evidence, user: int, posterior: Posterior) -> None:
    """Fill one user's posterior, of unknown kind: on each arm alone, by Bayes' rule.

    What other arms tell of a core user is its prior here: the evidence x = h / L has a variance of
    1 / (L (1 - L v)) around it, v being the posterior's.
    """
    infer_core(prior, evidence, user, posterior)
    for arm in range(len(prior.means)):
        weight, value = evidence.precision[user, arm], evidence.value[user, arm]
        variance = core_variance(posterior, arm)
        odds = prior.shares[arm] / (1.0 - prior.shares[arm])
        if weight > 0.0:
            odds *= math.exp(min(log_odds(prior, weight, value, arm, posterior), 300.0))
        chance = odds / (1.0 + odds)
        outsider_variance = 1.0 / (1.0 / prior.outsider[arm] + weight)
        outsider = outsider_variance * (prior.means[arm] / prior.outsider[arm] + value)
        distance = outsider - posterior.core[arm]
        posterior.chances[arm] = chance
        posterior.outsider[arm], posterior.outsider_variances[arm] = outsider, outsider_variance
        posterior.means[arm] = posterior.core[arm] + chance * distance
        spread = variance + chance * (outsider_variance - variance)
        posterior.variances[arm] = spread + chance * (1.0 - chance) * distance * distance


@kernel(fastmath=True, borrows=True)
def log_odds(prior: Prior, weight: float, value: float, arm: int, posterior: Posterior) -> float:
    """Return by how much likelier an outsider explains the evidence on an arm."""
    unknown = max(1.0 - weight * core_variance(posterior, arm), 1e-6)
    observed = value / weight
    spread = prior.outsider[arm] + 1.0 / weight
    core_square = (observed - posterior.core[arm]) ** 2 * weight / unknown
    outsider_square = (observed - prior.means[arm]) ** 2 / spread
    return float(0.5 * (core_square - outsider_square - math.log(weight * unknown * spread)))


@kernel(borrows=True)
def core_variance(posterior: Posterior, arm: int) -> float:
    """Return the variance of a core user's mean on an arm."""
    variance = posterior.specific[arm]
    for a in range(posterior.loadings.shape[1]):
        variance += posterior.loadings[arm, a] ** 2
    return float(variance)


@kernel(fastmath=True)
def marginals(prior: Prior, evidence: Evidence) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return every user's chance of each kind, mean and variance, each (2, n_users, n_arms)."""
    n_users, n_arms = evidence.precision.shape
    posterior = workspace(n_arms, prior.factors.shape[1])
    chances, means, variances = np.empty((3, 2, n_users, n_arms))
    for user in range(n_users):
        infer(prior, evidence, user, posterior)
        chances[0, user], chances[1, user] = 1.0 - posterior.chances, posterior.chances
        means[0, user], means[1, user] = posterior.core, posterior.outsider
        variances[1, user] = posterior.outsider_variances
        for arm in range(n_arms):
            variances[0, user, arm] = core_variance(posterior, arm)
    return chances, means, variances
