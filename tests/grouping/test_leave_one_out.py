"""Section 3.1: groups of C+1 to 2C+1 users, each left out once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.grouping.leave_one_out import empty_rota, leave_out, split_crowds


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 6))
def test_crowds_are_split_into_groups_of_c_plus_1_to_2c_plus_1(
    arms: list[int], min_group_size: int
) -> None:
    rota = empty_rota(len(arms))
    groups, places, sizes = rota
    crowd_arms = np.array(arms, np.int32)
    split_crowds(crowd_arms, 4, min_group_size + 1, 0, rota)
    for arm in range(4):
        crowd = np.flatnonzero(crowd_arms == arm)
        assert (groups[crowd] >= 0).all() == (len(crowd) > min_group_size or len(crowd) == 0)
    for group in set(groups.tolist()) - {-1}:
        members = np.flatnonzero(groups == group)
        assert min_group_size + 1 <= len(members) <= 2 * min_group_size + 1
        assert len(set(crowd_arms[members])) == 1
        assert sorted(places[members]) == list(range(1, len(members) + 1))
        assert sizes[group] == len(members)


def test_only_the_user_whose_turn_it_is_leaves_the_group() -> None:
    rota = empty_rota(8)
    split_crowds(np.zeros(8, np.int32), 1, 3, 0, rota)
    committed = np.zeros(1, bool)
    for turn in range(6):
        groups = leave_out(rota, np.array([turn]), committed)
        expected = np.where(rota.places == turn, -1, rota.groups)
        np.testing.assert_array_equal(groups, expected)
    assert (leave_out(rota, np.array([1]), ~committed) == -1).all()
