"""How much users differ, without bias and without a guess at the shape of their tastes.

For user i with mean reward y_ij on arm j, the product (y_ij - b_j)(y_ik - b_k) of two arms has as
its expectation the covariance of users' means, because the noise of different rows is independent;
on one arm, products of *different* rows do the same. Such products are averaged over users, with
the weights that would be best for normal data. If nobody differs the average is about 0, above or
below: nothing of the noise is counted as taste. How far off it may be comes from how much users'
products vary (a sandwich estimate), and at least from the variance of a model, which also holds
where events are so rare that none of them occurred twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.instances.population.pairs import PairTotals

MIN_NOISE = 0.2
"""At least this part of a row's variance is noise: one row can't be known from the user alone."""

MAX_WHITENED = 300
"""Entries of a covariance up to which the correlation of their errors is kept."""

RARE = 3 / 8
"""Coincidences whose variance is added to that of every entry. Anscombe (1948) adds as many to a
Poisson count; with them a normal likelihood makes about as much of the first few as Poisson's."""

CHUNK = 2**22  # entries of a matrix of users × products that are in memory at once


@dataclass(frozen=True, eq=False)
class Moments:
    """Estimates of the first two moments of users' means, with their errors.

    Entries of a symmetric matrix are listed as in ``np.triu_indices``; ``rows`` and ``columns`` are
    their places.
    """

    arm_means: FloatArray  # (n_arms,)
    arm_covariance: FloatArray  # (n_arms, n_arms), of the errors of arm_means
    row_variance: FloatArray  # (n_arms,), of one reward: noise and taste
    covariance: FloatArray  # (n_arms, n_arms), unbiased: eigenvalues may be negative
    rows: LongArray  # (n_entries,)
    columns: LongArray
    estimable: BoolArray  # (n_entries,): some user has the rows for it
    inflation: FloatArray  # (n_entries,): deviation over the model's
    whitening: FloatArray  # (n_entries, n_entries)
    noise_factors: FloatArray  # (5, n_entries)

    @cached_property
    def entries(self) -> FloatArray:
        """The estimated covariance as a list of entries."""
        return self.covariance[self.rows, self.columns]

    @property
    def dispersion(self) -> FloatArray:
        """Variance of a row against that of a reward of 0 or 1 with the same mean, (n_arms,)."""
        return self.row_variance / (self.arm_means * (1 - self.arm_means))

    @property
    def skew(self) -> FloatArray:
        """Third moment of a row's noise against its variance, (n_arms,): 1 for rare successes."""
        return self.dispersion * (1 - 2 * self.arm_means)

    @property
    def coincidence(self) -> FloatArray:
        """What one coincidence of rare rewards adds to each entry, (n_entries,)."""
        both, thirds = self.noise_factors[0], self.noise_factors[4]
        share = np.divide(thirds, both, out=np.zeros_like(both), where=both > 0)
        added: FloatArray = share * self.skew[self.rows] * self.skew[self.columns]
        return added

    def noise(self, variances: FloatArray) -> FloatArray:
        """Return the noise's variance of a row where users' means have these variances."""
        return np.maximum(self.row_variance - variances, MIN_NOISE * self.row_variance)

    def model_variance(self, covariances: FloatArray) -> FloatArray:
        """Return the variance of each estimated entry, (n, n_entries), under n covariances.

        The noise of a mean near 0 or 1 is small, and so its product over two arms is large for
        users who like both: the term with the skew. Where less than one coincidence is expected,
        the first that occurs must not look like taste: the term with ``RARE``.
        """
        return self.entry_variance(covariances, self.entries_of(covariances).T).T

    def entries_of(self, covariances: FloatArray) -> FloatArray:
        """Return the entries of n covariances, (n, n_entries)."""
        n_arms = len(self.arm_means)
        flat = covariances.reshape(len(covariances), n_arms * n_arms)
        return np.take(flat.T, self.rows * n_arms + self.columns, axis=0).T

    def entry_variance(self, covariances: FloatArray, entries: FloatArray) -> FloatArray:
        """Return ``model_variance``, a row for each entry as in ``entries``: (n_entries, n)."""
        both, first, second, alone, skew, rare = self._factors
        variances = np.einsum("pii->ip", covariances)
        noise = np.maximum(
            self.row_variance[:, None] - variances, MIN_NOISE * self.row_variance[:, None]
        )
        noise_j, noise_k = noise[self.rows], noise[self.columns]
        variance_j, variance_k = variances[self.rows], variances[self.columns]
        total: FloatArray = noise_j * noise_k
        total += np.maximum(skew * entries, 0.0)
        total *= both
        total += second * noise_k * variance_j + first * noise_j * variance_k
        total += alone * (variance_j * variance_k + entries**2)
        total += rare
        np.maximum(total, 1e-30, out=total)
        return total

    @cached_property
    def _factors(self) -> FloatArray:
        """What ``entry_variance`` multiplies and adds, (6, n_entries, 1): the same for all n."""
        both, first, second, alone, _ = self.noise_factors
        twice = np.where(self.rows == self.columns, 2.0, 1.0)
        skew = self.skew[self.rows] * self.skew[self.columns]
        rare = RARE * self.coincidence**2
        return np.array([both, twice * first, twice * second, alone, skew, rare])[:, :, None]


