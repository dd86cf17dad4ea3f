"""Learning the prior that all users share: factors, and the variance that may still be hidden.

The evidence of user i is x_i ~ N(b, Sigma + diag(1 / L_i)), so that Sigma, the covariance of
users' means over arms, has a likelihood. Three steps estimate it:

1. *Scoring*. With W_i = (Sigma + diag(1 / L_i))^-1 and u_i = W_i (x_i - b), the score of the entry
   (j, l) is the sum of u_j u_l - W_jl, with covariance I[jl, pq] = sum of W_jp W_lq + W_jq W_lp.
   With J = 2 on the diagonal's entries and 1 elsewhere, J I^-1 score is the step to the maximum and
   J I^-1 J the step's covariance.
2. *Spiked-Wigner shrinkage*, in units in which every entry's error has about unit variance (2 on
   the diagonal): an eigenvalue y beyond 2 sqrt(K) is a factor of size sqrt(y² - 4K).
3. *Plausibility*. A factor is shrunk once more by p² / (p² + K), as in docs/theory.md.

What no factor explains is ``hidden``: an estimate, pooled over arms, and its error on top, at least
what could be there unseen, and at most the variance of Beta(1, .) or what is evident. The share of
outsiders is the posterior mean over ``SHARES``, as in ``joint.prior``, arm by arm.
"""

import math

import numpy as np

from shoal.arrays import FloatArray, LongArray
from shoal.kernels import kernel
from shoal.policies.shoal.constants import POPULATION
from shoal.policies.shoal.joint.prior import SHARES
from shoal.policies.shoal.population.belief import PopulationBelief, beta_variance
from shoal.policies.shoal.population.posterior import (
    Evidence,
    Prior,
    infer_core,
    likelihood_ratio,
    workspace,
)
from shoal.threads import one_thread


@one_thread
def learn_prior(belief: PopulationBelief, users: LongArray, min_group_size: int) -> None:
    """Learn ``factors``, ``hidden`` and ``shares`` from the evidence of ``users``."""
    covariance, errors = estimate(belief, users)
    inflation = shared_errors(belief, users, min_group_size)
    estimates, error = np.diag(covariance), np.sqrt(np.diag(errors) * inflation)
    means = np.clip(belief.means, POPULATION.min_spread_mean, 1 - POPULATION.min_spread_mean)
    limits = means * (1 - means)
    evident = estimates - POPULATION.evident_deviations * error
    largest = np.clip(evident, beta_variance(means), limits)
    scale = (np.diag(errors) / 2) ** -0.25
    factors = find_factors(covariance, errors, largest * scale**2, inflation) / scale[:, None]
    explained = np.maximum((factors**2).sum(axis=1), 1e-12)
    limit = np.maximum(POPULATION.max_factor_ratio * limits, largest) / explained
    belief.factors = np.ascontiguousarray(factors * np.sqrt(np.minimum(limit, 1.0))[:, None])
    rest = (estimates - (belief.factors**2).sum(axis=1)) / largest
    ratios, deviations = pool(rest, error / largest)
    unseen = 1 / (1 / largest + scale**2 / np.sqrt(len(means)))
    belief.hidden = np.clip(largest * (np.maximum(ratios, 0) + deviations), unseen, largest)
    tables = share_likelihoods(belief.prior(), belief.evidence, users)
    likelihood = np.exp(tables - tables.max(axis=1, keepdims=True))
    belief.shares = likelihood @ SHARES / likelihood.sum(axis=1)


def shared_errors(belief: PopulationBelief, users: LongArray, min_group_size: int) -> FloatArray:
    """Return by how much variances' squared errors exceed those of independent users, (n_arms,).

    Two users who share one of their n totals have errors that correlate by 1 / n, and a user has
    n (C - 1) such companions: 1 + (C - 1) / n. Users count by their information.
    """
    precision = belief.evidence.precision[users].astype(np.float64)
    noise = belief.overdispersion * min_group_size * belief.means * (1 - belief.means)
    totals = noise * (precision**2).sum(axis=0) / np.maximum(precision.sum(axis=0), 1e-12)
    inflation: FloatArray = 1 + (min_group_size - 1) / np.maximum(totals, 1.0)
    return inflation


