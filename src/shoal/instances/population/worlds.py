"""Populations that a log allows: users' means drawn from one draw of the posterior.

Given the covariance, each of the log's users has a posterior for its own means, from its rows and
from what people are like; a draw from it is an *atom*. The normal model gets the amount of taste
right and its shape wrong where people come in clusters or a few are unlike all others. Therefore
the atoms are weighted by a few dozen steps of expectation-maximisation towards the distribution
that makes the log most likely ("smoothing by roughening", Laird and Louis, 1991), with users
weighted at random for their sampling (the Bayesian bootstrap, Rubin, 1981). The weights give the
shape alone: arm means and variances stay those of the atoms. Of few rows a user, that leaves
clusters too smooth: where the log allows it, some populations have a few kinds of people in place
of atoms (``clusters``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, ndtr

from shoal.arrays import FloatArray
from shoal.instances.population.arms import draw_arm_means
from shoal.instances.population.moments import Moments
from shoal.instances.population.pairs import PairTotals

MAX_ATOMS = 600
N_STEPS = 80
"""Steps of expectation-maximisation: 20 leave clusters too smooth, 150 change little."""

N_CENTRED = 10
"""Times that atoms are moved back to their means after some were cut off."""


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """One population that the log allows."""

    atoms: FloatArray  # (n_atoms, n_arms)
    weights: FloatArray  # (n_atoms,)
    probability: float
    model: int  # its place in the posterior
    taste: bool

    @property
    def best_arm(self) -> float:
        """Mean reward of the best single arm."""
        return float((self.weights @ self.atoms).max())

    @property
    def random_arm(self) -> float:
        """Mean reward of a random arm."""
        return float((self.weights @ self.atoms).mean())

    @property
    def most_lost(self) -> float:
        """What the worst single arm earns below the best."""
        return self.best_arm - float((self.weights @ self.atoms).min())

    @property
    def gain(self) -> float:
        """What full knowledge would earn above the best single arm."""
        return max(0.0, float(self.weights @ self.atoms.max(axis=1)) - self.best_arm)

    def draw(self, n_users: int, rng: np.random.Generator) -> FloatArray:
        """Draw users' means, (n_users, n_arms)."""
        atoms: FloatArray = self.atoms[rng.choice(len(self.atoms), n_users, p=self.weights)]
        return atoms


def draw_shape(
    pairs: PairTotals,
    moments: Moments,
    covariance: FloatArray,
    rng: np.random.Generator,
    *,
    fitted: bool,
) -> tuple[FloatArray, FloatArray]:
    """Draw the atoms of one population and their weights, given the covariance of users' means."""
    mean = draw_arm_means(moments, rng)
    if not covariance.any():
        return mean[None], np.ones(1)
    if pairs.n_users > MAX_ATOMS:
        pairs = pairs.of_users(rng.choice(pairs.n_users, MAX_ATOMS, replace=False))
    atoms = draw_users(pairs, moments, covariance, mean, rng)
    weights = np.full(len(atoms), 1 / len(atoms))
    if fitted:
        users = rng.exponential(size=pairs.n_users)
        weights = fit_weights(log_likelihood(pairs, moments, atoms), weights, users / users.sum())
        atoms = with_moments(atoms, weights, mean, covariance)
    return atoms, weights


def with_moments(
    atoms: FloatArray, weights: FloatArray, mean: FloatArray, covariance: FloatArray
) -> FloatArray:
    """Move atoms so that they have the means and variances that were drawn, and keep their shape.

    The fit of the weights follows what the log estimates, also where the covariance that was drawn
    is larger or smaller, as it has to be for an interval. Two variances are restored: that of
    users' level over all arms, and that of their tastes around it. What leaves [0, 1] is cut off,
    and the others are moved until the means are right.
    """
    n_arms = len(mean)
    deviations = atoms - weights @ atoms
    moved = np.tile(mean, (len(atoms), 1))
    level = np.full((n_arms, n_arms), 1 / n_arms)
    for projection in (level, np.eye(n_arms) - level):
        part = deviations @ projection
        variance = float(weights @ (part**2).sum(axis=1))
        drawn_variance = float(np.trace(projection @ covariance))
        moved += part * np.sqrt(drawn_variance / variance if variance > 0 else 1.0)
    inside: FloatArray = np.clip(moved, 0.0, 1.0)
    for _ in range(N_CENTRED):
        moved += mean - weights @ inside
        inside = np.clip(moved, 0.0, 1.0)
    return inside


