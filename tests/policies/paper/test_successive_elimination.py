from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.policies.paper.grid import batch_ends, default_batches
from shoal.policies.paper.successive_elimination import best_arms, eliminate


@settings(deadline=None, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 50))
def test_elimination_is_algorithm_3_user_by_user(seed: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    active = rng.random((6, 4)) < 0.7
    counts = rng.integers(0, 30, (6, 4)).astype(float)
    means = rng.random((6, 4))
    kept = eliminate(active, means, counts, gamma=gamma)
    best = best_arms(active, means, counts)
    for user in range(6):
        arms = [j for j in range(4) if active[user, j]]
        seen = {j: means[user, j] for j in arms if counts[user, j] > 0}
        tau = max((counts[user, j] for j in arms), default=0)
        for j in range(4):
            gone = j in seen and max(seen.values()) - seen[j] >= math.sqrt(gamma / tau)
            assert kept[user, j] == (j in arms and not gone)
        assert best[user] == (max(seen, key=lambda j: seen[j]) if seen else -1)


def _worst_active_gaps(
    means: NDArray[np.float64], horizon: int, *, gamma: float, rng: np.random.Generator
) -> list[tuple[int, float]]:
    """Run BaSE for many independent bandits; return (batch length, mean worst active gap)."""
    gaps = means.max(axis=1, keepdims=True) - means
    active = np.ones(means.shape, dtype=bool)
    sums, counts = np.zeros(means.shape), np.zeros(means.shape)
    found = []
    for length in np.diff(batch_ends(horizon, default_batches(horizon)), prepend=0).tolist():
        found.append((length, float(np.max(gaps, axis=1, where=active, initial=0.0).mean())))
        pulls = np.where(active, length // active.sum(axis=1, keepdims=True), 0)
        sums += rng.binomial(pulls, means)
        counts += pulls
        active = eliminate(active, sums / np.maximum(counts, 1), counts, gamma=gamma)
    return found


def test_every_batch_costs_at_most_what_lemma_1_says(rng: np.random.Generator) -> None:
    """D_b·E[max gap over A_b] ≤ 2a·sqrt(gamma·K), the bound at the end of the lemma's proof.

    Gaps of every size are tried, those near sqrt(K/T) too, where the bound bites.
    """
    for horizon in (1_000, 30_000, 1_000_000):
        for n_arms in (2, 8):
            gamma = 2 * math.log(n_arms * horizon)
            a = horizon ** (1 / (2 - 2 ** (1 - default_batches(horizon))))
            for scale in (1.0, 0.1, math.sqrt(n_arms / horizon)):
                means = 0.5 + scale * (rng.random((400, n_arms)) - 0.5)
                for length, gap in _worst_active_gaps(means, horizon, gamma=gamma, rng=rng):
                    assert length * gap <= 2 * a * math.sqrt(gamma * n_arms)


def test_the_best_arm_survives_with_the_papers_gamma(rng: np.random.Generator) -> None:
    """A wrong elimination has probability below 2·N·K·B·exp(-gamma/2) < 1e-6 here."""
    horizon, means = 10_000, rng.random((300, 5))
    gamma = 2 * math.log(2 * 300 * 5 * 4 * 1e6)
    active = np.ones(means.shape, dtype=bool)
    sums, counts = np.zeros(means.shape), np.zeros(means.shape)
    for length in np.diff(batch_ends(horizon, 4), prepend=0).tolist():
        pulls = np.where(active, length // active.sum(axis=1, keepdims=True), 0)
        sums += rng.binomial(pulls, means)
        counts += pulls
        active = eliminate(active, sums / np.maximum(counts, 1), counts, gamma=gamma)
        assert active[np.arange(300), means.argmax(axis=1)].all()
    assert active.sum() < active.size
