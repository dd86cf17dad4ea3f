import numpy as np
import pytest

from shoal.decompositions import euler_decomposition, is_decomposition
from shoal.decompositions.rotas import rotas


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
