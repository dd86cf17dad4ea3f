from __future__ import annotations

from typing import Any

import pytest

from shoal.errors import InvalidInputError
from shoal.model import Problem


def test_a_problem_knows_the_users_of_each_shard() -> None:
    problem = Problem(n_users=12, n_arms=3, min_group_size=2, horizon=10, n_shards=3)
    assert problem.shard_size == 4
    assert problem.shard(2) == slice(8, 12)


def test_a_problem_says_whether_rewards_are_bounded() -> None:
    bounded, unbounded = Problem(4, 2, 2), Problem(4, 2, 2, bounded=False)
    assert bounded.bounded
    assert bounded != unbounded
    assert repr(bounded) == (
        "Problem(n_users=4, n_arms=2, min_group_size=2, horizon=None, n_shards=1)"
    )
    assert repr(unbounded).endswith("n_shards=1, bounded=False)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_users": 0}, "n_users must be a whole number of at least 1; got 0."),
        ({"n_arms": 2.5}, "n_arms must be a whole number of at least 1; got 2.5."),
        ({"n_arms": True}, "n_arms must be a whole number of at least 1; got True."),
        ({"horizon": -1}, "horizon must be a whole number of at least 1; got -1."),
        ({"min_group_size": 11}, "min_group_size must be between 1 and n_users=10; got 11."),
        ({"n_shards": 3}, "n_users must be a multiple of n_shards=3; got 10."),
        (
            {"n_shards": 5, "min_group_size": 3},
            "min_group_size must be between 1 and n_users=2 per shard; got 3.",
        ),
    ],
)
def test_a_bad_problem_is_refused_with_name_rule_and_value(
    change: dict[str, Any], message: str
) -> None:
    good: dict[str, Any] = {"n_users": 10, "n_arms": 3, "min_group_size": 2, "horizon": 5}
    with pytest.raises(InvalidInputError) as refusal:
        Problem(**(good | change))
    assert str(refusal.value) == message
