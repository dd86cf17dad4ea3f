"""A registry entry says what the policy does, so that nobody makes one to find out."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.errors import InvalidInputError
from shoal.model import Problem
from shoal.policies import POLICIES, Policy, make_policy


def make(name: str, horizon: int | None = 100) -> Policy:
    least = 3 if POLICIES[name].anonymous else 1
    return make_policy(name, Problem(12, 2, least, horizon), rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", POLICIES)
def test_an_entry_says_whether_the_policy_needs_a_horizon(name: str) -> None:
    if POLICIES[name].needs_horizon:
        with pytest.raises(InvalidInputError, match="needs a horizon; got None"):
            make(name, horizon=None)
    else:
        make(name, horizon=None).ask()


@pytest.mark.parametrize("name", POLICIES)
def test_an_entry_says_whether_arms_can_be_restricted(name: str) -> None:
    policy = make(name)
    eligible = np.ones((12, 2), bool)
    if POLICIES[name].allows:
        eligible[:, 1] = False
        policy.allow(eligible)
        assert not policy.ask().arms.any()
    else:
        with pytest.raises(InvalidInputError, match="must be called on a policy that can restrict"):
            policy.allow(eligible)


@pytest.mark.parametrize("name", POLICIES)
def test_an_entry_says_whether_merged_groups_are_learnt_from(name: str) -> None:
    assert make(name).takes_merged == POLICIES[name].takes_merged


def test_a_mask_of_another_shape_or_kind_is_refused_by_every_policy() -> None:
    for mask in (np.ones((12, 3), bool), np.ones((12, 2))):
        with pytest.raises(InvalidInputError, match=r"eligible must be truth values of shape \(12"):
            make("random").allow(mask)
