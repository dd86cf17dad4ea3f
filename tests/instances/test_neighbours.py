"""Rows of a user that follow each other closely. Seeds are fixed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

from shoal.instances import from_log
from shoal.instances.neighbours import excess_of_close
from shoal.instances.profile import LogProfile

DAY = 86_400


def profile_of(rows: pl.DataFrame) -> LogProfile:
    return from_log(rows, time="time").profile


def visits_of_four(rng: np.random.Generator, *, moody: bool, sticky: bool = True) -> pl.DataFrame:
    """Return 24 visits a user, of 4 rows that are 37 seconds apart; all users and arms alike."""
    visit = np.repeat(np.arange(4_800), 4)
    users, times = rng.integers(200, size=4_800), rng.integers(0, 60 * DAY, 4_800)
    arms = rng.integers(3, size=4_800)[visit] if sticky else rng.integers(3, size=len(visit))
    mood = np.where(rng.random(4_800) < 0.3, 0.6, 0.05) if moody else np.full(4_800, 0.2)
    return pl.DataFrame(
        {
            "user": users[visit],
            "arm": arms,
            "reward": (rng.random(len(visit)) < mood[visit]).astype(int),
            "time": 1_767_571_200 + times[visit] + np.tile(np.arange(4) * 37, 4_800),
        }
    )


def events_sent_again(rng: np.random.Generator, *, rate: float, share: float) -> pl.DataFrame:
    """Return 12,000 events of which a share was recorded again 300 milliseconds later."""
    once = pl.DataFrame(
        {
            "user": rng.integers(600, size=12_000),
            "arm": rng.integers(3, size=12_000),
            "reward": (rng.random(12_000) < rate).astype(int),
            "time": 1_767_571_200_000 + rng.integers(0, 30_000 * DAY, 12_000),
        }
    )
    again = once.filter(pl.Series(rng.random(12_000) < share))
    return pl.concat([once, again.with_columns(pl.col("time") + 300)])


def test_the_error_is_that_of_pairs_drawn_without_replacement() -> None:
    """Against all ways to draw 2 of 4 pairs of one user, and 1 of 3 of the other."""
    agreement, user = np.array([1.0, 0.0, 0.5, 0.2, 0.9, 0.1, 0.4]), np.array([0] * 4 + [1] * 3)
    excesses = []
    for two in combinations(range(4), 2):
        for one in range(4, 7):
            close = np.isin(np.arange(7), [*two, one])
            excess, error = excess_of_close(agreement, close, user)
            excesses.append(excess)
    assert np.mean(excesses) == pytest.approx(0.0)
    assert np.std(excesses) == pytest.approx(error)


def test_visits_with_one_arm_and_a_mood_are_doubted() -> None:
    profile = profile_of(visits_of_four(np.random.default_rng(1), moody=True))
    assert profile.close_rows is not None
    assert profile.close_rows.same > 0.95
    assert profile.close_rows.others == pytest.approx(1 / 3, abs=0.05)
    assert profile.doubts[0].startswith(
        "Successive rows of a user that lie close together in time have the same arm in 99% of "
    )


@pytest.mark.parametrize(("rate", "share"), [(0.2, 0.2), (0.2, 0.05), (0.02, 0.2)])
def test_events_that_were_sent_again_a_little_later_are_doubted(rate: float, share: float) -> None:
    again = events_sent_again(np.random.default_rng(1), rate=rate, share=share)
    assert profile_of(again).close_rows is not None
    numbered = again.with_columns(event=pl.int_range(again.height))
    assert "or one event that was recorded more than once" in profile_of(numbered).doubts[0]


@pytest.mark.parametrize(("moody", "sticky"), [(False, True), (True, False), (False, False)])
def test_visits_without_a_mood_or_with_all_arms_are_not(moody: bool, sticky: bool) -> None:
    """A mood that is the same for all arms is no taste, and one arm without a mood neither."""
    for seed in range(5):
        rows = visits_of_four(np.random.default_rng(seed), moody=moody, sticky=sticky)
        assert profile_of(rows).close_rows is None


def test_clean_logs_are_not_doubted() -> None:
    """Of users who come more or less often, at any time or on days; 20 alarms of 1e-6 each."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n_users, rate = int(rng.choice([40, 300])), rng.choice([0.02, 0.2, 0.5])
        activity = rng.exponential(1.0, n_users) + 0.05
        users = rng.choice(n_users, size=6_000, p=activity / activity.sum())
        arms = rng.choice(4, size=6_000, p=rng.dirichlet([3] * 4))
        tastes = rate * np.exp(rng.normal(-0.1, 0.4, (n_users, 4)))
        times = rng.uniform(0, 60, 6_000)
        rewards = rng.random(6_000) < tastes[users, arms] * (1 + np.sin(2 * np.pi * times))
        rows = pl.DataFrame({"user": users, "arm": arms, "reward": rewards.astype(int)})
        time = pl.Series(times if seed % 2 else times // 1)
        assert profile_of(rows.with_columns(time=time)).doubts == []
