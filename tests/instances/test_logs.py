from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shoal.errors import InvalidInputError
from shoal.instances import from_log

LOG = pl.DataFrame(
    {
        "user": ["b", "a", "a", "b", "a"],
        "arm": ["x", "x", "x", "y", "x"],
        "reward": [1.0, 0.0, 1.0, 0.5, 1.0],
    }
)


def test_a_pair_is_drawn_towards_its_arm_by_the_smoothing() -> None:
    logged = from_log(LOG, smoothing=2.0)
    x, y = 3 / 4, 0.5  # the arms' averages
    np.testing.assert_allclose(
        logged.means, [[(2 + 2 * x) / (3 + 2), y], [(1 + 2 * x) / (1 + 2), (0.5 + 2 * y) / 3]]
    )
    assert logged.users == ["a", "b"]
    assert logged.arms == ["x", "y"]


def test_without_smoothing_seen_pairs_keep_their_average_and_unseen_ones_get_the_arms() -> None:
    logged = from_log(LOG, smoothing=0.0)
    np.testing.assert_allclose(logged.means, [[2 / 3, 0.5], [1.0, 0.5]])
    assert (logged.report.pairs_seen, logged.report.pairs_filled) == (3, 1)


DIRTY = """who,what,paid
1,x,1
,x,1
1,,0
2,y,
2,y,lots
2,y,nan
1,y,inf
2,x,1.5
2,x,-0.1
2,y,0.25
"""


def test_the_report_counts_every_dropped_row_once(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(DIRTY)
    logged = from_log(path, user="who", arm="what", reward="paid")
    report = logged.report
    assert report.rows_read == 10
    assert report.missing == 3
    assert report.not_numbers == 1
    assert report.not_finite == 2
    assert report.out_of_range == 2
    assert report.too_rare == 0
    assert report.rows_used == 2
    assert report.pairs_filled == 2
    assert "2 of 10 rows used" in str(report)
    np.testing.assert_allclose(logged.means, [[1.0, 0.25], [1.0, 0.25]])
    assert logged.users == ["1", "2"]


def test_names_in_a_file_are_text(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,arm,reward\n003,1,1\n3,1.0,0\n")
    logged = from_log(path)
    assert (logged.users, logged.arms) == (["003", "3"], ["1", "1.0"])


def test_a_row_with_too_many_cells_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,arm,reward\na,x,1\nb,y,0,extra\n")
    with pytest.raises(InvalidInputError, match=r"line 3 of .* at most 3 cells.*; got 4"):
        from_log(path)


def test_rare_users_and_arms_are_dropped_and_counted() -> None:
    logged = from_log(LOG, min_user_rows=3)
    assert logged.users == ["a"]
    assert logged.report.too_rare == 2
    logged = from_log(LOG, min_arm_rows=2)
    assert logged.arms == ["x"]
    assert logged.report.too_rare == 1


def test_csv_parquet_and_frame_give_the_same_means(tmp_path: Path) -> None:
    LOG.write_csv(tmp_path / "log.csv")
    LOG.write_parquet(tmp_path / "log.parquet")
    expected = from_log(LOG)
    for name in ("log.csv", "log.parquet"):
        logged = from_log(tmp_path / name)
        np.testing.assert_array_equal(logged.means, expected.means)
        assert logged.report == expected.report


def test_the_means_of_a_long_log_are_near_the_truth() -> None:
    # 1,000 rows a pair: 6 deviations of at most 0.0158; false alarm below 1e-7.
    rng = np.random.default_rng(0)
    truth = rng.random((10, 4))
    users, arms = rng.integers(10, size=40_000), rng.integers(4, size=40_000)
    rewards = rng.random(40_000) < truth[users, arms]
    logged = from_log(pl.DataFrame({"user": users, "arm": arms, "reward": rewards}))
    assert np.abs(logged.means - truth).max() < 6 * 0.0158
    assert logged.users == list(range(10))


def test_bad_logs_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"reward must name one of .*; got 'clicks'\.$"):
        from_log(LOG, reward="clicks")
    with pytest.raises(
        InvalidInputError, match=r"must end in \.csv or \.parquet; got '.*log\.txt'"
    ):
        from_log(tmp_path / "log.txt")
    with pytest.raises(
        InvalidInputError, match=r"none\.csv must be a file to read; got nothing there"
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
    with pytest.raises(InvalidInputError, match=r"smoothing must be finite.*; got -1\.0\."):
        from_log(LOG, smoothing=-1.0)