def estimate_moments(pairs: PairTotals) -> Moments:
    """Estimate arm means and the covariance of users' means, with their errors."""
    n_arms = pairs.n_arms
    rows, columns = np.triu_indices(n_arms)
    products, means, row_variance = _weighted_products(pairs)
    weights, deviations, same_arm, same_weights = products
    totals = weights.T @ weights
    sums = (weights * deviations).T @ (weights * deviations)
    np.fill_diagonal(totals, same_weights.sum(axis=0))
    np.fill_diagonal(sums, (same_weights * same_arm).sum(axis=0))
    estimable = totals[rows, columns] > 0
    covariance = np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)

    n_entries, n_users = len(rows), pairs.n_users
    divisor = np.where(estimable, totals[rows, columns], 1.0)
    outer = np.zeros((n_entries, n_entries))
    factors = np.zeros((5, n_entries))
    step = max(1, CHUNK // n_entries)
    for start in range(0, n_users, step):
        part = slice(start, start + step)
        value = deviations[part][:, rows] * deviations[part][:, columns]
        weight = weights[part][:, rows] * weights[part][:, columns]
        diagonal = rows == columns
        value[:, diagonal], weight[:, diagonal] = same_arm[part], same_weights[part]
        weight /= divisor
        influence = weight * (value - covariance[rows, columns])
        outer += influence.T @ influence
        factors += _noise_factors(pairs.counts[part], weight, rows, columns)

    spread = weights * deviations / weights.sum(axis=0)
    # A fifth of a success in each arm: an arm without any still has an error.
    floor = row_variance / np.maximum(pairs.counts.sum(axis=0), 1.0)
    arm_covariance = spread.T @ spread
    np.fill_diagonal(arm_covariance, np.maximum(np.diag(arm_covariance), 0.2 * floor))
    return _with_errors(
        Moments(
            means, arm_covariance, row_variance, covariance, rows, columns, estimable,
            np.ones(n_entries), np.eye(n_entries), factors,
        ),
        outer,
        n_users,
    )  # fmt: skip


def _weighted_products(
    pairs: PairTotals,
) -> tuple[tuple[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray, FloatArray]:
    """Return weights, deviations, the products of different rows of one arm and their weights.

    The best weights depend on how much users differ: three passes settle both. An arm without any
    success (or failure) is given half of one, and the variance of that; deviations are from what
    was seen, so that none of it looks like users who agree with each other.
    """
    counts, sums, squares = pairs.counts, pairs.sums, pairs.squares
    observed, repeated = counts > 0, counts > 1
    totals = np.maximum(counts.sum(axis=0), 1.0)
    half_success = 0.5 / (totals + 1.0)
    averages = np.divide(sums, counts, out=np.zeros_like(sums), where=observed)
    rows = np.maximum(counts, 1.0)
    n_products = np.where(repeated, counts * (counts - 1), 1.0)
    variances = np.zeros(pairs.n_arms)
    average = sums.sum(axis=0) / totals
    means = np.clip(average, half_success, 1 - half_success)
    for _ in range(3):
        row_variance = squares.sum(axis=0) / totals - average * (
            2 * sums.sum(axis=0) / totals - average
        )
        min_variance = np.where(means == average, 1e-3, 1.0) * means * (1 - means)
        row_variance = np.maximum(row_variance, min_variance)
        noise = np.maximum(row_variance - variances, MIN_NOISE * row_variance)
        weights = np.where(observed, 1 / (variances + noise / rows), 0.0)
        weights[:, ~observed.any(axis=0)] = 1e-12
        average = (weights * averages).sum(axis=0) / weights.sum(axis=0)
        means = np.clip(average, half_success, 1 - half_success)
        deviations = np.where(observed, averages - average, 0.0)
        same_arm = (sums - counts * average) ** 2 - (
            squares - average * (2 * sums - counts * average)
        )
        same_arm = np.where(repeated, same_arm / n_products, 0.0)
        same_weights = np.where(repeated, weights**2 * (counts - 1) / rows, 0.0)
        total = same_weights.sum(axis=0)
        estimate = np.divide(
            (same_weights * same_arm).sum(axis=0), total, out=np.zeros_like(total), where=total > 0
        )
        variances = np.clip(estimate, 0.0, (1 - MIN_NOISE) * row_variance)
    return (weights, deviations, same_arm, same_weights), means, row_variance


def _noise_factors(
    counts: FloatArray, weight: FloatArray, rows: LongArray, columns: LongArray
) -> FloatArray:
    """Return what noise × noise, noise × taste (twice) and taste × taste are multiplied by.

    And, last, what the third moment of noise × noise is.
    """
    inverse = np.where(counts > 0, 1 / np.maximum(counts, 1.0), 0.0)
    pairs = np.where(counts > 1, 2 / np.maximum(counts * (counts - 1), 1.0), 0.0)
    both = np.where(rows == columns, pairs[:, rows], inverse[:, rows] * inverse[:, columns])
    squared = weight**2
    return np.stack(
        [
            (squared * both).sum(axis=0),
            (squared * inverse[:, rows]).sum(axis=0),
            (squared * inverse[:, columns]).sum(axis=0),
            squared.sum(axis=0),
            (weight**3 * both**2).sum(axis=0),
        ]
    )


def _with_errors(moments: Moments, outer: FloatArray, n_users: int) -> Moments:
    """Add how the entries' errors are correlated, and by how much they exceed the model's."""
    n_entries, estimable = len(outer), moments.estimable
    values, vectors = np.linalg.eigh(moments.covariance)
    nearest = (vectors * np.maximum(values, 0.0)) @ vectors.T
    model = moments.model_variance(nearest[None])[0]
    variance = np.diag(outer)
    ratio = np.where(estimable, variance / model, 1.0)
    whitening = np.eye(n_entries)
    if n_entries <= MAX_WHITENED:
        deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
        shrinkage = n_entries / (n_entries + n_users)
        correlation = (1 - shrinkage) * outer / np.outer(deviation, deviation)
        np.fill_diagonal(correlation, 1.0)
        correlation = np.where(np.outer(estimable, estimable), correlation, np.eye(n_entries))
        values, vectors = np.linalg.eigh(correlation)
        whitening = (vectors / np.sqrt(np.maximum(values, 0.02))).T
    return Moments(
        moments.arm_means, moments.arm_covariance, moments.row_variance, moments.covariance,
        moments.rows, moments.columns, estimable, np.sqrt(np.maximum(ratio, 1.0)), whitening,
        moments.noise_factors,
    )  # fmt: skip
