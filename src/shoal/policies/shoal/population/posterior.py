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
    core_variances: FloatArray  # (n_arms,)
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
    core, core_variances, specific, chances = np.empty((4, n_arms))
    outsider, outsider_variances, means, variances = np.empty((4, n_arms))
    return Posterior(
        core, core_variances, np.empty((n_arms, rank)), specific, chances, outsider,
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
        variance = specific[arm] = prior.specific[arm] * share
        for a in range(rank):
            loadings[arm, a] *= share
            variance += loadings[arm, a] ** 2
        posterior.core_variances[arm] = variance
        means[arm] = mean + specific[arm] * (value[arm] - weight * mean)


@kernel(fastmath=True, borrows=True)
def infer(prior: Prior, evidence: Evidence, user: int, posterior: Posterior) -> None:
    """Fill one user's posterior, of unknown kind: on each arm alone, by Bayes' rule.

    What other arms tell of a core user is its prior here: the evidence x = h / L has a variance of
    1 / (L (1 - L v)) around it, v being the posterior's.
    """
    infer_core(prior, evidence, user, posterior)
    infer_kinds(prior, evidence, user, posterior, 0, len(prior.means))


@kernel(fastmath=True, borrows=True)
def infer_kinds(
    prior: Prior, evidence: Evidence, user: int, posterior: Posterior, first: int, end: int
) -> None:
    """Fill the rest of a posterior, for the arms from ``first`` to ``end``, from a core user's."""
    for arm in range(first, end):
        weight, value = evidence.precision[user, arm], evidence.value[user, arm]
        mean, spread = prior.means[arm], prior.outsider[arm]
        core, variance = posterior.core[arm], posterior.core_variances[arm]
        odds = prior.shares[arm] / (1.0 - prior.shares[arm])
        if weight > 0.0:
            odds *= likelihood_ratio(weight, value, core, variance, mean, spread)
        chance = odds / (1.0 + odds)
        outsider_variance = spread / (1.0 + spread * weight)
        outsider = mean + outsider_variance * (value - weight * mean)
        distance = outsider - core
        posterior.chances[arm] = chance
        posterior.outsider[arm], posterior.outsider_variances[arm] = outsider, outsider_variance
        posterior.means[arm] = core + chance * distance
        of_both = variance + chance * (outsider_variance - variance)
        posterior.variances[arm] = of_both + chance * (1.0 - chance) * distance * distance


@kernel(fastmath=True)
def likelihood_ratio(
    weight: float, value: float, core: float, variance: float, mean: float, spread: float
) -> float:
    """Return by how much likelier an outsider explains the evidence on an arm.

    A core user's mean is N(``core``, ``variance``) after it, an outsider's N(``mean``, ``spread``)
    before.
    """
    unknown, growth = max(1.0 - weight * variance, 1e-6), 1.0 + weight * spread
    core_square = (value - weight * core) ** 2 / unknown
    outsider_square = (value - weight * mean) ** 2 / growth
    exponent = 0.5 * (core_square - outsider_square) / weight
    return math.exp(min(exponent, 300.0)) / math.sqrt(unknown * growth)


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
        variances[0, user], variances[1, user] = (
            posterior.core_variances,
            posterior.outsider_variances,
        )
    return chances, means, variances
