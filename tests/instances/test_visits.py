"""How often users come back, and whether their tastes move. Seeds are fixed."""

from __future__ import annotations

import datetime

import numpy as np
import polars as pl
import pytest

from shoal.arrays import FloatArray
from shoal.errors import InvalidInputError
from shoal.instances import Log, from_log
from shoal.instances.visits import count_visits, estimate_drift


def test_one_round_is_singular() -> None:
    rows = {"user": [1, 1, 2, 2], "arm": [1, 2, 1, 2], "reward": [0, 1, 1, 0], "day": [1, 2, 1, 2]}
    assert "half of the times within 1 round;" in str(
        from_log(pl.DataFrame(rows), time="day").visits
    )


def test_the_drift_is_the_fall_of_products_with_the_lag() -> None:
    """Against the definition: a regression within pairs of user and arm, over all two visits."""
    rng = np.random.default_rng(1)
    users, arms = rng.integers(6, size=80), rng.integers(2, size=80)
    rounds, rewards = rng.integers(9, size=80), rng.random(80)
    means = np.array([rewards[arms == arm].mean() for arm in range(2)])
    visits: dict[tuple[int, int], dict[int, list[float]]] = {}
    for user, arm, moment, reward in zip(users, arms, rounds, rewards, strict=True):
        times = visits.setdefault((int(user), int(arm)), {})
        times.setdefault(int(moment), []).append(float(reward - means[arm]))
    above = below = 0.0
    for times in visits.values():
        two = [(a, b) for a in times for b in times if a < b]
        weights = np.array([len(times[a]) * len(times[b]) for a, b in two], dtype=float)
        lags = np.array([b - a for a, b in two], dtype=float)
        products = np.array([sum(times[a]) * sum(times[b]) for a, b in two])
        if len(two) < 2:
            continue
        centre = (weights * lags).sum() / weights.sum()
        above += ((lags - centre) * products).sum()
        below += (weights * (lags - centre) ** 2).sum()
    drift = estimate_drift(users, arms, rounds, rewards)
    assert drift is not None
    assert drift.median == pytest.approx(-2 * above / below)


def rewards_of(steps: float, seed: int) -> FloatArray:
    """Return the rewards of 3,000 users in 12 rounds, whose tastes move by a deviation a round."""
    rng = np.random.default_rng(seed)
    tastes = rng.normal(0.0, 0.1, (3_000, 1)) + rng.normal(0.0, steps, (3_000, 12)).cumsum(axis=1)
    rewards: FloatArray = rng.random((3_000, 12)) < np.clip(0.5 + tastes, 0.0, 1.0)
    return rewards.astype(float).ravel()


USERS, ROUNDS = np.repeat(np.arange(3_000), 12), np.tile(np.arange(12), 3_000)
ONE_ARM = np.zeros(36_000, dtype=np.int64)


def test_tastes_that_move_are_told_from_tastes_that_stay() -> None:
    moving = estimate_drift(USERS, ONE_ARM, ROUNDS, rewards_of(0.06, 2))
    staying = estimate_drift(USERS, ONE_ARM, ROUNDS, rewards_of(0.0, 3))
    assert moving is not None
    assert staying is not None
    assert 0 < moving.low < 0.06**2 < moving.high
    assert staying.low < 0 < staying.high


def test_visits_are_counted_by_user_and_round() -> None:
    """Participation has an error of 0.0015 with 2,000 users and 50 rounds; 6 of them."""
    rng = np.random.default_rng(4)
    comes = rng.random((2_000, 50)) < 0.3
    users, rounds = np.nonzero(comes)
    times = pl.Series(rounds).cast(pl.Float64) * 24 * 3_600
    dates = pl.Series([datetime.datetime(2026, 1, 1)] * len(users)) + pl.Series(
        (times * 1e6).cast(pl.Int64)
    ).cast(pl.Duration("us"))
    arms, rewards = np.zeros(len(users), dtype=np.int64), rng.random(len(users))
    visits = count_visits(dates, users, arms, rewards, "1d")
    assert visits.n_rounds == 50
    assert visits.participation == pytest.approx(0.3, abs=0.009)
    assert visits.returning > 0.99
    assert visits.gap == pytest.approx(2.0, abs=1.0)
    assert not visits.moves
    assert visits.learner_drift == 0.0
    assert "50 rounds of 1d; 100% of the users came back" in str(visits)
    assert "Tastes are not shown to move" in str(visits)
    weekly = count_visits(dates, users, arms, rewards, "1w")
    assert weekly.n_rounds == 8
    assert weekly.participation is not None
    assert weekly.participation > 0.8


def test_weeks_begin_on_monday() -> None:
    monday = datetime.date(2026, 3, 2)
    days = pl.Series([monday + datetime.timedelta(day) for day in range(56)])
    places = np.zeros(56, dtype=np.int64)
    visits = count_visits(days, places, places, np.ones(56), "1w")
    assert (visits.n_rounds, visits.participation) == (8, 1.0)
    assert count_visits(days[:7], places[:7], places[:7], np.ones(7), "1w").n_rounds == 1
    assert count_visits(days[6:8], places[:2], places[:2], np.ones(2), "1w").n_rounds == 2


def test_turnover_moves_tastes_as_much_as_the_drift() -> None:
    visits = count_visits(pl.Series(ROUNDS), USERS, ONE_ARM, rewards_of(0.06, 2), "1d")
    assert visits.moves
    assert visits.round_length == "one unit of time"
    covariance = np.diag([0.02, 0.04])
    assert visits.turnover(covariance) == pytest.approx(visits.learner_drift / (2 * 0.03))
    assert visits.turnover(np.zeros((2, 2))) == 0.0
    assert f"set a drift of {visits.learner_drift:.2g}" in visits.movement


