from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from shoal.decompositions import cluster_size
from shoal.decompositions.beta.max_beta import max_beta
from shoal.decompositions.beta.open_sets import TrialPricing, fillable_sets


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
    best = max_beta(active, min_crowd=min_crowd, exact=exact)
    assert best.beta == pytest.approx(brute_force(active, min_crowd, exact=exact), abs=1e-7)
    assert best.gap == 0


def test_the_papers_words_can_allow_nothing_where_a_decomposition_exists() -> None:
    active = np.array([[True, False], [True, True], [False, True], [False, True]])
    assert cluster_size(active) == 2
    assert max_beta(active, min_crowd=2, exact=True).beta == pytest.approx(0)
    assert max_beta(active, min_crowd=2).beta == pytest.approx(2 / 3)


def random_graph(n_users: int, n_arms: int, seed: int) -> NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    active = rng.random((n_users, n_arms)) < 0.5
    active[np.arange(n_users), rng.integers(n_arms, size=n_users)] = True
    return active


@pytest.mark.parametrize(("n_users", "n_arms", "min_crowd"), [(30, 4, 9), (40, 6, 8), (30, 7, 9)])
def test_both_halves_of_the_proof_hold(n_users: int, n_arms: int, min_crowd: int) -> None:
    active = random_graph(n_users, n_arms, 0)
    best = max_beta(active, min_crowd=min_crowd)
    assert best.gap == 0
    assert best.beta < 1
    # The mixture covers beta·w, and each part of it is in its P_C(S).
    assert best.set_weights.sum() <= 1 + 1e-7
    demand = best.graph.patterns / best.graph.patterns.sum(axis=1, keepdims=True)
    assert (best.plays.sum(axis=0) >= best.beta * demand - 1e-7)[best.graph.patterns].all()
    for open_arms, weight, plays in zip(best.open_sets, best.set_weights, best.plays, strict=True):
        assert plays.sum(axis=1).max() <= weight + 1e-7
        assert not plays[~(best.graph.patterns & open_arms)].any()
        assert ((best.graph.counts @ plays)[open_arms] >= min_crowd * weight - 1e-6).all()
    # Prices that value w at 1 value no point of P_C above the bound.
    assert (best.prices >= -1e-9).all()
    assert (best.prices * demand).sum() == pytest.approx(1)
    sets = fillable_sets(best.graph)
    trial = TrialPricing(best.graph)
    assert max(trial.value(best.prices, open_arms) for open_arms in sets) <= best.bound + 1e-6


def test_a_million_users_cost_no_more_than_their_types() -> None:
    best = max_beta(random_graph(1_000_000, 8, 0), min_crowd=5)
    assert best.beta == pytest.approx(1)
    assert best.gap == 0
