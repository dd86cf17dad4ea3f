"""Dataframes of other libraries, with pyarrow and without."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest

from shoal.errors import InvalidInputError
from shoal.frames import read_frame
from shoal.instances import from_log

WITHOUT_PYARROW = """
import sys
from importlib.machinery import PathFinder

find_spec = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name == "pyarrow" else find_spec(name, *rest)

import pandas as pd
from shoal import Plan, Roster
from shoal.instances import from_log

users = [f"u{number}" for number in range(6)]
roster = Roster(users, arms=["noon", "night"])
plan = Plan([0] * 3 + [1] * 3, [0] * 3 + [1] * 3, problem=roster.problem(min_group_size=3))
rewards = pd.DataFrame({"user": users, "reward": [1.0, 0.0, 1.0, 0.5, 0.5, 0.5]})
print(roster.add_up(plan, rewards).totals.tolist())
log = pd.DataFrame(
    {"user": users * 2, "arm": ["noon", "night", None] * 4, "reward": [1.0, 0.0, 0.5] * 4}
)
print(from_log(log).report)
assert "pyarrow" not in sys.modules
"""


@pytest.mark.slow
def test_text_of_pandas_is_read_without_pyarrow() -> None:
    child = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    totals, report = child.stdout.splitlines()
    assert totals == "[2.0, 1.5]"
    assert report.startswith("8 of 12 rows used; dropped: 4 with missing values")


def test_columns_of_pandas_are_those_that_polars_reads() -> None:
    times = pd.to_datetime(["2026-01-01", None, "2026-01-03"], utc=True)
    frame = pd.DataFrame(
        {
            "text": ["a", None, "c"],
            "number": [1.5, np.nan, 2.0],
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "time": times,
        }
    )
    columns = read_frame(frame)
    assert columns is not None
    assert columns.equals(pl.from_pandas(frame))


def test_a_column_of_several_types_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match=r"column 'arm' must hold values of one type"):
        read_frame(pd.DataFrame({"arm": [1, "a"]}))


def test_a_name_of_two_columns_is_refused() -> None:
    frame = pd.DataFrame([[1, 2, 0, 3]], columns=["user", "arm", "reward", "arm"])
    with pytest.raises(InvalidInputError, match=r"must have different names; got 'arm' 2 times\.$"):
        from_log(frame)