def test_a_log_of_one_round_knows_nothing_of_time() -> None:
    times = pl.Series([datetime.date(2026, 1, 1)] * 4)
    places = np.array([0, 0, 1, 1])
    visits = count_visits(times, places, places, np.ones(4), "1d")
    assert (visits.n_rounds, visits.participation, visits.drift) == (1, None, None)
    assert str(visits).endswith("nobody could come back.")
    assert "not known" in visits.movement
    with pytest.raises(InvalidInputError, match="round_length must be a number of m, h, d or w"):
        count_visits(times, places, places, np.ones(4), "a day")


def test_a_log_with_time_has_visits_and_no_trend_left() -> None:
    rng = np.random.default_rng(5)
    users = np.repeat(np.arange(400), 20)
    times = rng.uniform(0.0, 0.5, 400)[users] + rng.uniform(0.0, 0.5, len(users))
    frame = pl.DataFrame(
        {
            "user": users,
            "arm": rng.integers(3, size=len(users)),
            "reward": rng.random(len(users)) < 0.3 * (0.5 + times),
            "time": (100 * times).astype(int),
        }
    )
    log = from_log(frame, time="time")
    assert log.visits is not None
    assert log.visits.n_rounds == 100
    assert log.trend > 0.1
    late = times.reshape(400, 20).mean(axis=1) > 0.5
    rates = log.pairs.sums.sum(axis=1) / log.pairs.counts.sum(axis=1)
    assert abs(rates[late].mean() - rates[~late].mean()) < 0.06  # 6 errors of 0.01
    assert from_log(frame).visits is None


def log_at(times: pl.Series) -> Log:
    """Return a log of 9,000 rows, 300 users and 3 arms at these times."""
    rng = np.random.default_rng(3)
    rows = {
        "user": rng.integers(300, size=9_000),
        "arm": rng.integers(3, size=9_000),
        "reward": (rng.random(9_000) < 0.2).astype(int),
        "time": times,
    }
    return from_log(pl.DataFrame(rows), time="time")


SECONDS = pl.Series(1_767_571_200 + np.random.default_rng(4).integers(0, 60 * 86_400, 9_000))


@pytest.mark.parametrize(("n_rows", "has"), [(1, "row has"), (90, "rows have"), (900, "rows have")])
def test_a_date_that_stands_for_no_time_is_named_and_changes_little(n_rows: int, has: str) -> None:
    fair = log_at(pl.from_epoch(SECONDS)).visits
    assert fair is not None
    assert fair.empty_times == ()
    missing = pl.Series(np.where(np.arange(9_000) < n_rows, 0, SECONDS.to_numpy()))
    log = log_at(pl.from_epoch(missing))
    assert log.visits is not None
    assert log.visits.n_rounds == fair.n_rounds + 1
    assert log.visits.participation == pytest.approx(fair.participation, rel=0.1)
    assert log.profile.warnings[0].startswith(
        f"{n_rows} {has} a time of 1970-01-01 00:00:00 or before, and nobody came between "
        "1970-01-01 00:00:00 and 2026-01-05"
    )
    with pytest.raises(InvalidInputError, match=r"from 0 to \d+: .* leave the cell empty where"):
        log_at(missing)


def test_dates_far_away_at_both_ends_are_not_counted() -> None:
    far = SECONDS.to_numpy().copy()
    far[:3] = [0, 4_102_444_800, 4_102_444_801]
    log = log_at(pl.from_epoch(pl.Series(far)))
    assert log.visits is not None
    assert log.visits.n_rounds == 62
    assert [(empty.rows, empty.early) for empty in log.visits.empty_times] == [
        (1, True),
        (2, False),
    ]
    assert "2 rows have a time of 2100-01-01 00:00:00 or after" in str(log.profile)


def test_the_time_between_a_few_waves_counts() -> None:
    """Nobody came for months between four surveys: too few to say that it is no chance."""
    log = log_at(pl.Series(np.arange(9_000) % 4 * 90))
    assert log.visits is not None
    assert (log.visits.n_rounds, log.visits.empty_times) == (271, ())


def test_visited_rounds_that_fall_at_random_are_all_counted() -> None:
    """1,000 logs of few users; a false alarm has a probability below 1e-6 in each."""
    rng = np.random.default_rng(5)
    for _ in range(1_000):
        n_rows = int(rng.integers(2, 40))
        times, users = pl.Series(rng.integers(2_000, size=n_rows)), np.arange(n_rows) % 3
        arms, rewards = np.zeros(n_rows, dtype=np.int64), np.ones(n_rows)
        assert count_visits(times, users, arms, rewards, "1d").empty_times == ()


def test_days_are_those_of_the_times_own_zone() -> None:
    start = datetime.datetime(2026, 3, 1)
    hours = pl.Series([start + datetime.timedelta(hours=n % (56 * 24)) for n in range(9_000)])
    local = log_at(hours.dt.replace_time_zone("Europe/Berlin", non_existent="null")).visits
    assert local is not None
    assert local.n_rounds == 56


def test_the_length_of_a_round_needs_a_time_and_is_refused_by_its_value() -> None:
    rows = {"user": [1, 1, 2, 2], "arm": [1, 2, 1, 2], "reward": [0, 1, 1, 0], "day": [1, 2, 1, 2]}
    frame = pl.DataFrame(rows)
    with pytest.raises(InvalidInputError, match=r"round_length needs .*; got '7d' alone"):
        from_log(frame, round_length="7d")
    with pytest.raises(InvalidInputError, match=r"round_length must be a number .*; got 7"):
        from_log(frame, time="day", round_length=7)  # type: ignore[arg-type]
