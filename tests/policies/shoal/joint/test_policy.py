"""The flagship: what a price on information buys, and what it must never do."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.environments import make_environment
from shoal.errors import InvalidInputError
from shoal.experiments import simulate
from shoal.instances import lower_bound, uniform
from shoal.model import Feedback, Plan, Problem
from shoal.policies import make_policy
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.policy import JointPolicy
from shoal.policies.shoal.joint.posterior import JointPosterior


def _share(policy: str, means: np.ndarray, c: int, horizon: int, **options: float) -> float:
    """Return a policy's regret as a share of random play's."""
    run = simulate(policy, means, min_group_size=c, horizon=horizon, options=options)
    gaps = means.max(axis=-1, keepdims=True) - means
    return float(run.regret / (horizon * gaps.mean(axis=-1).sum()))


@pytest.mark.slow
def test_it_beats_ucb_that_sees_everyone(rng: np.random.Generator) -> None:
    means = np.stack([uniform(50, 5, rng=rng) for _ in range(2)])
    assert _share("shoal", means, 4, 10_000) < _share("ucb", means, 4, 10_000)


@pytest.mark.slow
def test_thin_crowds_do_not_starve_it(rng: np.random.Generator) -> None:
    means = np.stack([uniform(20, 10, rng=rng) for _ in range(2)])
    assert _share("shoal", means, 5, 10_000) < 0.9 * _share("pooled-thompson", means, 5, 10_000)


def test_every_arm_has_a_turn_soon_where_a_round_has_two_groups(rng: np.random.Generator) -> None:
    """Without a turn an arm keeps its place; it was put behind those that had one."""
    problem = Problem(20, 7, min_group_size=8, horizon=650)
    means = rng.uniform(0.2, 0.8, (20, 7))
    environment = make_environment("bernoulli", problem, means, rng=rng)
    policy, tried = JointPolicy(problem, rng=rng), set[int]()
    for _ in range(20):
        plan = policy.ask()
        tried |= set(plan.arms[plan.groups >= 0].tolist())
        policy.tell(environment.play(plan))
    assert tried == set(range(7))


@pytest.mark.slow
def test_two_who_always_stand_together_are_told_apart(rng: np.random.Generator) -> None:
    means = np.stack([lower_bound("no-clusters", rng=rng, gap=0.2) for _ in range(10)])
    assert _share("shoal", means, 2, 10_000) < 0.1


def test_no_horizon_is_needed(rng: np.random.Generator) -> None:
    means = uniform(30, 3, rng=rng)
    problem = Problem(30, 3, 3)
    policy = make_policy("shoal", problem, rng=rng)
    environment = make_environment("bernoulli", problem, means, rng=rng)
    gaps = means.max(axis=1, keepdims=True) - means
    losses = []
    for _ in range(3_000):
        plan = policy.ask()
        policy.tell(environment.play(plan))
        losses.append(gaps[np.arange(30), plan.arms].sum())
    assert np.mean(losses[-500:]) < 0.1 * gaps.mean(axis=1).sum()


def test_only_allowed_arms_are_played(rng: np.random.Generator) -> None:
    problem = Problem(20, 4, 3, horizon=400)
    means = rng.random((20, 4))
    policy = JointPolicy(problem, rng=rng)
    environment = make_environment("bernoulli", problem, means, rng=rng)
    everyone = np.ones((20, 4), bool)
    few = rng.random((20, 4)) < 0.5
    few[:5] = False  # five users are not there
    few[:, 3] = False  # an arm is not there
    for rounds in range(400):
        eligible = few if rounds < 300 else everyone
        if rounds in (0, 300):
            policy.allow(eligible)
        plan = policy.ask()
        there = eligible.any(axis=1)
        assert eligible[there, plan.arms[there]].all()
        assert (plan.groups[~there] == -1).all()
        policy.tell(environment.play(plan))
    assert policy.posterior.belief.noise.min() > 0


def test_a_sudden_change_of_everything_is_noticed_and_nothing_else_is() -> None:
    rng = np.random.default_rng(11)
    problem = Problem(50, 3, 4, horizon=4_000)
    policy = JointPolicy(problem, rng=rng, drift=1e-6)
    doubts = []
    for _ in range(2):
        means = uniform(50, 3, rng=rng)
        environment = make_environment("bernoulli", problem, means, rng=rng)
        for _ in range(1_000):
            policy.tell(environment.play(policy.ask()))
            variances = np.diagonal(policy.posterior.belief.covariances[0], axis1=1, axis2=2)
            doubts.append(variances.min())
    assert (np.diff(doubts[:1_000]) < 1e-5).all()  # no false alarm
    assert max(doubts[1_000:1_030]) > JOINT.prior_variance / 2  # everyone is in doubt again


@pytest.mark.parametrize("name", ["shoal", "pooled-thompson"])
def test_drift_must_not_be_negative(name: str) -> None:
    with pytest.raises(InvalidInputError, match="drift must be a number of at least 0; got -1"):
        make_policy(name, Problem(20, 4, 3), rng=np.random.default_rng(0), options={"drift": -1})


@pytest.mark.slow
def test_with_drift_it_finds_new_favourites(rng: np.random.Generator) -> None:
    problem = Problem(40, 3, 3, horizon=6_000)
    policy = make_policy("shoal", problem, rng=rng, options={"drift": 1e-4})
    losses = []
    for part in range(2):
        means = uniform(40, 3, rng=rng)
        environment = make_environment("bernoulli", problem, means, rng=rng)
        gaps = means.max(axis=1, keepdims=True) - means
        for _ in range(3_000):
            plan = policy.ask()
            policy.tell(environment.play(plan))
            losses.append(gaps[np.arange(40), plan.arms].sum() / gaps.mean(axis=1).sum())
        assert np.mean(losses[-500:]) < 0.35, f"part {part}"


def test_large_shards_use_the_mean_field(rng: np.random.Generator) -> None:
    means = uniform(1_000, 4, rng=rng)
    assert _share("pooled-thompson", means, 5, 500) < 0.5


def test_a_change_of_who_may_play_what_counts_at_once_in_a_long_run(
    rng: np.random.Generator,
) -> None:
    problem = Problem(20, 4, 3)
    policy = JointPolicy(problem, rng=rng)
    environment = make_environment("bernoulli", problem, rng.random((20, 4)), rng=rng)
    everyone, fewer = np.ones((20, 4), bool), np.ones((20, 4), bool)
    fewer[:, 1] = False
    policy.rounds = 400 * JOINT.plans_per_arm
    for eligible in [everyone] * 10 + [fewer]:
        policy.allow(eligible)
        plan = policy.ask()
        assert eligible[np.arange(20), plan.arms].all()
        policy.tell(environment.play(plan))


def test_plans_stay_longer_as_the_run_goes_on(rng: np.random.Generator) -> None:
    """At least ``plans_per_arm`` plans an arm are in the rounds played, and in those left."""
    enough = 2 * JOINT.plans_per_arm
    problem = Problem(12, 2, 3, horizon=20 * enough)
    policy = JointPolicy(problem, rng=rng)
    environment = make_environment("bernoulli", problem, rng.random((12, 2)), rng=rng)
    longest = 0
    while policy.rounds < 20 * enough:
        plan = policy.ask()
        least = min(policy.rounds, 20 * enough - policy.rounds) // enough
        assert plan.repeats == max(1, least)
        longest = max(longest, plan.repeats)
        policy.tell(environment.play(plan))
    assert longest > 5


@pytest.mark.parametrize(("drift", "participation"), [(1e-6, 1.0), (0.0, 0.9)])
def test_where_means_drift_or_users_are_missing_no_plan_stays(
    drift: float, participation: float, rng: np.random.Generator
) -> None:
    problem = Problem(12, 2, 3, horizon=40 * JOINT.plans_per_arm)
    policy = JointPolicy(problem, rng=rng, drift=drift)
    environment = make_environment(
        "bernoulli", problem, rng.random((12, 2)), rng=rng, participation=participation
    )
    for _ in range(10):
        policy.tell(environment.play(policy.ask()))
    policy.rounds = 20 * JOINT.plans_per_arm
    assert policy.ask().repeats == 1


def test_a_sum_over_rounds_teaches_what_its_rounds_do(rng: np.random.Generator) -> None:
    """One update by the sum of ten equal rounds is ten updates, but for the noise's estimate."""
    problem = Problem(9, 2, 3)
    arms, groups = np.zeros(9, np.int32), np.repeat(np.arange(3, dtype=np.int32), 3)
    once, summed = JointPosterior(problem), JointPosterior(problem)
    total = np.array([1.0, 2.0, 1.0])
    everyone, released = np.ones(9, np.int32), np.ones(3, np.int32)
    for _ in range(10):
        plan = Plan(arms, groups, problem=problem)
        once.absorb(plan, Feedback(total, released, everyone))
    plan = Plan(arms, groups, 10, problem=problem)
    summed.absorb(plan, Feedback(10 * total, 10 * released, 10 * everyone))
    np.testing.assert_allclose(once.estimates(), summed.estimates(), atol=0.05)
    np.testing.assert_allclose(
        np.diagonal(once.belief.covariances, axis1=2, axis2=3),
        np.diagonal(summed.belief.covariances, axis1=2, axis2=3),
        atol=0.01,
    )
