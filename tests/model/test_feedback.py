from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shoal.errors import AnonymityError, InvalidInputError
from shoal.model import Feedback, Plan, Problem

PROBLEM = Problem(n_users=6, n_arms=2, min_group_size=2)
PLAN = Plan([0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, -1], 2, problem=PROBLEM)
UNBOUNDED_PLAN = Plan(PLAN.arms, PLAN.groups, 2, problem=replace(PROBLEM, bounded=False))


def _feedback(**change: Any) -> Feedback:
    parts: dict[str, Any] = {
        "totals": np.array([5.0, 0.0]),
        "released": np.array([2, 1]),
        "reported": np.array([2, 2, 2, 1, 1, 0]),
    }
    return Feedback(**(parts | change))


def test_feedback_of_the_plan_is_accepted() -> None:
    _feedback().check(PLAN)
    _feedback(plan=PLAN).check(PLAN)
    _feedback(totals=np.array([-5.0, 99.0])).check(UNBOUNDED_PLAN)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"totals": np.array([6.5, 0.0])}, "the total of group 0 must be between 0 .* got 6.5"),
        ({"totals": np.array([1.0, -0.5])}, "the total of group 1 must be between 0 .* got -0.5"),
        ({"totals": np.array([np.nan, 0.0])}, "the total of group 0 must be .* got nan"),
        ({"totals": np.array([1.0])}, "feedback must have 2 totals and releases"),
        ({"released": np.array([3, 1])}, "group 0 must be released between 0 and 2 times; got 3"),
        ({"reported": np.array([2, 2, 2, 2, 1, 0])}, "user 3 must report at most .* got 2"),
        ({"reported": np.array([2, 2, 2, 1, 1, 1])}, "user 5 must report at most .* got 1"),
        ({"reported": np.array([2, 2])}, r"feedback.reported must have shape \(6,\)"),
        (
            {"plan": Plan([0] * 6, [0] * 6, problem=PROBLEM)},
            "feedback must be for the plan asked for",
        ),
    ],
)
def test_feedback_that_cannot_be_the_plans_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _feedback(**change).check(PLAN)


@pytest.mark.parametrize("reports", [0, 1])
def test_a_released_total_of_too_few_reporters_is_refused(reports: int) -> None:
    reported = np.array([2, 2, 2, reports, 0, 0])
    rule = "group 1 must have at least 2 reports, min_group_size=2 whenever it is released"
    with pytest.raises(AnonymityError, match=f"{rule}; got {reports}"):
        _feedback(reported=reported).check(PLAN)
    with pytest.raises(AnonymityError, match=f"{rule}; got {reports}"):
        _feedback(reported=reported).check(UNBOUNDED_PLAN)


def test_each_round_of_a_released_group_needs_its_reporters() -> None:
    with pytest.raises(AnonymityError, match=r"group 0 must have at least 4 reports, .* got 3"):
        _feedback(totals=np.zeros(2), reported=np.array([1, 1, 1, 1, 1, 0])).check(PLAN)


def test_infinite_totals_are_refused_even_where_rewards_are_not_bounded() -> None:
    with pytest.raises(InvalidInputError, match="must be a finite number; got inf"):
        _feedback(totals=np.array([np.inf, 0.0])).check(UNBOUNDED_PLAN)


TWO_PAIRS = Plan([0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2], problem=PROBLEM)


def _of_merged(groups: list[int], arms: list[int] | None = None) -> Feedback:
    merged = Plan(arms or TWO_PAIRS.arms, groups, problem=PROBLEM)
    n = merged.n_groups
    released = np.isin(np.arange(n), groups)
    return Feedback(released.astype(np.float64), released, np.array(groups) >= 0, merged)


def test_merged_groups_are_accepted_and_count_as_withheld_where_they_are_not_wanted() -> None:
    feedback = _of_merged([0, 0, 0, 0, 2, 2])
    feedback.check(TWO_PAIRS)
    own = feedback.unmerged(TWO_PAIRS)
    own.check(TWO_PAIRS)
    np.testing.assert_array_equal(own.totals, [0, 0, 1])
    np.testing.assert_array_equal(own.released, [0, 0, 1])
    np.testing.assert_array_equal(own.reported, [0, 0, 0, 0, 1, 1])


def test_merged_groups_need_as_many_reporters_and_no_more_than_one_group_does() -> None:
    merged = Plan(TWO_PAIRS.arms, [0, 0, 0, 0, 2, 2], problem=PROBLEM)
    released = np.array([1, 0, 1])
    Feedback(np.zeros(3), released, np.array([1, 0, 0, 1, 1, 1]), merged).check(TWO_PAIRS)
    with pytest.raises(AnonymityError, match=r"group 0 must have at least 2 reports, .* got 1"):
        Feedback(np.zeros(3), released, np.array([1, 0, 0, 0, 1, 1]), merged).check(TWO_PAIRS)


@pytest.mark.parametrize(
    ("groups", "arms"),
    [
        ([0, 1, 0, 1, 2, 2], None),  # users have changed groups
        ([0, 0, 0, 0, -1, -1], None),  # a group has left
        ([0, 0, 0, 0, 2, 2], [0, 0, 0, 0, 0, 0]),  # another arm
    ],
)
def test_groups_that_are_not_merged_from_the_plans_are_refused(
    groups: list[int], arms: list[int] | None
) -> None:
    with pytest.raises(InvalidInputError, match="feedback must be for the plan asked for"):
        _of_merged(groups, arms).check(TWO_PAIRS)
