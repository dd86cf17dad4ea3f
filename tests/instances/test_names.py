"""Names of users and arms that look wrong."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.instances import from_log
from shoal.instances.names import similar_names


def test_users_that_differ_in_case_spaces_or_accents_are_counted_with_examples() -> None:
    users = ["ann", "Ann ", "José", "jose", "eve", "Eve", "bob", "BOB", "kim"]
    rows = {"user": users, "arm": ["x", "y", "x"] * 3, "reward": [0, 1, 1] * 3}
    assert (
        "8 users differ from another only in case, spaces or accents and are taken as different, "
        "such as 'Ann ', 'ann'; 'BOB', 'bob'; 'Eve', 'eve'."
    ) in from_log(pl.DataFrame(rows)).profile.warnings


def test_long_ids_are_not_alike_as_numbers_are() -> None:
    assert similar_names(["12345678901234567891", "12345678901234567892"]) == ()
    assert similar_names(["1e4001", "2e4001"]) == ()
    assert similar_names(["003", "3", "3.0", "4"]) == (("003", "3", "3.0"),)


def test_texts_that_mean_missing_are_flagged_where_they_name_something() -> None:
    rows = {"user": ["a", "b", "nan", "c"], "arm": ["x", "N/A", "x", "NA"], "reward": [0, 1, 1, 0]}
    warnings = from_log(pl.DataFrame(rows)).profile.warnings
    for role, name in (("arm", "N/A"), ("arm", "NA"), ("user", "nan")):
        assert any(f"1 row has the {role} {name!r}" in warning for warning in warnings)


def test_the_profile_lists_arms_with_their_rows() -> None:
    few = {"user": list("aabb"), "arm": list("xyxx"), "reward": [1, 0, 0, 1]}
    assert "\nRows of each arm: 'x' 3, 'y' 1." in str(from_log(pl.DataFrame(few)).profile)
    rows = {"user": np.arange(3_000) // 50, "arm": np.arange(3_000) % 40 % 25}
    rewards = np.random.default_rng(0).integers(2, size=3_000)
    line = from_log(pl.DataFrame(rows | {"reward": rewards})).profile.arm_list
    assert "'0' 150, " in line
    assert line.endswith(" and 13 rarer arms.")


def test_names_that_are_one_number_are_said_to_be() -> None:
    rows = {"user": ["1", "1.0", "2", "3"], "arm": ["0", "0.0", "0", "0.0"], "reward": [0, 1, 1, 0]}
    warnings = from_log(pl.DataFrame(rows)).profile.warnings
    assert warnings[0].startswith("These arms differ only in how a number is written and are taken")
    assert warnings[1].startswith("2 users differ from another only in how a number is written")
