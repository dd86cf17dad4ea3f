import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from shoal.decompositions import cluster_size, euler_decomposition, is_decomposition
from shoal.decompositions.demand import batched_graph
from shoal.decompositions.euler import open_blocks, rotas
from shoal.decompositions.lp import lp_decomposition


def graph(n_users: int, n_arms: int, seed: int, *, density: float = 0.5) -> NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    active = rng.random((n_users, n_arms)) < density
    active[np.arange(n_users), rng.integers(n_arms, size=n_users)] = True
    return active


cases = st.tuples(
    st.integers(1, 40), st.integers(1, 8), st.integers(0, 2**32), st.floats(0, 1)
).map(lambda case: graph(case[0], case[1], case[2], density=case[3]))


def one_block_crowd(active: NDArray[np.bool_]) -> int:
    """The largest crowd that every wanted arm has on average."""
    means = (active / active.sum(axis=1, keepdims=True)).sum(axis=0)
    return int(means[active.any(axis=0)].min() + 1e-9)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(cases, st.integers(1, 300), st.integers(0, 8))
def test_every_load_is_floor_or_ceiling_of_its_mean(
    active: NDArray[np.bool_], demand: int, levels: int
) -> None:
    min_crowd = max(1, one_block_crowd(active))
    decomposition = euler_decomposition(active, demand, min_crowd=min_crowd, levels=levels)
    assert is_decomposition(active, demand, decomposition, min_crowd=min_crowd)
    if one_block_crowd(active) >= 1:
        n_arms = active.shape[1]
        loads = (decomposition.assignments[:, :, None] == np.arange(n_arms)).sum(axis=1)
        assert np.ptp(loads, axis=0).max() <= 1
        assert loads[:, active.any(axis=0)].min() >= min_crowd


@settings(max_examples=100, deadline=None, derandomize=True)
@given(cases, st.integers(1, 1000), st.integers(0, 8))
def test_rounding_costs_at_most_the_stated_number(
    active: NDArray[np.bool_], demand: int, levels: int
) -> None:
    if one_block_crowd(active) < 1:
        return
    total = euler_decomposition(active, demand, min_crowd=1, levels=levels).total
    sizes = active.sum(axis=1)
    assert total <= demand + active.shape[1] * -(-demand // 2**levels)
    # A user can't have ceil(demand/size) of each of its arms in fewer assignments.
    least = (sizes * -(-demand // sizes)).max()
    assert total >= least
    if 2**levels >= demand:
        assert total == least


def test_never_needs_more_blocks_than_the_paper() -> None:
    for seed in range(30):
        active = graph(40, 6, seed, density=0.2)
        size = cluster_size(active)
        for min_crowd in range(1, size + 1):
            blocks = open_blocks(batched_graph(active, min_crowd)[0])
            assert len(blocks) <= -(-6 // (size // min_crowd))
            assert sorted(np.concatenate(blocks).tolist()) == list(range(6))


def test_thin_arms_are_open_only_as_long_as_they_are_needed() -> None:
    active = np.ones((10, 5), bool)
    assert euler_decomposition(active, 100, min_crowd=5).total == 100
    # Arm 2 is wanted by 6 users, among 3 arms each: a third of the demand is enough.
    active = np.zeros((40, 3), bool)
    active[:, :2] = active[:6] = True
    assert euler_decomposition(active, 99, min_crowd=6).total == 99 + 33 + 1


def test_equal_assignments_are_not_computed_twice() -> None:
    decomposition = euler_decomposition(np.ones((1000, 8), bool), 4000, min_crowd=100)
    assert decomposition.assignments.shape == (8, 1000)
    assert decomposition.total == 4000


def test_loads_that_are_just_enough_survive_rounding() -> None:
    # Arm 2's mean load is exactly 2, and 7 assignments do not divide among 2, 3 or 4 arms.
    rows = ["1111", "1111", "1110", "1111", "1001", "1111", "0111", "1101", "1110"]
    active = np.array([[arm == "1" for arm in row] for row in rows])
    means = (active / active.sum(axis=1, keepdims=True)).sum(axis=0)
    assert means[2] == pytest.approx(2)
    for demand in range(1, 20):
        decomposition = euler_decomposition(active, demand, min_crowd=2)
        assert is_decomposition(active, demand, decomposition, min_crowd=2)
        loads = (decomposition.assignments == 2).sum(axis=1)
        assert (loads == 2).all()


def test_needs_no_more_assignments_than_the_lp() -> None:
    for seed in range(10):
        active = graph(50, 5, seed)
        euler = euler_decomposition(active, 200, min_crowd=3)
        assert euler.total <= lp_decomposition(active, 200, min_crowd=3).total


@pytest.mark.parametrize("n_arms", [16, 17, 40])
def test_serves_many_arms(n_arms: int) -> None:
    active = graph(3000, n_arms, 0)
    active[:1500] = True
    decomposition = euler_decomposition(active, 50, min_crowd=20)
    assert is_decomposition(active, 50, decomposition, min_crowd=20)


@pytest.mark.parametrize("n_arms", [3, 16, 17])
def test_users_take_turns_on_their_arms_in_order(n_arms: int) -> None:
    rng = np.random.default_rng(0)
    patterns = rng.random((20, n_arms)) < 0.5
    patterns[:, -1] = True
    patterns[0] = True
    of_user = rng.integers(20, size=3000)
    starts = rng.integers(patterns.sum(axis=1)[of_user])
    rows = rotas(patterns, of_user, starts, n_slots=40)
    for user in range(0, 3000, 7):
        arms = np.flatnonzero(patterns[of_user[user]])
        expected = arms[(starts[user] + np.arange(40)) % len(arms)]
        np.testing.assert_array_equal(rows[:, user], expected)


def test_rotas_of_different_lengths_and_the_users_left_over_balance_together() -> None:
    rng = np.random.default_rng(1)
    active = rng.random((5003, 5)) < 0.5
    active[np.arange(5003), rng.integers(5, size=5003)] = True
    decomposition = euler_decomposition(active, 50, min_crowd=900)
    assert is_decomposition(active, 50, decomposition, min_crowd=900)
    loads = (decomposition.assignments[:, :, None] == np.arange(5)).sum(axis=1)
    assert np.ptp(loads, axis=0).max() <= 1
