"""Theorem 1 where users have more samples of one arm than of another: docs/theory.md."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.decompositions import Decomposition, decompose
from shoal.model import Problem
from shoal.policies import POLICIES, make_policy
from shoal.policies.paper.batched_elimination import BatchedElimination
from shoal.policies.paper.grid import batch_ends, default_batches
from shoal.policies.paper.leave_one_out import LeaveOneOut
from shoal.policies.paper.successive_elimination import eliminate


def thin_cluster(n_arms: int, crowd: int) -> np.ndarray:
    """One user wants arm 0, crowd − 1 want every arm, and each other arm has its own users."""
    decided = np.eye(n_arms, dtype=bool)
    thin = np.vstack([decided[:1], np.ones((crowd - 1, n_arms), bool)])
    return np.vstack([thin, np.repeat(decided[1:], crowd, axis=0)])


def samples(active: np.ndarray, decomposition: Decomposition, crowd: int) -> np.ndarray:
    """Return the informative assignments of each user on each arm."""
    n_users, n_arms = active.shape
    counts = np.zeros((n_users, n_arms))
    for row, repeats in zip(decomposition.assignments, decomposition.repeats, strict=True):
        informed = np.bincount(row, minlength=n_arms)[row] >= crowd
        counts[np.flatnonzero(informed), row[informed]] += repeats
    return counts


def above(threshold: float, variance: float) -> float:
    """Return the probability that a normal variable exceeds the threshold."""
    return math.erfc(threshold / math.sqrt(2 * variance)) / 2


@pytest.mark.parametrize("n_arms", [5, 10, 20])
def test_the_largest_number_of_samples_says_little_of_the_others(n_arms: int) -> None:
    """Home and away gives K times as many at home; rewards have variance 1/4, samples (4C+1)/4.

    An away arm as good as the home is dropped far more often than 1/(N·K·T) by the largest count,
    with the gamma that is enough for fixed counts, and not pairwise.
    """
    size = 4
    active = thin_cluster(n_arms, size + 1)
    part = decompose(active, 4000, min_crowd=size + 1, method="home-away")
    counts = samples(active, part, size + 1)[1]  # of a user who wants every arm
    assert counts.max() > 0.9 * n_arms * counts.min()
    pairs = len(active) * n_arms * 10**6
    gamma = (4 * size + 1) * math.log(pairs)
    variance = (4 * size + 1) / 4 * (1 / counts.max() + 1 / counts.min())
    assert above(math.sqrt(gamma / counts.max()), variance) > 1e4 / pairs
    both = (1 / counts.max() + 1 / counts.min()) / 2
    assert above(math.sqrt(gamma * both), variance) <= 1 / pairs


def test_pairwise_keeps_an_arm_of_few_samples_that_the_largest_count_drops() -> None:
    active, counts = np.ones((1, 2), bool), np.array([[1000.0, 10.0]])
    means = np.array([[0.6, 0.4]])
    assert not eliminate(active, means, counts, gamma=2.0)[0, 1]
    assert eliminate(active, means, counts, gamma=2.0, pairwise=True).all()


@pytest.mark.parametrize("name", [name for name in POLICIES if name.startswith("elimination-")])
def test_every_elimination_policy_can_compare_pairwise(name: str) -> None:
    problem = Problem(12, 2, 2, horizon=1000)
    for pairwise, n_left in ((False, 1), (True, 2)):
        policy = make_policy(
            name, problem, rng=np.random.default_rng(0),
            options={"pairwise": pairwise, "gamma": 2.0},
        )  # fmt: skip
        assert isinstance(policy, BatchedElimination)
        assert isinstance(policy._samples, LeaveOneOut)
        policy._batches[0] = 1
        policy._samples.tally.counts[:] = [1000.0, 10.0]
        policy._samples.tally.sums[:] = [600.0, 4.0]
        policy.ask()
        assert (policy._active.sum(axis=1) == n_left).all()


@pytest.mark.parametrize("proxy", [0.25, 1.0])
@pytest.mark.parametrize("size", [1, 4, 50])
def test_the_union_over_all_numbers_of_samples_costs_two(size: int, proxy: float) -> None:
    for n_users, n_arms, horizon in ((3, 2, 10), (50, 5, 10**5), (10**4, 100, 10**9)):
        log = math.log(n_users * n_arms * horizon)
        gamma = 12 * proxy * (4 * size + 1) * log
        for n, other in ((1, 1), (1, 1000), (7, 10**6)):
            threshold_squared = gamma * (1 / n + 1 / other) / 2
            variance = proxy * (4 * size + 1) * (1 / n + 1 / other)
            # exp(-threshold² / (2·proxy)), in logarithms.
            assert threshold_squared / (2 * variance) == pytest.approx(3 * log)
        union = math.log(2 * n_users * n_arms) + 2 * math.log(horizon) - 3 * log
        assert union <= math.log(2 / horizon)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("ratio", [1.0, 1.8, 9.0])
@pytest.mark.parametrize("exponent", range(9, 60, 3))
def test_each_batch_costs_what_the_proof_says(exponent: int, ratio: float, size: int) -> None:
    """With gaps of 2·√(gamma·K/samples), in units of √(gamma·K), on the grid of the code."""
    horizon, per_sample = 2**exponent, 2 * size + 2
    shortened = int(horizon / (ratio * per_sample))
    n_batches = default_batches(horizon)
    assert shortened >= 2
    first = shortened ** (1 / (2 - 2 ** (1 - n_batches)))
    assert first <= 2 * math.sqrt(shortened)
    root = 2 * math.sqrt(ratio * per_sample * horizon)
    assert ratio * per_sample * first <= root
    ends = batch_ends(shortened, n_batches)
    demands = np.diff(ends, prepend=0)
    assert per_sample * ratio * demands[0] <= root * (1 + 1e-9)
    for batch in range(1, len(ends)):
        rounds = horizon if batch == len(ends) - 1 else per_sample * ratio * demands[batch]
        assert rounds * 2 / math.sqrt(ends[batch - 1]) <= root * math.sqrt(18)
