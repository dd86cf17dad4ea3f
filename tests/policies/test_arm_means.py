from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.errors import InvalidInputError
from shoal.model import Feedback, Problem
from shoal.policies import make_policy
from shoal.policies.base import HALF_95, Policy
from shoal.policies.pooled.mean_field import MeanField
from shoal.policies.pooled.thompson import PooledThompson
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.policy import JointPolicy
from shoal.policies.shoal.population.policy import PopulationPolicy

MEANS = np.array([0.2, 0.5, 0.3])


def play(policy: Policy, n_rounds: int, rng: np.random.Generator) -> None:
    """Play users who all have the same means."""
    for _ in range(n_rounds):
        plan = policy.ask()
        rewards = rng.random(len(plan.arms)) < MEANS[plan.arms]
        inside = plan.groups >= 0
        totals = np.zeros(plan.n_groups)
        np.add.at(totals, plan.groups[inside], rewards[inside])
        released = np.bincount(plan.groups[inside], minlength=plan.n_groups) > 0
        policy.tell(Feedback(totals, released.astype(np.int32), inside.astype(np.int32)))


@pytest.mark.parametrize("name", ["shoal", "pooled-thompson"])
@pytest.mark.parametrize("n_users", [40, JOINT.max_users + 44])
def test_estimates_close_in_on_the_means_and_change_nothing(
    name: str, n_users: int, rng: np.random.Generator
) -> None:
    policy = make_policy(name, Problem(n_users, 3, 4), rng=rng)
    present = np.arange(n_users) % 4 > 0
    before = policy.arm_means(present)
    assert before is not None
    play(policy, 30, np.random.default_rng(1))
    twin = make_policy(name, Problem(n_users, 3, 4), rng=np.random.default_rng(0))
    twin.restore(policy.state())
    after = policy.arm_means(present)
    assert after is not None
    assert np.array_equal(policy.ask().arms, twin.ask().arms)
    assert after.means.argmax() == MEANS.argmax()
    assert (np.abs(after.means - MEANS) < after.half_widths + 0.1).all()
    assert (after.half_widths < before.half_widths).all()


def test_the_joint_posterior_gives_the_variance_of_the_mean_literally(
    rng: np.random.Generator,
) -> None:
    policy = JointPolicy(Problem(24, 3, 4, n_shards=2), rng=rng)
    play(policy, 5, np.random.default_rng(1))
    present = rng.random(24) < 0.7
    arm_means = policy.arm_means(present)
    n = present.sum()
    for arm in range(3):
        mean = policy.posterior.estimates()[present, arm].mean()
        variance = 0.0
        for shard in range(2):
            inside = present[12 * shard : 12 * (shard + 1)]
            block = policy.posterior.belief.covariances[shard, arm][np.ix_(inside, inside)]
            variance += block.sum() / n**2
        assert arm_means.means[arm] == pytest.approx(mean)
        assert arm_means.half_widths[arm] == pytest.approx(HALF_95 * np.sqrt(variance))


def test_the_mean_field_takes_errors_to_be_shared(rng: np.random.Generator) -> None:
    policy = PooledThompson(Problem(JOINT.max_users + 44, 3, 4), rng=rng)
    play(policy, 5, np.random.default_rng(1))
    arm_means = policy.arm_means(np.ones(JOINT.max_users + 44, bool))
    posterior = policy.posterior
    assert arm_means.means == pytest.approx(posterior.estimates().mean(axis=0), abs=1e-5)
    assert isinstance(posterior, MeanField)
    widths = HALF_95 * posterior.deviations.mean(axis=0)
    assert arm_means.half_widths == pytest.approx(widths, abs=1e-5)


def test_shards_count_by_who_is_present(rng: np.random.Generator) -> None:
    policy = PopulationPolicy(Problem(600, 3, 4, n_shards=2), rng=rng)
    play(policy, 5, np.random.default_rng(1))
    first, second = np.arange(600) < 300, np.arange(600) >= 300
    one, other = policy.arm_means(first), policy.arm_means(second)
    both = policy.arm_means(first | second)
    assert both.means == pytest.approx((one.means + other.means) / 2)
    squares = one.half_widths**2 + other.half_widths**2
    assert both.half_widths == pytest.approx(np.sqrt(squares) / 2)


def test_a_policy_without_a_posterior_gives_none(rng: np.random.Generator) -> None:
    policy = make_policy("random", Problem(20, 3, 4), rng=rng)
    assert policy.arm_means(np.ones(20, bool)) is None


@pytest.mark.parametrize("n_users", [40, JOINT.max_users + 44])
@pytest.mark.parametrize("name", ["shoal", "pooled-thompson"])
def test_where_nobody_is_present_there_is_no_mean(
    name: str, n_users: int, rng: np.random.Generator
) -> None:
    policy: Any = make_policy(name, Problem(n_users, 3, 4), rng=rng)
    assert np.isnan(policy.arm_means([False] * n_users)).all()
    assert np.isfinite(policy.arm_means([True] * n_users)).all()


@pytest.mark.parametrize("n_users", [40, JOINT.max_users + 44])
def test_who_is_asked_about_is_checked(n_users: int, rng: np.random.Generator) -> None:
    policy: Any = make_policy("shoal", Problem(n_users, 3, 4), rng=rng)
    for present in ([True], [1] * n_users, "all", 3, [[True], [True, False]], None):
        with pytest.raises(InvalidInputError, match="present must be "):
            policy.arm_means(present)
    last = n_users - 1
    for users in (3, [-1], [n_users], [0.5], ["ana"], "0", [True] * n_users, [[0, 1]]):
        with pytest.raises(InvalidInputError, match=f"users must be a list .*-1={last}"):
            policy.beliefs(users=users)
    assert policy.beliefs(users=[last, 0]).means.shape == (2, 3)
    assert policy.beliefs(users=[]).best.shape == (0, 3)
