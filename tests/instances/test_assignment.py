"""Whether who saw which arm was left to chance. Seeds are fixed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from shoal.arrays import FloatArray, LongArray
from shoal.instances import from_log
from shoal.instances.assignment import MAX_OF_A_USER, excess_over_chance, find_uneven
from shoal.instances.profile import LogProfile


def counts_of(shares: FloatArray, rows: LongArray, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.multinomial(rows, shares).astype(np.float64)


def test_the_shares_are_those_of_other_rows() -> None:
    """Over the rows of an arm, the mean share of the arm among the other rows of its group."""
    groups = [["x", "x", "y"], ["y", "y", "y", "x"]]
    counts = np.array([[group.count("x"), group.count("y")] for group in groups], dtype=float)
    again, shares, *_ = excess_over_chance(counts, counts.sum(axis=1))
    for arm, name in enumerate("xy"):
        others = [
            np.mean([b == name for j, b in enumerate(group) if j != i])
            for group in groups
            for i, a in enumerate(group)
            if a == name
        ]
        assert again[arm] == pytest.approx(np.mean(others))
    assert shares == pytest.approx([3 / 7, 4 / 7])
    assert find_uneven(np.array([[1.0, 0.0], [0.0, 1.0]]), ["x", "y"]) is None


@pytest.mark.parametrize("shares", [[0.25] * 4, [0.9, 0.05, 0.05], [0.5, 0.3, 0.2]])
def test_errors_are_standard_normal_where_arms_are_left_to_chance(shares: list[float]) -> None:
    """Over 300 logs, deviation 1 with an error of 0.041 and mean 0 with 0.058: 6 of them."""
    rng = np.random.default_rng(1)
    errors = []
    for seed in range(300):
        rows = rng.integers(2, 40, size=400)
        counts = counts_of(np.array(shares), rows, seed)
        errors.append(excess_over_chance(counts, rows.astype(float)).errors)
    assert (np.abs(np.mean(errors, axis=0)) < 6 * 0.058).all()
    assert (np.abs(np.std(errors, axis=0) - 1) < 6 * 0.041).all()


def profile_of(arms: LongArray, users: LongArray, times: LongArray) -> LogProfile:
    rewards = np.random.default_rng(2).random(len(users)) < 0.3
    frame = pl.DataFrame({"user": users, "arm": arms, "reward": rewards, "time": times})
    return from_log(frame, time="time").profile


def test_arms_shown_to_some_or_at_some_times_are_reported() -> None:
    rng = np.random.default_rng(3)
    users, times = np.repeat(np.arange(300), 10), np.tile(np.arange(10), 300)
    chance = rng.integers(3, size=3_000)
    fair = profile_of(chance, users, times)
    assert not any("alike" in warning or "times" in warning for warning in fair.warnings)
    by_user = profile_of(np.where(rng.random(3_000) < 0.5, users % 3, chance), users, times)
    assert any("Users did not see all arms alike" in warning for warning in by_user.warnings)
    assert not any("at different times" in warning for warning in by_user.warnings)
    by_time = profile_of(np.where(rng.random(3_000) < 0.5, times // 4, chance), users, times)
    assert any("Arms were shown at different times" in warning for warning in by_time.warnings)


@pytest.mark.slow
def test_an_arm_that_few_saw_is_noticed_and_doubted_in_the_population() -> None:
    rng = np.random.default_rng(4)
    users = np.repeat(np.arange(400), 20)
    arms = np.where((users % 4 == 0) & (rng.random(8_000) < 0.25), 0, rng.integers(1, 4, 8_000))
    frame = pl.DataFrame({"user": users, "arm": arms, "reward": rng.random(8_000) < 0.2})
    log = from_log(frame)
    assert log.profile.by_user is not None
    assert log.profile.by_user.arm == "0"
    assert "not to be trusted" in log.population.doubts[0]


def test_events_that_were_recorded_twice_are_doubted() -> None:
    rng = np.random.default_rng(5)
    users, arms = rng.integers(200, size=2_000), rng.integers(3, size=2_000)
    once = pl.DataFrame(
        {"user": users, "arm": arms, "reward": rng.random(2_000) < 0.2,
         "time": rng.integers(10, size=2_000)}
    )  # fmt: skip
    fair = from_log(once, time="time").profile
    assert fair.repeated_events == 0
    assert fair.repeated_times > 100
    exact = once.with_columns(time=pl.Series(rng.random(2_000)))
    twice = pl.concat([exact, exact.head(500)]).with_columns(row=pl.Series(np.arange(2_500)))
    profile = from_log(twice, time="time").profile
    assert (profile.duplicates, profile.repeated_events) == (0, 500)
    assert profile.doubts[0].startswith("500 rows have the user, arm, time and reward of another")


def test_rows_of_one_visit_with_one_arm_are_named_and_doubted() -> None:
    """Nobody has tastes, but the rows of a visit share a mood and an arm, which looks like them."""
    rng = np.random.default_rng(0)
    visit = np.repeat(np.arange(4_000), rng.poisson(3, 4_000) + 1)
    users, arms = rng.integers(300, size=4_000), rng.integers(3, size=4_000)
    mood = np.clip(0.2 * np.exp(0.9 * rng.standard_normal(4_000) - 0.4), 0, 0.95)
    rewards = (rng.random(len(visit)) < mood[visit]).astype(int)
    rows = pl.DataFrame({"user": users[visit], "arm": arms[visit], "reward": rewards})
    population = from_log(rows).population
    assert "several rows are of one visit and have its arm" in population.doubts[0]
    assert population.tells.startswith("Users seem to differ")


def test_many_visits_of_a_user_do_not_hide_that_their_rows_have_one_arm() -> None:
    """Of 96 rows a user in visits of 4, an arm is seen again in 36 % and not 34 % of the others."""
    rng = np.random.default_rng(1)
    visit = np.repeat(np.arange(9_600), 4)
    counts = np.zeros((400, 3))
    np.add.at(counts, (rng.integers(400, size=9_600)[visit], rng.integers(3, size=9_600)[visit]), 1)
    uneven = find_uneven(counts, "xyz", max_deviation=MAX_OF_A_USER)
    assert uneven is not None
    assert uneven.again < 1.1 * uneven.share
    rewards = rng.random(len(visit)) < 0.2
    places = np.repeat(np.arange(1_200), counts.ravel().astype(int))
    users, arms = np.divmod(places, 3)
    rows = pl.DataFrame({"user": users, "arm": arms, "reward": rewards})
    assert (
        "35.7% of its other rows have it too, of all rows 33.6%" in from_log(rows).profile.doubts[0]
    )


def test_arms_left_to_chance_and_a_few_testers_are_no_alarm() -> None:
    """20 logs of each kind; a false alarm has a probability of at most 1e-6 in each."""
    rng = np.random.default_rng(7)
    for seed in range(20):
        n_users, n_rows = int(rng.choice([5, 60, 1_000])), int(rng.choice([3, 30, 1_000]))
        shares = rng.dirichlet([2] * int(rng.integers(2, 7)))
        counts = counts_of(shares, rng.integers(2, 2 * n_rows, size=n_users), seed)
        assert find_uneven(counts, range(len(shares)), max_deviation=MAX_OF_A_USER) is None
        if n_users == 1_000:
            counts[:2] = [n_rows, *[0.0] * (len(shares) - 1)]  # two who see the first arm only
            assert find_uneven(counts, range(len(shares)), max_deviation=MAX_OF_A_USER) is None
