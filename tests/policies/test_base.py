from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import InvalidInputError
from shoal.model import Problem
from shoal.policies import POLICIES, make_policy

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
