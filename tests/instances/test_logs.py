from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.support.logs import visits

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.instances import from_log
from shoal.instances.names import similar_names

LOG = pl.DataFrame(
    {
        "user": ["b", "a", "a", "b", "a"],
        "arm": ["x", "x", "x", "y", "x"],
        "reward": [1.0, 0.0, 1.0, 0.5, 1.0],
    }
)


def log_with(bad: Sequence[object], *, n_good: int = 100, column: str = "reward") -> pl.DataFrame:
    """Return a log of text with many good rows and some bad rewards."""
    rewards = [str(i % 2) for i in range(n_good)] + [None if b is None else str(b) for b in bad]
    users = [f"u{i % 10}" for i in range(len(rewards))]
    return pl.DataFrame({"user": users, "arm": ["x", "y"] * (len(rewards) // 2), column: rewards})


def test_rows_are_added_up_by_pair() -> None:
    log = from_log(LOG)
    assert (log.users, log.arms) == (["a", "b"], ["x", "y"])
    np.testing.assert_array_equal(log.pairs.counts, [[3, 0], [1, 1]])
    np.testing.assert_array_equal(log.pairs.sums, [[2, 0], [1, 0.5]])
    np.testing.assert_array_equal(log.pairs.squares, [[2, 0], [1, 0.25]])
    np.testing.assert_array_equal(log.halves[0].counts + log.halves[1].counts, log.pairs.counts)
    assert (log.report.pairs_seen, log.report.pairs_filled) == (3, 1)


def test_the_report_counts_every_dropped_row_once() -> None:
    bad = [None, "lots", "nan", "inf", 1.5, -0.1]
    log = from_log(log_with(bad))
    report = log.report
    assert (report.rows_read, report.rows_used) == (106, 100)
    assert (report.missing, report.not_numbers) == (1, 1)
    assert (report.not_finite, report.out_of_range) == (2, 2)
    assert str(report).startswith(
        "100 of 106 rows used; dropped: 1 with missing values, 1 not numbers, 2 not finite, "
        "2 outside [0, 1]; "
    )


def test_another_scale_is_refused_with_an_offer() -> None:
    frame = log_with([12, 45, 3.5, 45, 7, 8], column="minutes")
    with pytest.raises(InvalidInputError) as refused:
        from_log(frame, reward="minutes")
    message = str(refused.value)
    assert "rewards in column 'minutes' must lie in [0, 1]; 6 of 106 do not" in message
    assert "such as 12.0, 45.0, 3.5, 7.0. Choose a scale: percent (divide by 100)" in message
    assert from_log(log_with([12, 45]), reward="reward").report.out_of_range == 2


def test_text_instead_of_numbers_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="6 of 106 are not, such as '1,5'"):
        from_log(log_with(["1,5"] * 5 + ["yes"]))


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("percent", [0.0, 0.1, 0.5, 1.0]),
        ("range", [0.0, 0.1, 0.5, 1.0]),
        ("p99", [0.0, 0.1, 0.5, 1.0]),
        ("positive", [0.0, 1.0, 1.0, 1.0]),
    ],
)
def test_a_named_scale_brings_rewards_into_range(scale: str, expected: list[float]) -> None:
    frame = pl.DataFrame({"user": [1, 2, 3, 4], "arm": [1] * 4, "reward": [0, 10, 50, 100]})
    np.testing.assert_allclose(from_log(frame, scale=scale).pairs.sums[:, 0], expected)


def test_an_unknown_scale_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'percent'"):
        from_log(LOG, scale="percents")


