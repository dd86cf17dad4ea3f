from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.decompositions import cluster_size, is_batched, serviceable
from shoal.decompositions.demand import batched_graph
from shoal.errors import InvalidInputError


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.integers(1, 4).flatmap(
        lambda n_arms: st.lists(st.integers(1, 2**n_arms - 1), min_size=1, max_size=12).map(
            lambda rows: (np.array(rows)[:, None] >> np.arange(n_arms) & 1).astype(bool)
        )
    )
)
def test_cluster_size_is_halls_bound(active: np.ndarray) -> None:
    n_arms = active.shape[1]
    hall = min(
        active[:, list(arms)].any(axis=1).sum() // size
        for size in range(1, n_arms + 1)
        for arms in combinations(range(n_arms), size)
    )
    assert cluster_size(active) == hall
    assert not is_batched(active, hall + 1)
    assert hall == 0 or is_batched(active, hall)


def test_a_million_users_are_tested_by_type() -> None:
    rng = np.random.default_rng(0)
    active = rng.random((1_000_000, 8)) < 0.5
    active[np.arange(len(active)), rng.integers(8, size=len(active))] = True
    assert cluster_size(active) == 125_000


@pytest.mark.parametrize("n_arms", [3, 64, 100])
def test_types_rebuild_the_graph(n_arms: int) -> None:
    active = np.random.default_rng(1).random((200, n_arms)) < 0.5
    (patterns, counts, _), of_user = batched_graph(active, 1)
    np.testing.assert_array_equal(patterns[of_user], active)
    np.testing.assert_array_equal(np.bincount(of_user), counts)
    assert len(np.unique(patterns, axis=0)) == len(patterns)


def test_serviceable_drops_arms_with_too_few_users() -> None:
    active = np.array([[True, True], [False, True], [False, True]])
    np.testing.assert_array_equal(serviceable(active, 2), [[False, True]] * 3)
    np.testing.assert_array_equal(serviceable(active, 1), active)
    assert not serviceable(active, 4).any()


def test_refuses_a_cluster_size_of_nothing() -> None:
    with pytest.raises(
        InvalidInputError, match="cluster_size must be a whole number of at least 1"
    ):
        is_batched(np.ones((2, 2), bool), 0)
