"""Home and away: certified, and within the theorem's number of assignments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.theory import random_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.decompositions import cluster_size, decompose, is_decomposition
from shoal.decompositions.home_away import (
    _play_home_and_away,
    home_arms,
    home_away_decomposition,
    open_set_stream,
    stay_share,
)


@pytest.mark.parametrize(
    "seed", [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 100))]
)
def test_clusters_of_one_crowd_need_less_than_twice_the_demand(seed: int) -> None:
    rng = np.random.default_rng([15, seed])
    active, crowd = random_graph(rng)
    n_arms = active.shape[1]
    assert cluster_size(active) == crowd
    demand = int(rng.integers(1000, 8000))
    decomposition = decompose(active, demand, min_crowd=crowd, method="home-away")
    certificate = is_decomposition(active, demand, decomposition, min_crowd=crowd)
    assert certificate, certificate.reason
    assert certificate.ratio <= 2 - 1 / n_arms + 0.05


@pytest.mark.parametrize("n_arms", [8, 16])
def test_serves_graphs_on_which_blocks_need_as_many_times_the_demand_as_there_are_arms(
    n_arms: int,
) -> None:
    decided = np.eye(n_arms, dtype=bool)
    thin = np.vstack([decided[:1], np.ones((2, n_arms), bool)])
    active = np.vstack([thin, np.repeat(decided[1:], 3, axis=0)])
    blocks = decompose(active, 1000, min_crowd=3, method="blocks")
    assert blocks.total == n_arms * 1000
    decomposition = decompose(active, 1000, min_crowd=3, method="home-away")
    assert is_decomposition(active, 1000, decomposition, min_crowd=3)
    assert decomposition.total <= (2 - 1 / n_arms + 0.02) * 1000


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 300))
def test_is_never_worse_than_euler_and_always_valid(seed: int, demand: int) -> None:
    rng = np.random.default_rng(seed)
    n_arms, crowd = int(rng.integers(2, 8)), int(rng.integers(1, 5))
    home = np.repeat(np.arange(n_arms), crowd + int(rng.integers(0, 4)))
    active = rng.random((len(home), n_arms)) < rng.random()
    active[np.arange(len(home)), home] = True
    decomposition = home_away_decomposition(active, demand, min_crowd=crowd)
    assert is_decomposition(active, demand, decomposition, min_crowd=crowd)
    assert decomposition.total <= decompose(active, demand, min_crowd=crowd).total


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 3000))
def test_home_and_away_alone_keeps_to_what_is_proved_of_it(seed: int, demand: int) -> None:
    """Without Euler's: every demand is met, in at most 9·D + 71·K assignments."""
    rng = np.random.default_rng(seed)
    n_arms, crowd = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    home = np.repeat(np.arange(n_arms), crowd + rng.integers(0, 9, n_arms) * rng.integers(0, 2))
    active = rng.random((len(home), n_arms)) < rng.random() * rng.random(n_arms)
    active[np.arange(len(home)), home] = True
    homes = home_arms(active, crowd)
    assert homes is not None
    decomposition = _play_home_and_away(active, homes, demand, crowd, rng)
    assert is_decomposition(active, demand, decomposition, min_crowd=crowd)
    assert decomposition.total <= 9 * demand + 71 * n_arms


@pytest.mark.parametrize("n_arms", [2, 3, 5, 8, 20])
@pytest.mark.parametrize("all_open", [0.0, 0.1, 0.5, 0.93])
def test_sets_come_in_blocks_as_the_proof_counts_them(n_arms: int, all_open: float) -> None:
    """After M sets: W of whole blocks, M_b of all placements, whatever their order in a block."""
    points = (1 << n_arms.bit_length()) - 1
    assert points + 1 <= 2 * n_arms
    stream = open_set_stream(n_arms, all_open, np.random.default_rng(0))
    n_whole_blocks, n_sets = 0, 0  # of the blocks before
    for _ in range(30):
        size = len(next(stream))
        n_open = size - points
        for n_more in range(size + 1):
            total, whole = n_sets + n_more, n_whole_blocks * points
            share = (1 - all_open) * total
            assert share - points - 1e-9 <= whole <= share + 1 - all_open + 1e-9
            most_placed = whole + min(n_more, points)
            assert most_placed <= whole + points
            least = total - most_placed + whole / 4
            assert least >= total - 0.75 * (1 - all_open) * total - 2 * n_arms - 1e-9
        assert n_open >= 0
        n_whole_blocks, n_sets = n_whole_blocks + 1, n_sets + size


def test_even_assignments_keep_to_the_same_bound() -> None:
    """Where all arms fit together the Euler decomposition is returned; K·N is at most 2^27/100."""
    most = math.isqrt(2**27 // 100)
    for n_arms in range(1, most + 1):
        for demand in (1, 255, 256, 257, 10**6):
            assert demand + n_arms * -(-demand // 256) <= 6 * demand + n_arms
    rng = np.random.default_rng(0)
    for demand in (1, 100, 257, 3001):
        active = np.ones((24, 6), bool)
        active[:, :3] = rng.random((24, 3)) < 0.9
        total = home_away_decomposition(active, demand, min_crowd=2).total
        assert total <= demand + 6 * -(-demand // 256)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 2**32))
def test_homes_exist_exactly_where_clusters_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_users, n_arms = int(rng.integers(2, 20)), int(rng.integers(1, 5))
    active = rng.random((n_users, n_arms)) < 0.5
    active[np.arange(n_users), rng.integers(n_arms, size=n_users)] = True
    largest = cluster_size(active)
    for crowd in range(1, largest + 2):
        homes = home_arms(active, crowd)
        assert (homes is not None) == (crowd <= largest)
        if homes is not None:
            assert active[np.arange(n_users), homes].all()
            assert np.bincount(homes, minlength=n_arms).min() >= crowd
            assert 0 <= stay_share(active, homes, crowd) <= 1


def test_larger_clusters_need_fewer_assignments() -> None:
    """Clusters of twice a crowd: s + 1 − 1/K with s = 1/2, where blocks need 4 times the demand."""
    n_arms, crowd, cluster = 8, 4, 8
    decided = np.eye(n_arms, dtype=bool)
    rows = [np.vstack([decided[:1], np.ones((cluster - 1, n_arms), bool)])]
    active = np.vstack([*rows, np.repeat(decided[1:], cluster, axis=0)])
    decomposition = decompose(active, 4000, min_crowd=crowd, method="home-away")
    assert is_decomposition(active, 4000, decomposition, min_crowd=crowd)
    assert decomposition.total <= (crowd / cluster + 1 - 1 / n_arms + 0.05) * 4000
