"""Pooled explore-then-commit: its length, and its bound computed literally."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.bounds import pooled_explore_then_commit_bound
from shoal.environments import make_environment
from shoal.errors import InvalidInputError
from shoal.experiments import simulate
from shoal.grouping import least_information
from shoal.model import Problem
from shoal.policies import make_policy


def test_everyone_plays_each_arm_in_new_groups_and_then_commits() -> None:
    problem = Problem(12, 3, 4, horizon=3000)
    rng = np.random.default_rng(0)
    policy = make_policy(
        "pooled-explore-then-commit", problem, rng=rng, options={"exploration": 0.2}
    )
    means = np.random.default_rng(1).random((12, 3))
    environment = make_environment("bernoulli", problem, means, rng=rng)
    information = 2 / 11  # three groups of twelve users
    noise = 2 * 0.25 * math.log(12 * 3 * 3000) / information
    n_rounds = math.ceil(0.2 * noise ** (1 / 3) * 1000 ** (2 / 3))
    groupings = set()
    for number in range(3 * n_rounds):
        plan = policy.ask()
        assert (plan.arms == number // n_rounds).all()
        assert (plan.groups >= 0).all()
        assert plan.repeats == 1
        groupings.add(plan.groups.tobytes())
        policy.tell(environment.play(plan))
    assert len(groupings) > 2.5 * n_rounds
    plan = policy.ask()
    assert plan.repeats == 3000 - 3 * n_rounds
    assert plan.n_groups == 0


@pytest.mark.parametrize(("n_users", "size"), [(20, 4), (8, 4), (6, 4), (5, 4)])
def test_regret_is_below_the_bound(n_users: int, size: int) -> None:
    horizon, n_arms = 60_000, 3
    problem = Problem(n_users, n_arms, size, horizon)
    log = math.log(n_users * n_arms * horizon)
    bits = least_information(n_users, size)
    stated = n_users * (
        3 * (2 * 0.25 * n_arms * log / bits) ** (1 / 3) * horizon ** (2 / 3) + n_arms + 2
    )
    assert pooled_explore_then_commit_bound(problem) == pytest.approx(stated)
    assert horizon >= 16 * n_arms * log / (bits * 0.5)
    means = np.random.default_rng(3).random((4, n_users, n_arms))
    run = simulate(
        "pooled-explore-then-commit", means, min_group_size=size, horizon=horizon, tuned=False
    )
    assert (run.curves[:, -1] < stated).all()


def test_the_bound_names_what_it_needs() -> None:
    with pytest.raises(InvalidInputError, match="horizon must be at least"):
        pooled_explore_then_commit_bound(Problem(20, 3, 4, horizon=100))
    with pytest.raises(InvalidInputError, match="n_users must be more than min_group_size=4"):
        pooled_explore_then_commit_bound(Problem(4, 3, 4, horizon=10**6))


@pytest.mark.slow
def test_uses_fewer_rounds_than_the_papers_and_learns_more() -> None:
    means = np.random.default_rng(4).random((5, 40, 4))
    regrets = [
        simulate(name, means, min_group_size=8, horizon=50_000, tuned=False).regret
        for name in ("pooled-explore-then-commit", "explore-then-commit")
    ]
    assert regrets[0] < 0.8 * regrets[1]