def posterior_means(
    pairs: PairTotals, moments: Moments, covariance: FloatArray, mean: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return users' posterior means, (n_users, n_arms), and roots of the covariances.

    The root R of user i's covariance R R' is (n_users, n_arms, n_arms).
    """
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    precision = pairs.counts / moments.noise(np.diag(covariance))
    observed = pairs.counts > 0
    averages = np.divide(
        pairs.sums, pairs.counts, out=np.broadcast_to(mean, observed.shape).copy(), where=observed
    )
    # With R R' the covariance, the posterior's is R (I + R' P R)^-1 R'.
    information = np.eye(len(mean)) + np.einsum("ja,ij,jc->iac", root, precision, root)
    target = (precision * (averages - mean)) @ root
    scores = np.linalg.solve(information, target[..., None])[..., 0]
    inverse = np.linalg.inv(np.linalg.cholesky(information))
    return mean + scores @ root.T, np.einsum("ja,iba->ijb", root, inverse)


def draw_users(
    pairs: PairTotals,
    moments: Moments,
    covariance: FloatArray,
    mean: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw every user's means from its posterior; all lie in [0, 1].

    The normal scores become Beta-distributed: mean and variance stay, and the variance shrinks
    towards 0 and 1 as that of a share does.
    """
    centre, roots = posterior_means(pairs, moments, covariance, mean)
    variance = (roots**2).sum(axis=2)
    scores = np.einsum("ijb,ib->ij", roots, rng.standard_normal(centre.shape))
    scores = scores / np.sqrt(np.maximum(variance, 1e-300))
    centre = np.clip(centre, 0.02 * mean, 1 - 0.02 * (1 - mean))
    share = centre * (1 - centre)
    variance = np.minimum(variance * share / (mean * (1 - mean)), 0.9 * share)
    strength = share / np.maximum(variance, 1e-300) - 1
    draws = centre + np.sqrt(variance) * scores
    wide = strength < 2_000  # above, the Beta distribution is as good as normal
    draws[wide] = betaincinv(
        (centre * strength)[wide],
        ((1 - centre) * strength)[wide],
        np.clip(ndtr(scores[wide]), 1e-9, 1 - 1e-9),
    )
    means: FloatArray = np.clip(draws, 0.0, 1.0)
    return means


def log_likelihood(pairs: PairTotals, moments: Moments, atoms: FloatArray) -> FloatArray:
    """Return each user's log likelihood under each atom, up to a constant, (n_users, n_atoms).

    Rewards between 0 and 1 vary less than successes with the same mean, and count for more rows.
    """
    weight = 1 / moments.dispersion
    means = np.clip(atoms, 1e-6, 1 - 1e-6)
    successes = np.maximum(pairs.sums, 0.0) * weight  # without a trend they may leave [0, 1]
    failures = np.maximum(pairs.counts - pairs.sums, 0.0) * weight
    logs: FloatArray = successes @ np.log(means).T + failures @ np.log1p(-means).T
    return logs


def fit_weights(logs: FloatArray, weights: FloatArray, users: FloatArray) -> FloatArray:
    """Return the atoms' ``weights`` after ``N_STEPS``; ``users`` have weights too."""
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    for _ in range(N_STEPS):
        weights = weights * (likelihood.T @ (users / (likelihood @ weights)))
        weights = weights / weights.sum()
    return weights