def pool(values: FloatArray, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return each value shrunk to what all have in common, and its deviation.

    How much values differ beyond their ``errors`` is estimated as DerSimonian and Laird do.

    >>> pooled, deviations = pool(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 1.0]))
    >>> pooled.round(2), deviations.round(2)
    (array([0.75, 1.  , 1.25]), array([0.5, 0.5, 0.5]))
    """
    variances = errors**2
    weights = 1 / variances
    total = weights.sum()
    spread = weights @ (values - weights @ values / total) ** 2 - (len(values) - 1)
    between = max(0.0, spread / max(total - weights @ weights / total, 1e-12))
    weights = 1 / (variances + between)
    common, doubt = weights @ values / weights.sum(), between + 1 / weights.sum()
    gains = doubt / (doubt + variances)
    return common + gains * (values - common), np.sqrt(gains * variances)


def estimate(belief: PopulationBelief, users: LongArray) -> tuple[FloatArray, FloatArray]:
    """Return Sigma after one scoring step, and the variance of each entry's error."""
    n_arms = len(belief.means)
    rows, columns = np.tril_indices(n_arms)
    n_summed = max(POPULATION.min_summed, POPULATION.max_terms // len(rows) ** 2)
    stride = -(-len(users) // n_summed)
    nothing = np.zeros(n_arms)
    prior = Prior(belief.means, belief.factors, belief.hidden, nothing, nothing)
    score, information = _score(prior, belief.evidence, users, max(stride, 1))
    information = np.tril(information) + np.tril(information, -1).T
    diagonal = np.diag(information)
    known = diagonal > 1e-9 * max(diagonal.max(), 1e-300)
    unit = np.where(known, 1 / np.sqrt(np.where(known, diagonal, 1.0)), 0.0)
    scaled = information * np.outer(unit, unit)
    np.fill_diagonal(scaled, 1.0 + POPULATION.ridge)
    inverse = np.linalg.inv(scaled) * np.outer(unit, unit)
    twice = np.where(rows == columns, 2.0, 1.0)
    step = twice * (inverse @ score)
    unknown = POPULATION.unknown_variance
    errors = np.clip(np.where(known, twice**2 * np.diag(inverse), unknown), 1e-12, unknown)
    before = belief.factors @ belief.factors.T + np.diag(belief.hidden)
    return before + _symmetric(step, n_arms), _symmetric(errors, n_arms)


def _symmetric(lower: FloatArray, n: int) -> FloatArray:
    """Return the symmetric matrix of this lower triangle."""
    full = np.zeros((n, n))
    full[np.tril_indices(n)] = lower
    full += np.tril(full, -1).T
    return full


def find_factors(
    covariance: FloatArray, errors: FloatArray, plausible: FloatArray, inflation: FloatArray
) -> FloatArray:
    """Return the factors, in units of each arm's error, that stand out of the noise.

    ``errors`` are the variances of the estimate's entries, ``plausible`` the largest variances that
    arms' means may have, (n_arms,), in the same units; the diagonal's errors are larger by the
    ``inflation`` of their squares, (n_arms,).
    """
    n_arms = len(covariance)
    scale = (np.diag(errors) / 2) ** -0.25
    # An entry with a larger error than its row and column have counts for less.
    excess = np.maximum(errors * np.outer(scale, scale) ** 2, 1.0)
    np.fill_diagonal(excess, inflation)
    sizes, directions = np.linalg.eigh(covariance * np.outer(scale, scale) / np.sqrt(excess))
    spikes = np.sqrt(np.maximum(sizes**2 - 4 * n_arms, 0.0)) * (sizes > 0)
    largest = n_arms * (directions**2 * plausible[:, None]).sum(axis=0)
    spikes *= largest**2 / (largest**2 + n_arms)
    stands_out = spikes > 0
    factors: FloatArray = directions[:, stands_out] * np.sqrt(spikes[stands_out])
    return factors


@kernel(fastmath=True)
def _score(
    prior: Prior, evidence: Evidence, users: LongArray, stride: int
) -> tuple[FloatArray, FloatArray]:
    """Return the score and, in its lower triangle, the information, over the lower triangle.

    The posterior gives W and u at once: u = h - L mean and W = diag(L) - diag(L) P diag(L), P its
    covariance. Only every ``stride``-th user is summed into the information, which costs the most.
    """
    n_arms, rank = prior.factors.shape
    n_entries = n_arms * (n_arms + 1) // 2
    score, information = np.zeros(n_entries), np.zeros((n_entries, n_entries))
    weight, pull = np.empty((n_arms, n_arms)), np.empty(n_arms)
    posterior = workspace(n_arms, rank)
    summed = 0
    for place in range(len(users)):
        precision, value = evidence.precision[users[place]], evidence.value[users[place]]
        infer_core(prior, evidence, users[place], posterior)
        entry = 0
        for j in range(n_arms):
            pull[j] = value[j] - precision[j] * posterior.core[j]
            for k in range(j + 1):
                shared = 0.0
                for a in range(rank):
                    shared += posterior.loadings[j, a] * posterior.loadings[k, a]
                weight[j, k] = 0.0
                if j == k:
                    shared += posterior.specific[j]
                    weight[j, k] = precision[j]
                weight[j, k] -= precision[j] * precision[k] * shared
                weight[k, j] = weight[j, k]
                score[entry] += pull[j] * pull[k] - weight[j, k]
                entry += 1
        if place % stride == 0:
            summed += 1
            _add_information(weight, information)
    information *= len(users) / max(summed, 1)
    return score, information


@kernel(fastmath=True)
def _add_information(weight: FloatArray, information: FloatArray) -> None:
    entry = 0
    for j in range(len(weight)):
        for k in range(j + 1):
            one, other = weight[j], weight[k]
            for p in range(j + 1):  # a little more than needed, for a plain inner loop
                start = p * (p + 1) // 2
                for q in range(p + 1):
                    information[entry, start + q] += one[p] * other[q] + one[q] * other[p]
            entry += 1


@kernel(fastmath=True)
def share_likelihoods(prior: Prior, evidence: Evidence, users: LongArray) -> FloatArray:
    """Return the log likelihood of each share of outsiders on each arm, (n_arms, n_shares)."""
    n_arms, rank = prior.factors.shape
    tables = np.zeros((n_arms, len(SHARES)))
    posterior = workspace(n_arms, rank)
    for user in users:
        infer_core(prior, evidence, user, posterior)
        for arm in range(n_arms):
            weight, value = evidence.precision[user, arm], evidence.value[user, arm]
            if weight > 0.0:
                ratio = likelihood_ratio(
                    weight, value, posterior.core[arm], posterior.core_variances[arm],
                    prior.means[arm], prior.outsider[arm],
                )  # fmt: skip
                for index in range(len(SHARES)):
                    tables[arm, index] += math.log1p(SHARES[index] * (ratio - 1.0))
    return tables
