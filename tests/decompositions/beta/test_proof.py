from fractions import Fraction

import numpy as np
import pytest

from shoal.decompositions.beta.max_beta import max_beta
from shoal.decompositions.beta.proof import lower_bound, prove_beta, upper_bound
from shoal.decompositions.demand import BatchedGraph, batched_graph


def test_fractions_agree_with_the_solver() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        active = rng.random((int(rng.integers(4, 20)), 3)) < 0.5
        active[:, 0] |= ~active.any(axis=1)
        wanting = active.sum(axis=0)
        min_crowd = int(rng.integers(1, wanting[wanting > 0].min() + 1))
        proof = prove_beta(batched_graph(active, min_crowd)[0])
        beta = max_beta(active, min_crowd=min_crowd).beta
        assert proof.tight
        assert float(proof.lower) == pytest.approx(beta, abs=1e-7)


def test_any_prices_prove_an_upper_bound_and_a_broken_mixture_proves_nothing() -> None:
    patterns = np.array([[True, False], [True, True], [False, True]])
    graph = BatchedGraph(patterns, counts=np.array([1, 1, 2]), min_crowd=2)
    proof = prove_beta(graph)
    assert proof.lower == proof.upper == Fraction(2, 3)
    rng = np.random.default_rng(0)
    for _ in range(50):
        prices = np.array(
            [[Fraction(int(p), 7) for p in row] for row in rng.integers(0, 9, patterns.shape)]
        )
        crowd = np.array(
            [
                [Fraction(int(p), 7) for p in row]
                for row in rng.integers(0, 9, proof.open_sets.shape)
            ]
        )
        assert upper_bound(graph, proof.open_sets, prices, crowd) >= proof.upper
    more = proof.plays * Fraction(1_000_001, 1_000_000)
    assert lower_bound(graph, proof.open_sets, proof.set_weights, more, exact=False) == 0
