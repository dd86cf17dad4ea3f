"""Rewards that a program adds up itself reach the learner as those of an environment would."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.environments import make_environment
from shoal.errors import InvalidInputError
from shoal.model import Feedback, Plan, Problem

PROBLEM = Problem(n_users=12, n_arms=2, min_group_size=3)
ARMS = [0] * 6 + [1] * 6
GROUPS = [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


def same(one: Feedback, other: Feedback) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("totals", "released", "reported")
    )


@pytest.mark.parametrize("repeats", [1, 4])
def test_totals_are_those_of_an_environment(repeats: int, rng: np.random.Generator) -> None:
    plan = Plan(ARMS, [*GROUPS[:-3], -1, -1, -1], repeats, problem=PROBLEM)
    means = rng.integers(0, 3, (12, 2)) / 2  # sums are exact
    played = make_environment("deterministic", PROBLEM, means, rng=rng).play(plan)
    rewards = {user: means[user, arm] for user, arm in plan.assignments.items()}
    assert same(plan.add_up(*[rewards] * repeats), played)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.dictionaries(st.integers(0, 11), st.sampled_from([0.0, 0.25, 1.0])), st.integers(1, 3))
def test_a_total_is_of_at_least_c_reporters_and_of_nothing_else(
    rewards: dict[int, float], repeats: int
) -> None:
    plan = Plan(ARMS, GROUPS, repeats, problem=PROBLEM)
    feedback = plan.add_up(*[rewards] * repeats)
    feedback.check(plan)
    groups = feedback.plan.groups if feedback.plan else plan.groups
    for group in range(len(feedback.totals)):
        members = [u for u in rewards if groups[u] == group and feedback.reported[u]]
        assert feedback.totals[group] == repeats * sum(rewards[u] for u in members)
        assert not feedback.released[group] or len(members) >= 3
    for crowd in (range(6), range(6, 12)):  # what can be merged in one round is not withheld
        reporters = [user for user in crowd if user in rewards]
        if repeats == 1 and len(reporters) >= 3:
            assert feedback.reported[reporters].all()
    withheld = {u: 1.0 - r if feedback.reported[u] == 0 else r for u, r in rewards.items()}
    assert same(plan.add_up(*[withheld] * repeats), feedback), "a withheld reward made a difference"


def test_rewards_may_be_pairs_or_any_dataframe() -> None:
    plan = Plan(ARMS, GROUPS, problem=PROBLEM)
    rewards = {user: user / 16 for user in range(8)}
    columns = {"user": list(rewards), "reward": list(rewards.values())}
    expected = plan.add_up(rewards)
    for other in (rewards.items(), pd.DataFrame(columns), pl.LazyFrame(columns)):
        assert same(plan.add_up(other), expected)  # type: ignore[arg-type]


def test_a_frames_columns_are_found_by_their_names() -> None:
    plan = Plan(ARMS, GROUPS, problem=PROBLEM)
    rewards = {"reward": [1.0, 0.0, 1.0], "day": [1, 1, 1], "user": [0, 1, 2]}
    expected = plan.add_up({0: 1.0, 1: 0.0, 2: 1.0})
    frames: list[Any] = [pl.DataFrame(rewards), pd.DataFrame(rewards).drop(columns="day")]
    for frame in frames:
        assert same(plan.add_up(frame), expected)
    other: Any = pl.DataFrame({"who": [0, 1, 2], "liked": [1.0, 0.0, 1.0]})
    assert same(plan.add_up(other), expected)
    for names in (("reward", "who"), ("liked", "user")):
        swapped: Any = pd.DataFrame(zip([1.0, 0.0, 1.0], [0, 1, 2], strict=True), columns=names)
        assert same(plan.add_up(swapped), expected)
    exact: Any = pl.DataFrame({"user": [0, 1, 2], "reward": [Decimal(1), Decimal(0), Decimal(1)]})
    assert same(plan.add_up(exact), expected)


@pytest.mark.parametrize("user", [True, np.True_, 0.0, -1, 12, "a"])
def test_who_is_no_number_of_a_user_is_refused(user: Any) -> None:
    """A truth value would select everyone, and release totals of people who said nothing."""
    plan = Plan(ARMS, GROUPS, problem=PROBLEM)
    with pytest.raises(InvalidInputError, match="a user must be a number between 0 and"):
        plan.add_up({user: 1.0})


def test_a_user_who_stands_twice_is_named() -> None:
    plan = Plan(ARMS, GROUPS, problem=PROBLEM)
    with pytest.raises(InvalidInputError, match="must name each user once; got 3 again"):
        plan.add_up([(2, 1.0), (3, 0.0), (3, 1.0)])
