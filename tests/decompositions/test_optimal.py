from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from shoal.decompositions import cluster_size, is_decomposition
from shoal.decompositions.optimal import optimal_decomposition, rounded
from shoal.decompositions.optimum import optimum
from shoal.decompositions.pricing import Mip, Trial, fillable_sets
from shoal.errors import DemandError


def brute_force(active: NDArray[np.bool_], min_crowd: int, *, exact: bool) -> float:
    """The largest beta over all vertices of P_C, by SciPy."""
    n_users, n_arms = active.shape
    arms = np.array(list(product(*([-1, *np.flatnonzero(row).tolist()] for row in active))))
    corners = (arms[:, :, None] == np.arange(n_arms)).astype(float)
    loads = corners.sum(axis=1)
    corners = corners[((loads == 0) | (loads >= min_crowd)).all(axis=1)]
    covered = corners.reshape(-1, n_users * n_arms).T
    demand = (active / active.sum(axis=1, keepdims=True)).ravel()
    gap = np.column_stack([demand, -covered])
    weights = np.append(0.0, np.ones(covered.shape[1]))[None]
    answer = linprog(
        np.append(-1.0, np.zeros(covered.shape[1])),
        A_ub=weights if exact else np.vstack([weights, gap]),
        b_ub=[1.0] if exact else np.append(1.0, np.zeros(len(gap))),
        A_eq=gap if exact else None,
        b_eq=np.zeros(len(gap)) if exact else None,
    )
    assert answer.fun is not None
    return -float(answer.fun)


tiny = st.tuples(st.integers(1, 6), st.integers(1, 3)).flatmap(
    lambda case: st.lists(st.integers(1, 2 ** case[1] - 1), min_size=case[0], max_size=case[0]).map(
        lambda rows: (np.array(rows)[:, None] >> np.arange(case[1]) & 1).astype(bool)
    )
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(tiny, st.integers(1, 4), st.booleans())
def test_beta_is_the_best_over_all_vertices(
    active: NDArray[np.bool_], min_crowd: int, exact: bool
) -> None:
    wanting = active.sum(axis=0)
    min_crowd = min(min_crowd, int(wanting[wanting > 0].min()))
    best = optimum(active, min_crowd=min_crowd, exact=exact)
    assert best.beta == pytest.approx(brute_force(active, min_crowd, exact=exact), abs=1e-7)
    assert best.gap == 0


def test_the_papers_words_can_allow_nothing_where_a_decomposition_exists() -> None:
    active = np.array([[True, False], [True, True], [False, True], [False, True]])
    assert cluster_size(active) == 2
    assert optimum(active, min_crowd=2, exact=True).beta == pytest.approx(0)
    assert optimum(active, min_crowd=2).beta == pytest.approx(2 / 3)
    decomposition = optimal_decomposition(active, 60, min_crowd=2)
    assert is_decomposition(active, 60, decomposition, min_crowd=2)
    assert decomposition.total == 90


def random_graph(n_users: int, n_arms: int, seed: int) -> NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    active = rng.random((n_users, n_arms)) < 0.5
    active[np.arange(n_users), rng.integers(n_arms, size=n_users)] = True
    return active


@pytest.mark.parametrize(("n_users", "n_arms", "min_crowd"), [(30, 4, 9), (40, 6, 8), (30, 7, 9)])
def test_both_halves_of_the_proof_hold(n_users: int, n_arms: int, min_crowd: int) -> None:
    active = random_graph(n_users, n_arms, 0)
    best = optimum(active, min_crowd=min_crowd)
    assert best.gap == 0
    assert best.beta < 1
    # The mixture covers beta·w, and each part of it is in its P_C(S).
    assert best.set_weights.sum() <= 1 + 1e-7
    demand = best.patterns / best.patterns.sum(axis=1, keepdims=True)
    assert (best.plays.sum(axis=0) >= best.beta * demand - 1e-7)[best.patterns].all()
    for opened, weight, plays in zip(best.open_sets, best.set_weights, best.plays, strict=True):
        assert plays.sum(axis=1).max() <= weight + 1e-7
        assert not plays[~(best.patterns & opened)].any()
        assert ((best.counts @ plays)[opened] >= min_crowd * weight - 1e-6).all()
    # Prices that value w at 1 value no point of P_C above the bound.
    assert (best.prices >= -1e-9).all()
    assert (best.prices * demand).sum() == pytest.approx(1)
    sets = fillable_sets(best.patterns, best.counts, min_crowd)
    trial = Trial(best.patterns, best.counts, min_crowd=min_crowd)
    assert max(trial.value(best.prices, opened) for opened in sets) <= best.bound + 1e-6


def test_both_pricings_agree() -> None:
    rng = np.random.default_rng(0)
    patterns = np.array(list(product([False, True], repeat=4)))[1:]
    counts = rng.integers(1, 6, len(patterns))
    trial = Trial(patterns, counts, min_crowd=9)
    mip = Mip(patterns, counts, min_crowd=9)
    for _ in range(5):
        prices = rng.normal(size=patterns.shape)
        values = [trial.value(prices, opened) for opened in trial.sets]
        found, bound = mip.best(prices, above=0.0, seconds=10)
        assert bound == pytest.approx(max(values), abs=1e-6)
        assert trial.value(prices, found[0]) == pytest.approx(bound, abs=1e-6)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 500), st.integers(3, 9))
def test_rounding_costs_at_most_what_is_stated(seed: int, demand: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    active = random_graph(int(rng.integers(3, 30)), int(rng.integers(1, 5)), seed)
    wanting = active.sum(axis=0)
    min_crowd = int(rng.integers(1, wanting[wanting > 0].min() + 1))
    best = optimum(active, min_crowd=min_crowd)
    decomposition = rounded(best, demand, min_crowd=min_crowd, levels=levels)
    assert is_decomposition(active, demand, decomposition, min_crowd=min_crowd)
    assert decomposition.total >= demand / best.beta - 1e-6
    repeats = np.ceil(demand / best.beta / 2**levels)
    overhead = repeats * len(best.set_weights) * (active.shape[1] + 1) + active.shape[1]
    assert decomposition.total <= demand / best.beta + overhead + 1e-6


def test_a_million_users_cost_no_more_than_their_types() -> None:
    best = optimum(random_graph(1_000_000, 8, 0), min_crowd=5)
    assert best.beta == pytest.approx(1)
    assert best.gap == 0


def test_a_beta_that_can_not_be_proven_in_time_is_refused_with_its_bound() -> None:
    active = random_graph(60, 13, 0)
    with pytest.raises(DemandError, match=r"beta must be proven the largest within seconds=0; got"):
        optimal_decomposition(active, 10, min_crowd=20, seconds=0.0)
    best = optimum(active, min_crowd=20, seconds=0.0)
    assert 0 < best.beta < best.bound <= 1
