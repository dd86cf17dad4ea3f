import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.decompositions import is_decomposition
from shoal.decompositions.lp import blocks_decomposition, caratheodory, lp_decomposition
from shoal.errors import DemandError, InvalidInputError


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.tuples(st.integers(1, 12), st.integers(1, 5), st.integers(1, 30), st.integers(0, 2**32)))
def test_vertices_add_up_to_any_whole_shares(case: tuple[int, int, int, int]) -> None:
    n_users, n_arms, total, seed = case
    rng = np.random.default_rng(seed)
    shares = rng.multinomial(total, rng.dirichlet(np.full(n_arms, 0.5)), size=n_users)
    assignments, steps = caratheodory(shares, total)
    assert steps.sum() == total
    assert (steps > 0).all()
    assert len(steps) <= min(total, n_users * n_arms + 1)
    rebuilt = (steps[:, None, None] * (assignments[:, :, None] == np.arange(n_arms))).sum(axis=0)
    np.testing.assert_array_equal(rebuilt, shares)
    loads = (assignments[:, :, None] == np.arange(n_arms)).sum(axis=1)
    mean = shares.sum(axis=0) / total
    assert (loads >= np.floor(mean)).all()
    assert (loads <= np.ceil(mean)).all()


def test_needs_at_most_the_demand_and_one_assignment_a_vertex() -> None:
    rng = np.random.default_rng(0)
    active = rng.random((50, 5)) < 0.7
    active[:, 0] = True
    decomposition = lp_decomposition(active, 1000, min_crowd=5)
    assert decomposition.total <= 1000 + len(decomposition.repeats)
    assert len(decomposition.repeats) <= 60


def test_names_the_arm_whose_mean_load_is_too_small() -> None:
    active = np.ones((8, 2), bool)
    with pytest.raises(
        DemandError, match=r"arm 0 must have a mean load of at least min_crowd=5 .* got 4\."
    ):
        lp_decomposition(active, 10, min_crowd=5)


def test_refuses_shares_that_whole_numbers_can_not_hold() -> None:
    active = np.tri(60, dtype=bool)
    with pytest.raises(InvalidInputError, match="least common multiple"):
        lp_decomposition(active, 10, min_crowd=1)


def test_uses_as_many_blocks_as_the_paper_says() -> None:
    # Four clusters of 6 users who want their own arm and the next: U = 6, C+1 = 3, K = 4.
    own = np.repeat(np.arange(4), 6)
    active = np.zeros((24, 4), bool)
    active[np.arange(24), own] = active[np.arange(24), (own + 1) % 4] = True
    decomposition = blocks_decomposition(active, 100, min_crowd=3)
    assert decomposition.total == 2 * 100
    assert is_decomposition(active, 100, decomposition, min_crowd=3)
    assert set(decomposition.assignments[0, active[:, :2].all(axis=1)].tolist()) <= {0, 1}


def test_repeats_a_block_only_as_often_as_it_is_needed() -> None:
    active = np.ones((10, 5), bool)
    decomposition = blocks_decomposition(active, 100, min_crowd=5)
    np.testing.assert_array_equal(decomposition.repeats, [20] * 5)


def test_one_block_is_the_lp_decomposition() -> None:
    active = np.ones((20, 2), bool)
    assert blocks_decomposition(active, 100, min_crowd=5).total == 100
