from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.arrays import LongArray
from shoal.errors import AnonymityError, InvalidInputError
from shoal.model import Plan, Problem

PROBLEM = Problem(n_users=6, n_arms=2, min_group_size=3)


@pytest.mark.parametrize(
    ("arms", "groups", "message"),
    [
        ([0] * 6, [0, 0, 0, 1, 1, -1], "group 1 must have at least min_group_size=3 users; got 2."),
        ([0, 0, 1, 1, 1, 1], [0] * 6, "group 0 must have one arm; got arms [0, 1]."),
    ],
)
def test_a_plan_that_breaks_anonymity_cannot_be_made(
    arms: list[int], groups: list[int], message: str
) -> None:
    with pytest.raises(AnonymityError) as refusal:
        Plan(arms, groups, problem=PROBLEM)
    assert str(refusal.value) == message


def test_a_group_cannot_cross_shards() -> None:
    problem = Problem(n_users=6, n_arms=2, min_group_size=2, n_shards=2)
    with pytest.raises(AnonymityError, match=r"group 0 must lie in one shard; got shards \[0, 1\]"):
        Plan([0] * 6, [-1, 0, 0, 0, 0, -1], problem=problem)


@pytest.mark.parametrize(
    ("arms", "groups", "repeats", "message"),
    [
        ([2, 0, 0, 0, 0, 0], [-1] * 6, 1, r"arms\[0\] must be between 0 and n_arms-1=1; got 2"),
        ([0] * 6, [-2] + [-1] * 5, 1, r"groups\[0\] must be between -1 and n_users-1=5; got -2"),
        ([0] * 6, [6] + [-1] * 5, 1, r"groups\[0\] must be between -1 and n_users-1=5; got 6"),
        ([0] * 5, [-1] * 6, 1, r"arms must have shape \(6,\); got \(5,\)"),
        ([0.0] * 6, [-1] * 6, 1, "arms must hold whole numbers; got dtype float64"),
        ([2**40] * 6, [-1] * 6, 1, "arms must fit in 32 bits"),
        ([0] * 6, [-1] * 6, 0, "repeats must be a whole number of at least 1; got 0"),
    ],
)
def test_bad_columns_are_refused(
    arms: list[int], groups: list[int], repeats: int, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Plan(arms, groups, repeats, problem=PROBLEM)


def test_a_plan_cannot_be_changed_afterwards() -> None:
    arms = np.zeros(6, np.int32)
    plan = Plan(arms, np.zeros(6, np.int32), problem=PROBLEM)
    arms[0] = 1
    assert plan.arms[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        plan.arms[0] = 1
    with pytest.raises(AttributeError):
        plan.repeats = 5


def test_a_plan_survives_pickling() -> None:
    plan = Plan([0] * 6, [0] * 6, 3, problem=PROBLEM)
    copy = pickle.loads(pickle.dumps(plan))
    assert (copy.repeats, copy.groups.tolist(), copy.problem) == (3, [0] * 6, PROBLEM)


@settings(deadline=None, derandomize=True)
@given(
    st.integers(1, 4).flatmap(
        lambda c: st.tuples(
            st.just(c),
            st.lists(
                st.tuples(st.integers(0, 2), st.integers(-1, 3)), min_size=2 * c, max_size=12
            ).filter(lambda users: len(users) % 2 == 0),
        )
    )
)
def test_a_plan_exists_exactly_when_every_group_is_anonymous(
    drawn: tuple[int, list[tuple[int, int]]],
) -> None:
    min_group_size, users = drawn
    arms, groups = (np.array(column) for column in zip(*users, strict=True))
    if groups.max() >= len(users):
        return
    problem = Problem(len(users), 3, min_group_size, n_shards=2)
    try:
        plan = Plan(arms, groups, problem=problem)
    except AnonymityError:
        assert not _anonymous(arms, groups, problem)
    else:
        assert _anonymous(arms, groups, problem)
        sizes = [int((groups == g).sum()) for g in set(groups.tolist()) - {-1}]
        assert plan.smallest_group == min(sizes, default=0)
        assert plan.n_groups == groups.max() + 1


def _anonymous(arms: LongArray, groups: LongArray, problem: Problem) -> bool:
    """Say it again, group by group."""
    for group in set(groups.tolist()) - {-1}:
        members = np.flatnonzero(groups == group)
        if len(members) < problem.min_group_size or len(set(arms[members])) > 1:
            return False
        if len(set(members // problem.shard_size)) > 1:
            return False
    return True
