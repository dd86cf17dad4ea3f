from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from tests.support.policies import Greedy

from shoal.arrays import BoolArray
from shoal.errors import InvalidInputError
from shoal.model import Problem, Roster
from shoal.policies import POLICIES, load_policy, make_policy

NEED_A_SPARE_USER = [name for name, entry in POLICIES.items() if "T" in entry.needs.split(", ")]


@pytest.mark.parametrize("name", NEED_A_SPARE_USER)
def test_a_policy_that_needs_more_than_c_users_refuses_fewer(name: str) -> None:
    problem = Problem(n_users=4, n_arms=3, min_group_size=4, horizon=100)
    with pytest.raises(InvalidInputError) as refusal:
        make_policy(name, problem, rng=np.random.default_rng(0))
    assert "n_users must be greater than min_group_size=4" in str(refusal.value)
    assert str(refusal.value).endswith("got 4.")


def test_a_mask_of_another_shape_or_kind_is_refused_by_every_policy() -> None:
    policy = make_policy("random", Problem(12, 2, 3), rng=np.random.default_rng(0))
    for mask in (np.ones((12, 3), bool), np.ones((12, 2))):
        with pytest.raises(InvalidInputError, match=r"eligible must be truth values of shape \(12"):
            policy.allow(mask)


def test_a_live_loop_of_one_round_a_day_goes_on_where_plans_would_be_repeated() -> None:
    roster = Roster(range(12), arms=["a", "b"])
    policy = make_policy("shoal", roster.problem(min_group_size=3), rng=np.random.default_rng(0))
    rng = np.random.default_rng(1)
    for day in range(700):
        plan = policy.ask(max_repeats=1)
        reactions = {
            user: float(rng.random() < (0.9 if arm == "a" else 0.2))
            for user, arm in roster.assignments(plan).items()
        }
        policy.tell(roster.add_up(plan, reactions))
        assert policy.rounds == day + 1
    assert policy.ask().repeats > 1, "the test must reach the rounds where shoal repeats its plans"


def test_a_plan_that_waits_is_shortened_and_saved_as_it_is_then(tmp_path: Path) -> None:
    problem = Problem(n_users=50, n_arms=5, min_group_size=4, horizon=1000)
    policy = make_policy("explore-then-commit", problem, rng=np.random.default_rng(0))
    plan = policy.ask()
    assert plan.repeats > 3
    assert policy.ask(max_repeats=plan.repeats) is plan
    shorter = policy.ask(max_repeats=3)
    assert shorter.repeats == 3
    assert shorter.groups.tolist() == plan.groups.tolist()
    policy.save(tmp_path / "policy.shoal")
    for again in (policy, load_policy(tmp_path / "policy.shoal")):
        assert again.ask().repeats == 3
        again.tell(again.ask().add_up({}, {}, {}))
        assert again.rounds == 3
        assert again.ask().repeats == plan.repeats - 3


class Restricted(Greedy):
    """Keeps what is allowed as it gets it."""

    def _allow(self, eligible: BoolArray) -> None:
        self.mask = eligible


def test_what_is_allowed_does_not_follow_the_callers_array() -> None:
    policy = Restricted(Problem(12, 2, 3), rng=np.random.default_rng(0))
    array = np.ones((12, 2), np.bool_, order="F")
    masks = [array, array.copy(order="C"), pd.DataFrame(array, copy=False)]
    for mask in masks:
        policy.allow(mask)
        (mask if isinstance(mask, np.ndarray) else array)[:] = False
        assert policy.mask.all()
        assert policy.mask.flags.c_contiguous
        array[:] = True


def test_a_plan_that_waits_for_feedback_stays_when_arms_are_restricted() -> None:
    policy = make_policy("shoal", Problem(12, 2, 3), rng=np.random.default_rng(0))
    plan, mask = policy.ask(), np.ones((12, 2), np.bool_)
    mask[:, plan.arms[0]] = False
    policy.allow(mask)
    assert policy.ask() is plan
    policy.tell(plan.add_up({}))
    assert (policy.ask().arms != plan.arms[0]).all()
