"""Every method, certified on graphs that hypothesis makes."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.decompositions import METHODS, cluster_size, decompose, is_decomposition
from shoal.errors import DemandError, InvalidInputError, UnknownNameError

Graph = tuple[NDArray[np.bool_], int, int]


@st.composite
def graphs(draw: st.DrawFn, max_users: int = 40, max_arms: int = 8) -> Graph:
    """A batched graph with its demand and a crowd that every wanted arm can reach."""
    n_users = draw(st.integers(1, max_users))
    n_arms = draw(st.integers(1, max_arms))
    patterns = draw(
        st.lists(st.integers(1, 2**n_arms - 1), min_size=n_users, max_size=n_users)
        if draw(st.booleans())
        else st.lists(
            st.sampled_from([2**n_arms - 1, 1, 2 ** (n_arms - 1)]),
            min_size=n_users,
            max_size=n_users,
        )
    )
    active = (np.array(patterns)[:, None] >> np.arange(n_arms) & 1).astype(bool)
    wanting = active.sum(axis=0)
    min_crowd = draw(st.integers(1, int(wanting[wanting > 0].min())))
    return active, draw(st.integers(1, 60)), min_crowd


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(graph=graphs())
def test_meets_the_demand_or_says_why_not(method: str, graph: Graph) -> None:
    active, demand, min_crowd = graph
    try:
        decomposition = decompose(
            active, demand, min_crowd=min_crowd, method=method, rng=np.random.default_rng(1)
        )
    except DemandError:
        assert method in {"lp", "random"}
        assert METHODS[method].refuses
        return
    assert is_decomposition(active, demand, decomposition, min_crowd=min_crowd)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graph=graphs())
def test_needs_at_most_the_stated_number_of_assignments(graph: Graph) -> None:
    active, demand, min_crowd = graph
    n_users, n_arms = active.shape
    n_wanted = int(active.any(axis=0).sum())
    size = cluster_size(active[:, active.any(axis=0)])
    n_blocks = -(-n_wanted // max(1, size // min_crowd))
    most = {
        "euler": n_blocks * (demand + n_arms * -(-demand // 256)),
        "lp": demand + n_users * n_arms + 1,
        "blocks": n_blocks * (demand + 1) + n_users * n_arms,
        "greedy": n_arms * demand,
        "random": n_arms * (4 * demand + 64),
    }
    for method, most_assignments in most.items():
        with suppress(DemandError):
            decomposition = decompose(active, demand, min_crowd=min_crowd, method=method)
            assert decomposition.total <= most_assignments


@pytest.mark.parametrize("method", METHODS)
def test_names_an_arm_that_too_few_users_want(method: str) -> None:
    active = np.ones((6, 3), bool)
    active[2:, 1] = False
    with pytest.raises(
        DemandError, match="arm 1 must be wanted by at least min_crowd=3 users; got 2"
    ):
        decompose(active, 10, min_crowd=3, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_serves_graphs_with_an_arm_that_nobody_wants(method: str) -> None:
    active = np.array([[True, True, False]] * 8)
    decomposition = decompose(active, 10, min_crowd=2, method=method)
    assert is_decomposition(active, 10, decomposition, min_crowd=2)


@pytest.mark.parametrize("method", METHODS)
def test_is_deterministic(method: str) -> None:
    active = np.random.default_rng(3).random((30, 4)) < 0.8
    active[:, 0] = True
    first, second = (decompose(active, 20, min_crowd=3, method=method) for _ in range(2))
    np.testing.assert_array_equal(first.assignments, second.assignments)
    np.testing.assert_array_equal(first.repeats, second.repeats)


def test_refuses_bad_input_by_name() -> None:
    good = np.ones((4, 2), bool)
    with pytest.raises(InvalidInputError, match=r"active\[1\] must have at least one active arm"):
        decompose([[True, True], [False, False]], 5, min_crowd=1)
    with pytest.raises(InvalidInputError, match="active must have shape"):
        decompose([True, True], 5, min_crowd=1)
    with pytest.raises(InvalidInputError, match="active must hold truth values"):
        decompose([[0.5, 1.0]], 5, min_crowd=1)
    with pytest.raises(
        InvalidInputError, match="demand must be a whole number of at least 1; got 0"
    ):
        decompose(good, 0, min_crowd=1)
    with pytest.raises(InvalidInputError, match="min_crowd must be a whole number"):
        decompose(good, 5, min_crowd=0)
    with pytest.raises(UnknownNameError, match="did you mean 'greedy'"):
        decompose(good, 5, min_crowd=1, method="gredy")
