import numpy as np

from shoal.decompositions import greedy_decomposition, is_decomposition


def test_gathers_on_each_arm_everyone_who_wants_it() -> None:
    active = np.random.default_rng(0).random((40, 4)) < 0.7
    active[:, 2] = True
    for rng in (None, np.random.default_rng(1)):
        decomposition = greedy_decomposition(active, 10, min_crowd=2, rng=rng)
        for arm in range(4):
            assert (decomposition.assignments[arm, active[:, arm]] == arm).all()


def test_repeats_until_the_hungriest_user_is_served() -> None:
    active = np.array([[True, True, True]] * 3 + [[True, False, False]])
    decomposition = greedy_decomposition(active, 10, min_crowd=3)
    np.testing.assert_array_equal(decomposition.repeats, [10, 4, 4])


def test_needs_at_most_one_demand_an_arm() -> None:
    active = np.eye(3, dtype=bool).repeat(3, axis=0)
    decomposition = greedy_decomposition(active, 7, min_crowd=3)
    assert decomposition.total == 3 * 7
    assert is_decomposition(active, 7, decomposition, min_crowd=3)
