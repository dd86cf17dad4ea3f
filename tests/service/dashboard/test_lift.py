"""What the holdout measures: a calibrated interval, over users who are drawn at random."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from shoal.service.aggregator.holdout import N_BLOCKS
from shoal.service.dashboard.lift import Lift, RoundSums, measure

FALSE_ALARM = 1e-6
N_ROUNDS = 20


def played(
    means: np.ndarray, held_out: np.ndarray, n_blocks: int, rng: np.random.Generator
) -> Lift:
    """Play rounds in which both get their means, (n_users,), as if on one arm, and measure."""
    days = rng.uniform(-0.05, 0.05, N_ROUNDS)[:, None]  # what moves everyone
    rewards = rng.random((N_ROUNDS, len(means))) < means + days
    rounds = np.arange(N_ROUNDS)
    others = rewards[:, ~held_out]
    count = np.full(N_ROUNDS, float(others.shape[1]))
    whole = RoundSums(
        rounds, np.ones_like(rounds), others.sum(axis=1).astype(float), count, count / 10
    )
    held = rewards[:, held_out]
    block = np.arange(held.shape[1]) % n_blocks
    sums = np.stack([held[:, block == b].sum(axis=1) for b in range(n_blocks)], axis=1)
    sizes = np.tile(np.bincount(block, minlength=n_blocks), N_ROUNDS).astype(float)
    parts = RoundSums(
        rounds.repeat(n_blocks), np.tile(n_blocks + np.arange(n_blocks), N_ROUNDS),
        sums.ravel().astype(float), sizes, np.ones_like(sizes),
    )  # fmt: skip
    lift = measure(whole, parts)
    assert lift is not None
    return lift


@pytest.mark.parametrize("n_blocks", [1, N_BLOCKS])
@pytest.mark.parametrize("users", ["agree", "differ", "always answer the same"])
def test_the_interval_holds_0_where_nothing_is_gained(users: str, n_blocks: int) -> None:
    """Misses are at most 5 %: more by chance with a probability of at most 1e-6 a case."""
    rng, n_users, n_runs = np.random.default_rng(1), 600, 300
    missed, widths = 0, []
    for _ in range(n_runs):
        means = {
            "agree": np.full(n_users, 0.3),
            "differ": rng.beta(1.0, 2.0, n_users),
            "always answer the same": (rng.random(n_users) < 0.3).astype(float),
        }[users]
        held_out = rng.permutation(n_users) < 96
        lift = played(means, held_out, n_blocks, rng)
        assert lift.by_blocks == (n_blocks > 1)
        missed += not lift.low <= 0 <= lift.high
        widths.append(lift.half_width)
    assert missed <= binom.isf(FALSE_ALARM, n_runs, 0.05)
    if users == "always answer the same":  # then neither part is wider than it needs to be
        assert missed >= binom.ppf(FALSE_ALARM, n_runs, 0.03)
    if users == "agree":  # blocks know that they do
        assert (np.mean(widths) < 0.06) == (n_blocks > 1)


def test_a_lift_is_found_and_time_does_not_disturb_it() -> None:
    rounds = np.arange(40)
    days = np.where(rounds < 20, 0.1, 0.5)  # a jump for everyone, while reporters change
    count, fewer = np.full(40, 900.0), np.where(rounds < 20, 100.0, 60.0)
    others = RoundSums(rounds, np.ones_like(rounds), (days + 0.2) * count, count, count / 10)
    held = RoundSums(rounds, np.ones_like(rounds), days * fewer, fewer, fewer / 10)
    lift = measure(others, held)
    assert lift is not None
    assert lift.mean == pytest.approx(0.2)
    assert (lift.low > 0, lift.n_rounds, lift.n_users) == (True, 40, 80)
    noisy = measure(others, held, noise=1000.0)
    assert noisy is not None
    assert noisy.half_width > lift.half_width


def test_nothing_is_measured_where_one_of_the_two_is_not() -> None:
    none = RoundSums(*(np.array([], dtype) for dtype in (np.int64, np.int64, float, float, float)))
    some = RoundSums(
        np.array([1]), np.array([1]), np.array([5.0]), np.array([10.0]), np.array([1.0])
    )
    assert measure(some, none) is None
    assert measure(none, some) is None


def test_totals_of_several_blocks_leave_the_level_that_has_them_all() -> None:
    rounds = np.repeat([1, 2], 8)
    whole = RoundSums(np.array([1, 2]), np.ones(2, int), np.array([300.0, 300.0]),
                 np.array([1000.0, 1000.0]), np.array([50.0, 50.0]))  # fmt: skip
    fine = np.tile(np.arange(8, 16), 2)
    sums = np.array([30.0, 20.0, 25.0, 35.0] * 4)
    count = np.full(16, 100.0)
    lift = measure(whole, RoundSums(rounds, fine, sums, count, count / 10))
    assert lift is not None
    assert lift.by_blocks
    merged = np.where((rounds == 2) & (fine < 10), 4, fine)  # two blocks in one total
    lift = measure(whole, RoundSums(rounds, merged, sums, count, count / 10))
    assert lift is not None
    assert not lift.by_blocks


def test_an_interval_ends_where_a_difference_of_rewards_does() -> None:
    lift = Lift(-0.766, 0.5, 0.8, 1, 5, by_blocks=False)
    assert lift.low == -1.0
    assert lift.high == pytest.approx(-0.266)
    assert Lift(0.766, 0.5, 0.1, 1, 5, by_blocks=False).high == 1.0
