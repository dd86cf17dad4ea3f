"""Crowds: split evenly and at random, into groups that are large enough where some don't report."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from shoal.arrays import IntArray
from shoal.grouping import cut_crowds, draw, group_size, regroup, safe_size
from shoal.model.merging import merge_short

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


@pytest.mark.parametrize(("share", "size"), [(1.0, 4), (0.7, 8), (0.05, 30)])
def test_groups_are_large_enough_to_be_released_most_of_the_time(share: float, size: int) -> None:
    assert safe_size(4, share, 30) == size
    if share > 0.5:
        assert stats.binom.sf(3, size, share) > 0.9


@pytest.mark.parametrize(("least", "share"), [(4, 0.7), (20, 0.7), (20, 0.9), (10, 0.3)])
def test_groups_have_the_size_that_makes_most_totals_once_merged(least: int, share: float) -> None:
    rng = np.random.default_rng(5)

    def totals_per_member(size: int) -> float:
        reporters = rng.binomial(size, share, size=200_000 // size)
        into = merge_short(reporters, np.zeros_like(reporters), least)
        return len(np.unique(into[into >= 0])) / (size * len(reporters))

    most = max(totals_per_member(size) for size in range(least, 3 * least))
    assert totals_per_member(group_size(least, share, 3 * least)) > 0.97 * most
