"""A roster knows users by any id, and gives a seat to one person only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest

from shoal.errors import InvalidInputError
from shoal.mab import MAB
from shoal.model import Plan, Roster


def test_ids_of_any_kind_go_in_and_out() -> None:
    ids = [UUID(int=1), ("team", 4), "ana", 7, np.int64(8)]
    roster = Roster(ids, arms=["x", 5])
    problem = roster.problem(min_group_size=2)
    plan = Plan([0, 0, 1, 1, 1], [0, 0, 1, 1, 1], problem=problem)
    assert roster.assignments(plan) == {
        UUID(int=1): "x", ("team", 4): "x", "ana": 5, 7: 5, 8: 5,
    }  # fmt: skip
    feedback = roster.add_up(plan, {("team", 4): 1, UUID(int=1): 1, "ana": 1, np.int32(7): 0.5})
    assert feedback.totals.tolist() == [2.0, 1.5]
    assert feedback.reported.tolist() == [1, 1, 1, 1, 0]


def test_a_seat_is_never_used_again(tmp_path: Path) -> None:
    roster = Roster(["a", "b"], arms=["x"], seats=4)
    roster.leave("a")
    assert roster.join("c") == 2
    path = tmp_path / "roster.json"
    roster.save(path)
    again = Roster.load(path)
    assert again.join("a") == 3, "back, in a new seat"
    assert again.users == ["b", "c", "a"]
    assert again.eligible()[:, 0].tolist() == [False, True, True, True]
    refusal = "an unused seat to join; got 'd', and all 4 seats are used, 1 of them by users who"
    with pytest.raises(InvalidInputError, match=refusal):
        again.join("d")
    assert repr(again) == "Roster(n_users=3, n_seats=4, n_used=4, arms=['x'])"


def test_a_plan_of_another_size_is_refused() -> None:
    other = Roster(range(3), arms=["x"])
    plan = Plan([0, 0], [0, 0], problem=Roster(range(2), arms=["x"]).problem(min_group_size=2))
    with pytest.raises(InvalidInputError, match="plan must be for 3 seats and 1 arms; got Plan"):
        other.assignments(plan)


def test_other_files_and_later_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "roster.json"
    with pytest.raises(InvalidInputError, match="it does not exist"):
        Roster.load(path)
    known = {"shoal_roster": 1, "arms": ["x"], "n_seats": 2, "taken": 2}
    wrong = (
        known | {"users": [["a", 0], ["b", 0]]},
        known | {"users": [["a", 0], ["a", 1]]},
        known | {"users": [["a", 5]]},
        known | {"users": [["a", -1]]},
        known | {"users": [], "taken": 3},
    )
    for text in ("", "[]", '{"shoal_roster": 1}', "\x00", *map(json.dumps, wrong)):
        path.write_text(text)
        with pytest.raises(InvalidInputError, match=r"a roster that Roster.save wrote"):
            Roster.load(path)
    path.write_text(json.dumps({"shoal_roster": 2}))
    with pytest.raises(InvalidInputError, match="a later release"):
        Roster.load(path)
    with pytest.raises(InvalidInputError, match=r"strings or whole numbers.*got \(1,\)"):
        Roster([(1,)], arms=["x"]).save(path)
    with pytest.raises(InvalidInputError, match="path must be a file that can be written"):
        Roster(["a"], arms=["x"]).save(tmp_path / "nowhere" / "roster.json")


FRAME = {"id": ["a", "b"], "age": [1, 2]}


@pytest.mark.parametrize(
    "users", [20, None, "abc", pd.DataFrame(FRAME), pl.DataFrame(FRAME), pl.LazyFrame(FRAME)]
)
def test_what_holds_no_ids_is_refused(users: Any) -> None:
    rule = r"must be a list of ids, such as frame\['id'\]; got"
    with pytest.raises(InvalidInputError, match=f"^users {rule}"):
        Roster(users, arms=["x"])
    with pytest.raises(InvalidInputError, match=f"^arms {rule}"):
        Roster(["a"], arms=users)
    with pytest.raises(InvalidInputError, match=f"^users {rule}"):
        MAB(["x"], users=users, min_group_size=2)
    with pytest.raises(InvalidInputError, match=r"^users must be ids that can be keys of a dict"):
        Roster(np.ones((3, 2)), arms=["x"])


@pytest.mark.parametrize("column", [pd.Series(["a", "b"]), pl.Series(["a", "b"]), iter("ab")])
def test_a_column_holds_ids(column: Any) -> None:
    assert Roster(column, arms=["x"]).users == ["a", "b"]


def test_a_reward_of_a_user_who_has_left_is_named_with_the_remedy() -> None:
    roster = Roster(["a", "b", "c"], arms=["x"])
    plan = Plan([0, 0, 0], [0, 0, 0], problem=roster.problem(min_group_size=2))
    roster.leave("c")
    with pytest.raises(InvalidInputError, match=r"got 'c'\. Leave out the rewards of users"):
        roster.add_up(plan, {"a": 1.0, "c": 1.0})
    assert roster.add_up(plan, {"a": 1.0, "b": 1.0}).totals.tolist() == [2.0]


def test_a_wrong_reward_is_refused_with_the_users_id() -> None:
    roster = Roster(["ann", "ben"], arms=["x"])
    plan = Plan([0, 0], [0, 0], problem=roster.problem(min_group_size=2))
    with pytest.raises(InvalidInputError, match=r"the reward of user 'ben' must be .* got 1\.5"):
        roster.add_up(plan, {"ann": 1.0, "ben": 1.5})
