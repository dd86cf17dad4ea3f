from fractions import Fraction

import numpy as np
import pytest

from shoal.decompositions import is_batched
from shoal.decompositions.beta import Progress, hardest_graph
from shoal.decompositions.demand import types
from shoal.decompositions.optimum import optimum
from shoal.decompositions.proof import prove_beta
from shoal.errors import InvalidInputError


@pytest.mark.parametrize(
    ("n_arms", "min_group_size", "cluster_size", "beta"),
    [(2, 1, 2, Fraction(2, 3)), (2, 2, 3, Fraction(2, 3)), (2, 1, 4, 1), (3, 1, 2, Fraction(3, 5))],
)
def test_finds_the_hardest_of_all_small_graphs(
    n_arms: int, min_group_size: int, cluster_size: int, beta: Fraction
) -> None:
    hardest = hardest_graph(
        n_arms,
        min_group_size,
        cluster_size,
        seconds=60,
        rng=np.random.default_rng(0),
        max_graphs=200,
    )
    assert hardest.exhausted
    assert hardest.proof.exact
    assert hardest.proof.lower == beta
    assert hardest.proof.lower >= hardest.guarantee
    assert is_batched(hardest.active, cluster_size)


def test_goes_on_where_graphs_are_too_many_to_try_all() -> None:
    hardest = hardest_graph(4, 1, 2, seconds=60, rng=np.random.default_rng(0), max_graphs=150)
    assert not hardest.exhausted
    assert is_batched(hardest.active, 2)
    assert hardest.guarantee == Fraction(1, 4)
    assert hardest.proof.lower == Fraction(4, 7)


def test_shows_progress_that_only_gets_better() -> None:
    seen: list[Progress] = []
    hardest_graph(
        2, 1, 2, seconds=60, rng=np.random.default_rng(0), max_graphs=50, on_progress=seen.append
    )
    betas = [progress.beta for progress in seen]
    assert betas == sorted(betas, reverse=True)
    assert seen[0].n_tried >= 1


def test_fractions_agree_with_the_solver() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        active = rng.random((int(rng.integers(4, 20)), 3)) < 0.5
        active[:, 0] |= ~active.any(axis=1)
        wanting = active.sum(axis=0)
        min_crowd = int(rng.integers(1, wanting[wanting > 0].min() + 1))
        patterns, counts, _ = types(active)
        proof = prove_beta(patterns, counts, min_crowd=min_crowd)
        beta = optimum(active, min_crowd=min_crowd).beta
        assert proof.exact
        assert float(proof.lower) == pytest.approx(beta, abs=1e-7)


def test_any_prices_prove_an_upper_bound_and_a_broken_mixture_proves_nothing() -> None:
    from shoal.decompositions.proof import _lower, _upper

    patterns = np.array([[True, False], [True, True], [False, True]])
    counts = np.array([1, 1, 2])
    proof = prove_beta(patterns, counts, min_crowd=2)
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
        assert _upper(patterns, counts, 2, proof.open_sets, prices, crowd) >= proof.upper
    more = proof.plays * Fraction(1_000_001, 1_000_000)
    assert _lower(patterns, counts, 2, proof.open_sets, proof.set_weights, more, exact=False) == 0


def test_refuses_a_class_of_graphs_that_can_not_be_searched() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"n_arms must be between 2 and 5 .* got 6"):
        hardest_graph(6, 1, 2, seconds=1, rng=rng)
    with pytest.raises(InvalidInputError, match=r"cluster_size must be a whole .* at least 3"):
        hardest_graph(3, 2, 2, seconds=1, rng=rng)
