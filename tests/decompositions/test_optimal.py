import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.decompositions import is_decomposition
from shoal.decompositions.beta.max_beta import max_beta
from shoal.decompositions.home_away import home_away_decomposition
from shoal.decompositions.optimal import optimal_decomposition, round_to_assignments
from shoal.errors import DemandError


def random_graph(n_users: int, n_arms: int, seed: int) -> NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    active = rng.random((n_users, n_arms)) < 0.5
    active[np.arange(n_users), rng.integers(n_arms, size=n_users)] = True
    return active


def test_needs_the_demand_over_beta_assignments() -> None:
    active = np.array([[True, False], [True, True], [False, True], [False, True]])
    decomposition = optimal_decomposition(active, 60, min_crowd=2)
    assert is_decomposition(active, 60, decomposition, min_crowd=2)
    assert decomposition.total == 90


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 500), st.integers(3, 9))
def test_rounding_costs_at_most_what_is_stated(seed: int, demand: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    active = random_graph(int(rng.integers(3, 30)), int(rng.integers(1, 5)), seed)
    wanting = active.sum(axis=0)
    min_crowd = int(rng.integers(1, wanting[wanting > 0].min() + 1))
    best = max_beta(active, min_crowd=min_crowd)
    decomposition = round_to_assignments(best, demand, levels=levels)
    assert is_decomposition(active, demand, decomposition, min_crowd=min_crowd)
    assert decomposition.total >= demand / best.beta - 1e-6
    repeats = np.ceil(demand / best.beta / 2**levels)
    overhead = repeats * len(best.set_weights) * (active.shape[1] + 1) + active.shape[1]
    assert decomposition.total <= demand / best.beta + overhead + 1e-6


def test_rounding_of_a_large_demand_costs_no_more_than_home_and_away() -> None:
    """On the theorem's tight graph the optimum alone, in few repeats, needs 1.69 times as much."""
    active = np.zeros((9, 3), np.bool_)
    active[0, 0] = active[1:3] = active[3:6, 1] = active[6:, 2] = True
    demand = 10**8 + 1
    decomposition = optimal_decomposition(active, demand, min_crowd=3)
    assert is_decomposition(active, demand, decomposition, min_crowd=3)
    home_away = home_away_decomposition(active, demand, min_crowd=3)
    best = max_beta(active, min_crowd=3)
    assert decomposition.total <= home_away.total
    assert decomposition.total < round_to_assignments(best, demand).total


def test_a_beta_that_can_not_be_proven_in_time_is_refused_with_its_bound() -> None:
    active = random_graph(60, 13, 0)
    with pytest.raises(DemandError, match=r"beta must be proven the largest within seconds=0; got"):
        optimal_decomposition(active, 10, min_crowd=20, seconds=0.0)
    best = max_beta(active, min_crowd=20, seconds=0.0)
    assert 0 < best.beta < best.bound <= 1


@pytest.mark.parametrize("seed", [968, 3392, 7637, 11422])
def test_graphs_on_which_the_interior_point_method_stops_short_are_solved(seed: int) -> None:
    """Four in 11,423 graphs of six arms, drawn as here, ended with HiGHS' status "unknown"."""
    rng = np.random.default_rng(seed)
    active = rng.random((30, 6)) < 0.1
    active[np.arange(30), np.arange(30) % 6] = True
    best = max_beta(active, min_crowd=5)
    assert best.gap == 0
    assert best.beta >= 6 / 11
    decomposition = optimal_decomposition(active, 500, min_crowd=5)
    assert is_decomposition(active, 500, decomposition, min_crowd=5)
