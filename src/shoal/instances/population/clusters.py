"""A few kinds of people: the other shape that tastes may have.

The atoms of a population (``worlds``) start from the normal model, and a log with few rows a user
can't sharpen them. Where people come in a few clusters, that hides a part of the gain: of three
equal ones, each with an arm of its own, a quarter. So users may also be of a few kinds, all of a
kind alike (a latent class model, fitted by expectation-maximisation). Which shape a log prefers,
and how many kinds, is decided by users who were not used for the fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from shoal.arrays import FloatArray
from shoal.instances.population.arms import draw_arm_means
from shoal.instances.population.moments import Moments
from shoal.instances.population.pairs import PairTotals
from shoal.instances.population.worlds import (
    draw_users,
    fit_weights,
    log_likelihood,
    posterior_means,
    with_moments,
)

MAX_SORTED = 1_200
"""Users that are fitted; of more, a random sample."""

KINDS = (2, 3, 4, 6, 8)
N_CLUSTER_STEPS = 40
"""Steps of expectation-maximisation: with so few kinds it converges."""

FEWEST_ROWS = 20
"""Rows of a kind that its means are shrunk by, as if each arm had had its share of them."""


class Clusters(NamedTuple):
    """What users who were held out say of a few kinds of people."""

    probability: float  # of clusters, against weighted atoms; 1/2 before the log
    of_kinds: FloatArray  # (len(KINDS),) of each number of kinds, if there are clusters


def compare_shapes(
    pairs: PairTotals, moments: Moments, covariance: FloatArray, rng: np.random.Generator
) -> Clusters:
    """Fit both shapes to half of the users, and predict the other half."""
    order = rng.permutation(pairs.n_users)[:MAX_SORTED]
    if len(order) < 4:
        return Clusters(0.0, np.full(len(KINDS), 1 / len(KINDS)))
    halves = [pairs.of_users(order[0::2]), pairs.of_users(order[1::2])]
    of_atoms, of_kinds = 0.0, np.zeros(len(KINDS))
    for train, test in (halves, halves[::-1]):
        alike = np.full(train.n_users, 1 / train.n_users)
        atoms = draw_users(train, moments, covariance, moments.arm_means, rng)
        weights = fit_weights(log_likelihood(train, moments, atoms), alike.copy(), alike)
        of_atoms += _score(test, moments, atoms, weights)
        for place, n_kinds in enumerate(KINDS):
            kinds, shares = fit_clusters(train, moments, covariance, n_kinds, alike, rng)
            of_kinds[place] += _score(test, moments, kinds, shares)
    of_clusters = logsumexp(of_kinds)
    chance = expit(of_clusters - np.log(len(KINDS)) - of_atoms)
    return Clusters(float(chance), np.exp(of_kinds - of_clusters))


def draw_clusters(
    pairs: PairTotals,
    moments: Moments,
    covariance: FloatArray,
    clusters: Clusters,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Draw kinds of people and their shares, given the covariance of users' means."""
    mean, n_kinds = draw_arm_means(moments, rng), int(rng.choice(KINDS, p=clusters.of_kinds))
    if pairs.n_users > MAX_SORTED:
        pairs = pairs.of_users(rng.choice(pairs.n_users, MAX_SORTED, replace=False))
    users = rng.exponential(size=pairs.n_users)
    kinds, shares = fit_clusters(pairs, moments, covariance, n_kinds, users / users.sum(), rng)
    return with_moments(kinds, shares, mean, covariance), shares


def fit_clusters(
    pairs: PairTotals,
    moments: Moments,
    covariance: FloatArray,
    n_kinds: int,
    users: FloatArray,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the means of each kind of people, (n_kinds, n_arms), and its share of users.

    ``users`` are users' weights, (n_users,), which make up 1.
    """
    centres, _ = posterior_means(pairs, moments, covariance, moments.arm_means)
    kinds = np.clip(_spread_out(centres, n_kinds, rng), 0.01, 0.99)
    shares = np.full(len(kinds), 1 / len(kinds))
    shrinkage = FEWEST_ROWS * pairs.counts.mean(axis=0) / pairs.counts.mean(axis=0).sum()
    shrinkage = np.maximum(shrinkage, 1e-9)  # an arm that none of these users saw has its mean
    scale = pairs.n_users * users[:, None]
    for _ in range(N_CLUSTER_STEPS):
        logs = log_likelihood(pairs, moments, kinds) + np.log(shares)
        member = np.exp(logs - logs.max(axis=1, keepdims=True))
        member *= scale / member.sum(axis=1, keepdims=True)
        rows, sums = member.T @ pairs.counts, member.T @ pairs.sums
        kinds = (sums + shrinkage * moments.arm_means) / (rows + shrinkage)
        shares = np.maximum(member.sum(axis=0), 1e-9)
        shares /= shares.sum()
    return np.clip(kinds, 0.0, 1.0), shares


def _spread_out(centres: FloatArray, n_kinds: int, rng: np.random.Generator) -> FloatArray:
    """Return users' means to start with, far from each other (k-means++)."""
    chosen = [int(rng.integers(len(centres)))]
    for _ in range(n_kinds - 1):
        gaps = ((centres[:, None] - centres[chosen]) ** 2).sum(axis=2).min(axis=1)
        if gaps.sum() <= 0:
            break
        chosen.append(int(rng.choice(len(centres), p=gaps / gaps.sum())))
    start: FloatArray = centres[chosen]
    return start


def _score(pairs: PairTotals, moments: Moments, atoms: FloatArray, weights: FloatArray) -> float:
    """Return the log likelihood of users under a distribution of means."""
    with np.errstate(divide="ignore"):
        logs = log_likelihood(pairs, moments, atoms) + np.log(weights)
    return float(logsumexp(logs, axis=1).sum())
