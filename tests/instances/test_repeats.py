from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.support.logs import visits

from shoal.errors import InvalidInputError
from shoal.instances import from_log


def test_rows_that_coincide_by_chance_are_to_be_kept() -> None:
    profile = from_log(visits(4_000), time="day").profile
    assert profile.duplicates is not None
    assert profile.duplicates > 500
    sentence = next(warning for warning in profile.warnings if "every column" in warning)
    assert sentence == (
        f"{profile.duplicates:,} rows are equal to another in every column, about as many as "
        "chance makes: keep them unless an event was recorded twice."
    )


@pytest.mark.parametrize("rate", [0.3, 0.001])
@pytest.mark.parametrize("most_rows", [10**6, 2_000])
def test_copies_are_told_from_chance(
    rate: float, most_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by some of the users, as in a long log."""
    monkeypatch.setattr("shoal.instances.repeats.ROWS_COMPARED", most_rows)
    rng = np.random.default_rng(1)
    rows = visits(4_000, rate=rate).with_columns(receipt=rng.integers(10**6, size=4_000))
    copied = from_log(pl.concat([rows, rows.head(100)]), time="day").profile
    assert (copied.duplicates, copied.duplicates_by_chance) == (100, False)
    seconds = rows.drop("receipt").with_columns(day=rng.integers(10**6, size=4_000))
    copied = from_log(pl.concat([seconds, seconds.head(100)]), time="day").profile
    assert not copied.duplicates_by_chance
    assert "drop_duplicates=True leaves them out" in str(copied)


@pytest.mark.parametrize("most_rows", [10**6, 2_000])
def test_tastes_and_sessions_are_no_copies(most_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.instances.repeats.ROWS_COMPARED", most_rows)
    rows = visits(4_000)
    liked = rows.with_columns(reward=(pl.col("user") % 3 == pl.col("arm")).cast(pl.Int64))
    noisy = pl.Series(np.random.default_rng(2).random(4_000) < 0.2)
    liked = liked.with_columns(reward=pl.when(noisy).then(1 - pl.col("reward")).otherwise("reward"))
    assert from_log(liked, time="day").profile.duplicates_by_chance
    sessions = rows.with_columns(session=pl.format("{}-{}", "user", "day"))
    assert from_log(sessions, time="day").profile.duplicates_by_chance


@pytest.mark.parametrize("column", ["constant", "age", "list_price", "again"])
def test_a_column_that_follows_from_another_tells_nothing_of_copies(column: str) -> None:
    """Where users differ, their equal rows are no copies."""
    rng = np.random.default_rng(3)
    users, arms = rng.integers(40, size=4_000), rng.integers(3, size=4_000)
    rewards = (rng.random(4_000) < np.where(users % 3 == arms, 0.95, 0.02)).astype(int)
    further = {"constant": pl.lit("DE"), "age": pl.col("user") % 7, "list_price": pl.col("arm") * 5,
               "again": pl.col("reward") + 1}  # fmt: skip
    rows = pl.DataFrame({"user": users, "arm": arms, "reward": rewards})
    rows = rows.with_columns(further[column].alias("further"))
    assert from_log(rows).profile.duplicates is None
    with pytest.raises(InvalidInputError, match="duplicates must be told by a further column"):
        from_log(rows, drop_duplicates=True)


def test_a_day_for_each_pair_of_user_and_arm_tells_nothing_of_copies() -> None:
    """Events of one pair with different rewards have the same day too."""
    rng = np.random.default_rng(4)
    users, arms = rng.integers(40, size=4_000), rng.integers(3, size=4_000)
    rewards = rng.random(4_000) < np.where(users % 3 == arms, 0.9, 0.05)
    rows = pl.DataFrame({"user": users, "arm": arms, "reward": rewards.astype(int)})
    rows = rows.with_columns(day=(pl.col("user") * 3 + pl.col("arm")) * 7 % 20)
    assert from_log(rows, time="day").profile.duplicates_by_chance


def test_one_event_of_each_user_that_is_recorded_twice_is_a_copy() -> None:
    events = visits(200).with_columns(user=pl.int_range(200), receipt=pl.int_range(200) + 10**6)
    profile = from_log(pl.concat([events, events.head(30)])).profile
    assert (profile.duplicates, profile.duplicates_by_chance) == (30, False)


def test_events_of_one_visit_that_are_alike_are_not_called_copies() -> None:
    """Rewards of a visit agree because of its mood: a day does not tell such events from copies."""
    rng = np.random.default_rng(0)
    mood = np.clip(0.2 * np.exp(0.9 * rng.standard_normal(2_000) - 0.4), 0, 0.95)
    visit = np.repeat(np.arange(2_000), rng.poisson(3, 2_000) + 1)
    users, days = rng.integers(150, size=2_000), rng.integers(60, size=2_000)
    arms, rewards = rng.integers(3, size=len(visit)), rng.random(len(visit)) < mood[visit]
    rows = pl.DataFrame(
        {"user": users[visit], "arm": arms, "reward": rewards.astype(int), "day": days[visit]}
    )
    profile = from_log(rows, time="day").profile
    assert not profile.duplicates_by_chance
    kept = from_log(rows, time="day", drop_duplicates=True).profile
    sentence = next(warning for warning in profile.warnings if "every column" in warning)
    assert "more than chance makes: copies, or events of one visit that are alike" in sentence
    assert sentence.endswith(
        "drop_duplicates=True leaves them out and changes the mean reward from "
        f"{profile.mean_reward:.4g} to {kept.mean_reward:.4g}: only for copies. The price takes "
        "either for tastes: of a visit, keep one row for each arm, with the mean reward."
    )
    assert profile.doubts == [sentence]
    assert kept.mean_reward > 1.1 * profile.mean_reward


def test_many_equal_rows_of_a_visit_with_a_number_are_no_certain_copies() -> None:
    """Where rewards are rare, the rows of a visit that shows one arm are nearly always equal."""
    rng = np.random.default_rng(0)
    visit = np.repeat(np.arange(1_000), 4)
    rows = pl.DataFrame(
        {
            "user": rng.integers(100, size=1_000)[visit],
            "arm": rng.integers(3, size=1_000)[visit],
            "reward": (rng.random(4_000) < 0.0005).astype(int),
            "visit": visit,
        }
    )
    assert "or events of one visit" in str(from_log(rows).profile)


@pytest.mark.parametrize("share", [0.2, 3.0])
def test_rows_with_one_number_of_a_receipt_are_copies_however_many(share: float) -> None:
    """And a doubt, as long as they are in the rows that are used."""
    rows = visits(4_000, rate=0.2).drop("day").with_columns(receipt=pl.int_range(4_000) + 10**6)
    n_copies = round(share * rows.height)
    copied = pl.concat([rows, pl.concat([rows] * 3).head(n_copies)])
    profile = from_log(copied).profile
    sentence = (
        f"{n_copies:,} rows repeat another one in every column: drop_duplicates=True leaves them "
        "out. The price takes copies for tastes."
    )
    assert sentence in profile.doubts
    assert profile.warnings.count(sentence) == 1
    assert from_log(copied, drop_duplicates=True).profile.doubts == []
    assert from_log(rows).profile.doubts == []


def test_visits_with_a_number_and_several_rows_are_no_doubt() -> None:
    visit = np.repeat(np.arange(1_500), 3)
    rng = np.random.default_rng(1)
    rows = {"user": rng.integers(100, size=1_500)[visit], "arm": rng.integers(3, size=4_500),
            "reward": (rng.random(4_500) < 0.2).astype(int), "visit": visit}  # fmt: skip
    profile = from_log(pl.DataFrame(rows)).profile
    assert profile.duplicates_by_chance
    assert profile.doubts == []


def test_tastes_that_move_make_no_copies() -> None:
    """Rewards of one day agree more than those of all days, and no more than those of near days."""
    rng = np.random.default_rng(2)
    users, arms, days = (rng.integers(n, size=30_000) for n in (200, 3, 60))
    likes = np.where((users + days // 20) % 3 == arms, 0.3, 0.1)
    rewards = (rng.random(30_000) < likes).astype(int)
    rows = pl.DataFrame({"user": users, "arm": arms, "reward": rewards, "day": days})
    for kind in (pl.Int64, pl.String):
        profile = from_log(rows.with_columns(pl.col("day").cast(kind)), time="day").profile
        assert profile.duplicates_by_chance
        assert profile.doubts == []


def test_visits_with_a_number_and_amounts_are_no_certain_copies() -> None:
    """An amount differs where the reward does: without it, rows of a visit have other rewards."""
    rng = np.random.default_rng(3)
    visit = np.repeat(np.arange(800), 6)
    rewards = (rng.random(4_800) < 0.03).astype(int)
    rows = {"user": rng.integers(100, size=800)[visit], "arm": rng.integers(3, size=800)[visit],
            "reward": rewards, "amount": rewards * 5, "visit": visit}  # fmt: skip
    assert not from_log(pl.DataFrame(rows)).profile.events_identified


def test_few_copies_are_reported_and_no_doubt() -> None:
    rows = visits(4_000).with_columns(receipt=pl.int_range(4_000) + 10**6)
    profile = from_log(pl.concat([rows, rows.head(9)])).profile
    assert any("9 rows repeat another one" in warning for warning in profile.warnings)
    assert profile.doubts == []


def test_blank_lines_of_a_file_are_no_copies(tmp_path: Path) -> None:
    """They are counted as missing, also where copies are left out."""
    rows = visits(300).with_columns(receipt=pl.int_range(300) + 10**6)
    lines = rows.write_csv().splitlines()
    path = tmp_path / "log.csv"
    path.write_text("\n".join([*lines[:100], *[""] * 50, *lines[100:], lines[9]]) + "\n")
    log = from_log(path)
    assert (log.profile.duplicates, log.report.missing) == (1, 50)
    report = from_log(path, drop_duplicates=True).report
    assert (report.duplicates_dropped, report.missing, report.rows_used) == (1, 50, 300)


def stays(n_copies: int, *, day: bool) -> pl.DataFrame:
    """Return a log with a time that is 0 unless somebody clicked; some rows are copies."""
    rng = np.random.default_rng(5)
    rows = visits(4_000, rate=0.2)
    stay = pl.Series(rng.integers(100, 100_000, size=4_000))
    rows = rows.with_columns(stay=pl.when(pl.col("reward") > 0).then(stay).otherwise(0))
    rows = pl.concat([rows, rows.head(n_copies)])
    return rows if day else rows.drop("day")


@pytest.mark.parametrize("day", [False, True])
def test_failures_that_can_only_be_equal_are_no_copies(day: bool) -> None:
    time = "day" if day else None
    profile = from_log(stays(0, day=day), time=time).profile
    assert profile.duplicates is not None
    assert profile.duplicates > 100
    assert profile.duplicates_by_chance
    copied = from_log(stays(400, day=day), time=time).profile
    assert not copied.duplicates_by_chance
    assert not copied.events_identified


def test_a_customer_with_a_day_does_not_identify_an_event_of_a_product() -> None:
    """Two equal purchases of one customer on one day may be two."""
    rng = np.random.default_rng(6)
    rows = visits(4_000).with_columns(customer=pl.Series(rng.integers(4_000, size=4_000)))
    again = rows.head(200)
    profile = from_log(pl.concat([rows, again])).profile
    assert (profile.duplicates_by_chance, profile.events_identified) == (False, False)
    assert "or events of one visit that are alike" in str(profile)


def test_one_copy_is_singular() -> None:
    events = visits(200).with_columns(user=pl.int_range(200), receipt=pl.int_range(200) + 10**6)
    profile = from_log(pl.concat([events, events.head(1)])).profile
    assert "1 row repeats another one in every column: drop_duplicates=True leaves it out." in (
        profile.warnings
    )
