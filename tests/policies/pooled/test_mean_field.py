"""The mean-field posterior against its literal formula."""

from __future__ import annotations

import math

import numpy as np

from shoal.grouping import RoundTotals
from shoal.policies.pooled.mean_field import absorb_totals, sample_arms


def test_mean_field_moves_each_member_by_its_share(rng: np.random.Generator) -> None:
    n = 7
    means = rng.random((n, 2)).astype(np.float32)
    deviations = rng.uniform(0.1, 0.3, (n, 2)).astype(np.float32)
    arms = np.array([0, 0, 0, 1, 1, 1, 1], np.int32)
    groups = np.array([0, 0, 0, 1, 1, 1, -1], np.int32)
    reported = np.array([1, 1, 1, 1, 0, 1, 0], np.int32)
    totals = np.array([2.0, 1.0])
    m, d = means.astype(float), deviations.astype(float)
    expected_m, expected_d = m.copy(), d.copy()
    for group, arm in ((0, 0), (1, 1)):
        members = [u for u in range(n) if groups[u] == group and reported[u]]
        noise = sum(m[u, arm] * (1 - m[u, arm]) for u in members)
        q = noise + sum(d[u, arm] ** 2 for u in members)
        error = totals[group] - sum(m[u, arm] for u in members)
        for u in members:
            v = d[u, arm] ** 2
            expected_m[u, arm] += v / q * error
            expected_d[u, arm] = math.sqrt(v - v * v / q)
    played = RoundTotals(arms, groups, totals, np.ones(2, np.int32), reported)
    absorb_totals(means, deviations, played, np.array([1.0, 1.0]), 0.0)
    np.testing.assert_allclose(means, expected_m, atol=1e-6)
    np.testing.assert_allclose(deviations, expected_d, atol=1e-6)


def test_hashed_draws_are_normal_enough_and_independent_between_rounds() -> None:
    """Two arms of equal mean: each wins half the time, and rounds do not repeat each other.

    200,000 draws each; 6 standard errors of a fair coin are 0.0067, a false alarm below 1e-8.
    """
    n = 200_000
    means = np.zeros((n, 2), np.float32)
    wins = []
    for seed in (1, 2, 2**40 + 1):
        arms = np.empty(n, np.int32)
        sample_arms(means, np.ones((n, 2), np.float32), seed, arms)
        wins.append(arms)
        assert abs(arms.mean() - 0.5) < 0.0067
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert abs((wins[one] == wins[other]).mean() - 0.5) < 0.0067
    # A gap of one joint standard deviation is lost with probability Phi(-1) = 0.1587.
    means[:, 1] = -math.sqrt(2)
    arms = np.empty(n, np.int32)
    sample_arms(means, np.ones((n, 2), np.float32), 3, arms)
    assert abs(arms.mean() - 0.1587) < 0.006
