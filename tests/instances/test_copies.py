"""Events that a log of three columns has several times."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal.errors import InvalidInputError
from shoal.instances import from_log
from shoal.instances.copies import Copies, find_copies


def alike(n_rows: int, *, seed: int = 0) -> pl.DataFrame:
    """Return a log of three columns in which everybody is alike."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(3, size=n_rows)
    rewards = (rng.random(n_rows) < np.array([0.2, 0.25, 0.3])[arms]).astype(float)
    users = rng.integers(200, size=n_rows)
    return pl.DataFrame({"user": users, "arm": arms, "reward": rewards})


@pytest.mark.parametrize("times", [2, 3, 4])
@pytest.mark.parametrize("n_rows", [400, 6_000])
def test_a_log_of_three_columns_with_copies_of_every_event_is_refused(
    times: int, n_rows: int
) -> None:
    copied = pl.concat([alike(n_rows)] * times)
    with pytest.raises(
        InvalidInputError, match=rf"recorded once; got {times} times.*Keep one of each {times} "
    ):
        from_log(copied)
    profile = from_log(copied.with_row_index("event")).profile
    assert profile.copies is not None
    assert profile.copies.times == times
    assert f"Events seem to be recorded {times} times: for " in profile.doubts[0]


def test_copies_of_many_events_are_doubted() -> None:
    rows = alike(20_000)
    some = pl.concat([rows, rows.filter(pl.col("user") < 120)])
    profile = from_log(some).profile
    assert profile.copies is not None
    assert profile.copies.times == 2
    assert profile.copies.multiples < profile.copies.pairs
    assert "leave them out" in profile.doubts[0]


def test_designs_and_tastes_that_no_copy_explains_are_left_alone() -> None:
    # Each is a test at 1e-6 or below; 40 of them alarm by chance less than once in 25,000.
    for seed in range(20):
        assert find_copies(alike(6_000, seed=seed)) is None
        # Everyone sees every arm exactly ten times; some always, most hardly ever say yes.
        rng = np.random.default_rng(seed)
        users, arms = np.repeat(np.arange(100), 30), np.tile(np.arange(3), 1_000)
        rate = np.where(users % 10 == 0, 0.97, 0.02)
        frame = pl.DataFrame({"user": users, "arm": arms, "reward": rng.random(3_000) < rate})
        assert find_copies(frame) is None


def test_the_first_users_of_a_long_log_tell_of_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.instances.copies.MAX_COMPARED_ROWS", 1_500)
    rows = alike(6_000)
    copies = find_copies(pl.concat([rows] * 3))
    assert copies is not None
    assert copies.times == 3
    assert copies.pairs < 100  # of 600
    assert find_copies(rows) is None


def test_copies_of_rewards_on_a_scale_are_found() -> None:
    rows = alike(1_000).with_columns(reward=pl.Series(np.random.default_rng(1).random(1_000)))
    assert find_copies(rows) is None
    n_pairs = rows.select("user", "arm").n_unique()
    assert find_copies(pl.concat([rows] * 2)) == Copies(2, n_pairs, n_pairs)
