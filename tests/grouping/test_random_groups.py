"""Random groups: every crowd is split evenly, and anyone meets anyone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.arrays import IntArray
from shoal.grouping.random_groups import cut_crowds, draw, regroup

SEED = np.uint64(2**63 + 12345)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 6), st.integers(0, 99))
def test_every_crowd_is_split_into_as_many_groups_as_fit(
    arms: list[int], min_group_size: int, seed: int
) -> None:
    crowd_arms = np.array(arms, np.int32)
    groups = np.empty(len(arms), np.int32)
    regroup(crowd_arms, 4, min_group_size, 0, np.random.default_rng(seed).random(len(arms)), groups)
    for arm in range(4):
        crowd = groups[crowd_arms == arm]
        n_groups = len(crowd) // min_group_size
        sizes = np.bincount(crowd[crowd >= 0])
        sizes = sizes[sizes > 0]
        assert len(sizes) == n_groups
        if n_groups == 1:
            assert sizes.tolist() == [min_group_size]
        elif n_groups > 1:
            assert sizes.sum() == len(crowd)
            assert sizes.max() - sizes.min() <= 1


def test_crowds_are_cut_evenly() -> None:
    arms = np.random.default_rng(6).choice(
        np.array([-1, 0, 1, 2], np.int32), 500, p=[0.1, 0.6, 0.29, 0.01]
    )
    groups = np.empty(500, np.int32)
    end = cut_crowds(arms, 3, 12, 17, SEED, 7, groups)
    used = np.unique(groups[groups >= 0])
    assert used.tolist() == list(range(7, end))
    assert (groups[(arms == -1) | (arms == 2)] == -1).all()  # too few on arm 2
    for arm in (0, 1):
        sizes = np.unique(groups[arms == arm], return_counts=True)[1]
        assert sizes.min() >= 17
        assert sizes.max() <= sizes.min() + 1
        assert sizes.sum() == (arms == arm).sum()


def test_users_meet_at_random() -> None:
    # Any two of twelve share a group of three with probability 2 / 11; over 4,000 rounds that is
    # 727 times, give or take 24. Six standard errors, over 66 pairs: below 1e-6.
    together: IntArray = np.zeros((12, 12), np.int32)
    arms, groups = np.zeros((2, 12), np.int32)
    seeds = np.random.default_rng(7).integers(2**64, size=4000, dtype=np.uint64)
    for seed in seeds:
        cut_crowds(arms, 1, 3, 3, seed, 0, groups)
        together += groups[:, None] == groups
    pairs = together[np.triu_indices(12, 1)]
    assert np.abs(pairs - 4000 * 2 / 11).max() < 6 * 24.4


def test_draws_are_below_their_bound_and_all_reached() -> None:
    assert {draw(SEED, i, 7) for i in range(500)} == set(range(7))
