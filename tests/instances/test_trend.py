"""A common trend in time is taken out, and nothing else. Seeds are fixed."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.arrays import FloatArray, LongArray
from shoal.instances.trend import remove_trend

N_ROWS = 40_000


def log_of(rate: float, slopes: list[float], seed: int) -> tuple[FloatArray, LongArray, FloatArray]:
    """Return times, arms and rewards of arms whose rates rise by their slope over the log."""
    rng = np.random.default_rng(seed)
    times, arms = rng.random(N_ROWS), rng.integers(len(slopes), size=N_ROWS)
    rates = rate * (1 + np.array(slopes)[arms] * (times - 0.5))
    return times, arms, (rng.random(N_ROWS) < rates).astype(float)


@pytest.mark.parametrize("rate", [0.05, 0.4, 0.7])
def test_early_and_late_rows_have_the_same_mean_afterwards(rate: float) -> None:
    """The two means have errors of at most 0.006 in all; 6 of them: false alarm below 1e-8."""
    times, arms, rewards = log_of(rate, [0.7, -0.7], seed=1)
    flat, size, _ = remove_trend(times, arms, rewards, 2)
    assert size > 0.05
    for arm in range(2):
        early, late = (
            flat[(arms == arm) & part].mean() for part in (times < 0.5, times >= 0.5)
        )  # fmt: skip
        raw = [rewards[(arms == arm) & part].mean() for part in (times < 0.5, times >= 0.5)]
        assert abs(raw[0] - raw[1]) > 0.2 * min(rate, 1 - rate)
        assert abs(early - late) < 0.036
        assert flat[arms == arm].mean() == pytest.approx(rewards[arms == arm].mean(), rel=0.03)


def test_without_a_trend_little_is_changed() -> None:
    times, arms, rewards = log_of(0.2, [0.0, 0.0], seed=2)
    flat, size, _ = remove_trend(times, arms, rewards, 2)
    assert size < 0.05
    np.testing.assert_allclose(flat, rewards, atol=0.15)


def test_few_events_say_nothing_about_time() -> None:
    times = np.arange(100.0)
    rewards = (times > 60).astype(float)
    flat, size, _ = remove_trend(times, np.zeros(100, dtype=np.int64), rewards, 1)
    assert size == 0.0
    np.testing.assert_array_equal(flat, rewards)


def test_one_moment_has_no_trend() -> None:
    rewards = (np.arange(1_000) % 2).astype(float)
    flat, size, _ = remove_trend(np.zeros(1_000), np.zeros(1_000, dtype=np.int64), rewards, 1)
    assert size == 0.0
    np.testing.assert_array_equal(flat, rewards)