def test_names_in_a_file_are_text(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,arm,reward\n003,1,1\n3,1.0,0\n")
    log = from_log(path)
    assert (log.users, log.arms) == (["003", "3"], ["1", "1.0"])
    assert log.profile.similar_arms == (("1", "1.0"),)


def test_arms_that_differ_in_case_spaces_or_accents_are_flagged() -> None:
    assert similar_names(["Été", "ete", " ETE", "winter"]) == (("Été", "ete", " ETE"),)
    log = from_log(LOG.with_columns(arm=pl.Series(["x", "X ", "x", "y", "x"])))
    assert log.profile.warnings[0] == (
        "These arms differ only in case, spaces or accents and are taken as different: 'X ', 'x'."
    )


def test_exact_duplicates_are_reported_and_can_be_dropped() -> None:
    timed = pl.concat([LOG.with_columns(when=pl.Series([1, 2, 3, 4, 5]))] * 2)
    log = from_log(timed)
    assert (log.report.rows_used, log.profile.duplicates) == (10, 5)
    assert any("5 rows repeat another one in every column" in w for w in log.profile.warnings)
    log = from_log(timed, drop_duplicates=True)
    assert (log.report.rows_used, log.report.duplicates_dropped) == (5, 5)
    assert not any("repeat" in warning for warning in log.profile.warnings)
    assert from_log(LOG).profile.duplicates is None
    with pytest.raises(InvalidInputError, match="duplicates must be told by a further column"):
        from_log(LOG, drop_duplicates=True)


def test_a_column_has_one_role() -> None:
    with pytest.raises(InvalidInputError) as refused:
        from_log(LOG, user="arm")
    assert str(refused.value) == (
        "columns must be different ones for user, arm, reward; got arm, arm, reward."
    )


def test_spaces_around_names_and_numbers_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user , arm, reward\n" + "a, x, 1 \nb, y, 0\n" * 5)
    assert from_log(path).report.rows_used == 10


def test_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,arm,reward\na,x,1\nb,y,0\n", encoding="utf-16")
    with pytest.raises(InvalidInputError, match=r"must be text in UTF-8; got another encoding"):
        from_log(path)


def test_numbers_that_are_days_are_dates() -> None:
    days = pl.Series([20260130, 20260131, 20260201, 20260203, 20260202])
    log = from_log(LOG.with_columns(t=days), time="t")
    assert log.visits is not None
    assert (log.visits.n_rounds, log.visits.round_length) == (5, "1d")


def test_dates_that_could_be_read_either_way_are_flagged() -> None:
    days = ["03/01/2026", "04/01/2026", "05/01/2026", "03/02/2026", "01/01/2026"]
    profile = from_log(LOG.with_columns(day=pl.Series(days)), time="day").profile
    assert profile.ambiguous_date == ("day", "03/01/2026")
    assert any(
        "Dates in column 'day' such as '03/01/2026' are read as day, month, year" in warning
        for warning in profile.warnings
    )
    for clear in ("13/01/2026", "2026-01-03"):
        dates = pl.Series([*days[:4], clear] if "/" in clear else [clear] * 5)
        assert from_log(LOG.with_columns(day=dates), time="day").profile.ambiguous_date is None


def test_an_id_for_an_arm_is_refused_before_anything_is_computed() -> None:
    rows = visits(6_000).with_columns(arm=pl.int_range(6_000))
    with pytest.raises(
        InvalidInputError, match=r"arm column 'arm' must name at most \d+ arms; got 6,000 in 6,000"
    ):
        from_log(rows)


@pytest.mark.parametrize("reward", [0, 1])
def test_equal_rewards_are_refused(reward: int) -> None:
    with pytest.raises(InvalidInputError, match=f"nothing can be learnt .* all 5 are {reward}"):
        from_log(LOG.with_columns(reward=pl.lit(reward)))


def test_rare_sales_in_euros_are_refused_and_not_left_out() -> None:
    """They are few of all rows, and all that the log tells."""
    euros = pl.when(pl.int_range(1_000) % 50 == 0).then(20 + pl.int_range(1_000) % 7)
    rows = visits(1_000).with_columns(reward=euros.otherwise(0))
    with pytest.raises(InvalidInputError) as refused:
        from_log(rows)
    assert "must lie in [0, 1]; 20 of the 20 that are not 0 do not, such as 20.0" in str(
        refused.value
    )
    written = rows.with_columns(reward=pl.format("{},390", "reward").replace({"0,390": "0"}))
    with pytest.raises(InvalidInputError) as refused:
        from_log(written)
    assert "must be numbers; 20 of the 20 that are not 0 are not" in str(refused.value)
    assert "Write 1390 for 1,390 if its comma separates thousands" in str(refused.value)
    missing = visits(1_000, rate=0.02).with_columns(reward=pl.col("reward").cast(pl.String))
    unknown = pl.when(pl.int_range(1_000) % 40 == 0).then(pl.lit("unknown"))
    assert (
        from_log(missing.with_columns(reward=unknown.otherwise("reward"))).report.not_numbers == 25
    )


@pytest.mark.slow
def test_amounts_that_are_left_out_are_among_the_doubts() -> None:
    rows = visits(1_000, rate=0.3)
    some = pl.when(pl.int_range(1_000) % 40 == 0).then(3).otherwise("reward")
    log = from_log(rows.with_columns(reward=some))
    assert log.report.out_of_range == 25
    assert any("25 rows with a reward outside [0, 1]" in doubt for doubt in log.population.doubts)
    assert not any("outside" in doubt for doubt in from_log(rows).population.doubts)


def test_the_99th_percentile_must_be_above_0() -> None:
    euros = pl.when(pl.int_range(1_000) % 200 == 0).then(39.0).otherwise(0.0)
    with pytest.raises(InvalidInputError, match="scale p99 needs a 99th percentile above 0; got 0"):
        from_log(visits(1_000).with_columns(reward=euros), scale="p99")


def test_the_report_says_what_one_stands_for() -> None:
    minutes = visits(1_000).with_columns(reward=pl.int_range(1_000) - 5)
    expected = {
        "range": "Scale range: 0 stands for -5, 1 for 994.",
        "p99": "Scale p99: 1 stands for 985; 14 rows cut to 0 or 1.",
        "positive": "Scale positive: 1 stands for any reward above 0.",
    }
    for scale, words in expected.items():
        assert str(from_log(minutes, scale=scale).report).endswith(words)
    percent = visits(1_000).with_columns(reward=pl.int_range(1_000) % 101)
    assert str(from_log(percent, scale="percent").report).endswith("1 stands for 100.")


def test_percent_is_offered_only_where_rewards_look_like_it() -> None:
    few_above = pl.when(pl.int_range(1_000) % 40 == 0).then(374).otherwise(39)  # 2.5 % are euros
    for largest, offered in ((5, False), (100, True), (400, False), (374, False)):
        rewards = few_above if largest == 374 else pl.int_range(1_000) % (largest + 1)
        rows = visits(1_000).with_columns(reward=rewards)
        with pytest.raises(InvalidInputError) as refused:
            from_log(rows)
        assert ("percent (divide by 100)" in str(refused.value)) is offered


def test_the_profile_says_what_a_log_looks_like() -> None:
    times = ["2026-03-02", "2026-03-01", "2026-03-01", "2026-03-05", "2026-03-01"]
    log = from_log(LOG.with_columns(day=pl.Series(times)), time="day")
    profile = log.profile
    assert (profile.users, profile.arms, profile.rows) == (2, 2, 5)
    assert profile.rows_per_pair == pytest.approx(5 / 3)
    assert profile.reward_range == (0.0, 1.0)
    assert not profile.binary
    assert profile.period is not None
    assert profile.period[0].startswith("2026-03-01")
    assert profile.period[1].startswith("2026-03-05")
    assert profile.repeated_times == 2  # user a, three times on the first day
    assert "2 users, 2 arms, 5 rows (2.5 a user, 1.67 a pair" in str(profile)
    single = from_log(LOG.head(4).tail(2)).profile
    assert single.single_row_users == 2
    assert single.warnings == [
        "No user has more than one row: such a log says nothing about how users differ."
    ]
    some = from_log(LOG.with_columns(user=pl.Series(["b", "a", "a", "a", "a"]))).profile
    assert some.warnings == [
        "1 of 2 users has one row, which says nothing about how users differ; min_user_rows=2 "
        "leaves them out."
    ]


def test_an_arm_with_hardly_any_rows_is_named() -> None:
    arms = [*["x", "y", "y", "x"] * 100, "Y2", "x"]
    rows = {"user": ["a", "b"] * 201, "arm": arms, "reward": [0, 1] * 201}
    assert from_log(pl.DataFrame(rows)).profile.warnings[0] == (
        "Arm 'Y2' has 1 row, too few to say what it earns, and the price may depend on it. If the "
        "name is misspelt, correct it; else leave the arm out."
    )


def test_a_printed_profile_ends_with_its_warnings() -> None:
    profile = from_log(LOG.with_columns(arm=pl.Series(["x", "X ", "x", "y", "x"]))).profile
    assert profile.warnings
    assert str(profile).splitlines() == [profile.summary, profile.arm_list, *profile.warnings]


def test_one_of_a_kind_is_singular() -> None:
    profile = from_log(LOG.filter(pl.col("user") == "a")).profile
    assert profile.summary.startswith("1 user, 1 arm, 3 rows (")
    alone = from_log(visits(60).with_columns(user=pl.int_range(60), day=pl.lit(3)), time="day")
    assert alone.population.tells.startswith("1 row a user on 3 arms can't distinguish")
    assert str(alone.visits).startswith("1 round of one unit of time: ")


def test_truth_values_in_a_file_are_rewards(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,arm,reward\na,x,True\na,x,false\nb,y,true\n")
    np.testing.assert_array_equal(from_log(path).pairs.sums, [[1, 0], [0, 1]])


def test_columns_of_lists_and_other_separators_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"reward column 'r' must hold single values; got"):
        from_log(LOG.with_columns(r=pl.Series([[1.0]] * 5)), reward="r")
    path = tmp_path / "log.csv"
    path.write_text("user;arm;reward\na;x;1\n")
    with pytest.raises(InvalidInputError, match=r"separated by commas; these seem to be by ';'\.$"):
        from_log(path)


def test_a_row_with_too_many_cells_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,arm,reward\na,x,1\nb,y,0,extra\n")
    with pytest.raises(InvalidInputError, match=r"line 3 of .* at most 3 cells.*; got 4"):
        from_log(path)


def test_rare_users_and_arms_are_dropped_and_counted() -> None:
    log = from_log(LOG, min_user_rows=3)
    assert log.users == ["a"]
    assert log.report.too_rare == 2
    log = from_log(LOG, min_arm_rows=2)
    assert log.arms == ["x"]
    assert log.report.too_rare == 1


def test_files_and_frames_give_the_same_totals(tmp_path: Path) -> None:
    LOG.write_csv(tmp_path / "log.csv")
    LOG.write_parquet(tmp_path / "log.parquet")
    expected = from_log(LOG)
    sources: list[Any] = [tmp_path / "log.csv", str(tmp_path / "log.parquet"), LOG.lazy()]
    for source in sources:
        log = from_log(source)
        np.testing.assert_array_equal(log.pairs.sums, expected.pairs.sums)
        assert log.report == expected.report
    with pytest.raises(InvalidInputError, match=r"or a dataframe; got list\."):
        from_log([1, 2])


@pytest.mark.parametrize("library", ["pandas", "pyarrow", "duckdb"])
def test_frames_of_other_libraries_give_the_same_totals(library: str) -> None:
    module = import_module(library)
    columns = LOG.to_dict(as_series=False)
    if library == "pandas":
        frame = module.DataFrame(columns)
    elif library == "pyarrow":
        frame = module.table(columns)
    else:
        values = ", ".join(map(str, LOG.rows()))
        frame = module.sql(f"SELECT * FROM (VALUES {values}) AS log (user, arm, reward)")
    log = from_log(frame)
    np.testing.assert_array_equal(log.pairs.sums, from_log(LOG).pairs.sums)


def test_expected_means_of_a_long_log_are_near_the_truth() -> None:
    # 1,000 rows a pair: 6 deviations of at most 0.0158; false alarm below 1e-7.
    rng = np.random.default_rng(0)
    truth = rng.random((10, 4))
    users, arms = rng.integers(10, size=40_000), rng.integers(4, size=40_000)
    rewards = rng.random(40_000) < truth[users, arms]
    log = from_log(pl.DataFrame({"user": users, "arm": arms, "reward": rewards}))
    assert np.abs(log.means - truth).max() < 6 * 0.0158
    assert log.users == list(range(10))


def test_bad_logs_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInputError, match=r"reward must name one of .*reward=.*; got 'clicks'\.$"
    ):
        from_log(LOG, reward="clicks")
    (tmp_path / "header.csv").write_text("user,arm,reward\n")
    with pytest.raises(InvalidInputError, match=r"header\.csv has a header and no rows\.$"):
        from_log(tmp_path / "header.csv")
    with pytest.raises(
        InvalidInputError, match=r"must end in \.csv or \.parquet; got '.*log\.txt'"
    ):
        from_log(tmp_path / "log.txt")
    with pytest.raises(
        InvalidInputError, match=r"none\.csv must be a file to read; it does not exist"
    ):
        from_log(tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(InvalidInputError, match=r"must be a readable \.\w+ file; got: .+\.$"):
        from_log(tmp_path / "empty.csv")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(InvalidInputError, match=r"must be a readable \.\w+ file; got: .+\.$"):
        from_log(tmp_path / "torn.parquet")
    with pytest.raises(InvalidInputError, match="at least one row; got 5 rows, 5 of them usable"):
        from_log(LOG, min_user_rows=4)
    with pytest.raises(InvalidInputError, match=r"dropped: 5 missing\.$"):
        from_log(LOG.with_columns(reward=pl.lit(None)))
    with pytest.raises(
        InvalidInputError, match="seed must be a whole number of at least 0; got -1"
    ):
        from_log(LOG, seed=-1)
