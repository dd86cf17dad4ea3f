"""Large populations where groups are hard to form: every arm is tried, and nobody unseen."""

from __future__ import annotations

import numpy as np

from shoal.environments import make_environment
from shoal.experiments import simulate
from shoal.instances import uniform
from shoal.model import Problem
from shoal.policies.contract import Arena
from shoal.policies.shoal.constants import POPULATION
from shoal.policies.shoal.population.policy import PopulationPolicy
from shoal.policies.shoal.population.posterior import infer, workspace


def test_every_arm_is_heard_of_where_there_are_fewer_users_than_groups_of_all_arms() -> None:
    # 15 groups of 32 are more than 346 users: a third of the arms had never been tried.
    problem = Problem(n_users=346, n_arms=15, min_group_size=32, horizon=500)
    policy, arena = PopulationPolicy(problem, rng=np.random.default_rng(0)), Arena(problem)
    seen: set[int] = set()
    for _ in range(3):
        plan = policy.ask()
        seen |= set(plan.arms[plan.groups >= 0].tolist())
        policy.tell(arena.play(plan))
    assert seen == set(range(15))
    means = np.tile(uniform(1, 15, rng=np.random.default_rng(0)), (346, 1))
    run = simulate(PopulationPolicy, means, min_group_size=32, horizon=500)
    random_play = 500 * float((means.max(axis=1) - means.mean(axis=1)).sum())
    assert run.regret < 0.1 * random_play  # 0.003 to 0.024 over five draws


def test_an_arm_is_tried_once_it_may_be_played_and_not_for_ever() -> None:
    problem = Problem(n_users=400, n_arms=3, min_group_size=20, horizon=500)
    policy, arena = PopulationPolicy(problem, rng=np.random.default_rng(0)), Arena(problem)
    allowed = np.ones((400, 3), np.bool_)
    allowed[:, 2] = False
    policy.allow(allowed)
    for _ in range(5):
        plan = policy.ask()
        assert plan.arms.max() < 2
        policy.tell(arena.play(plan))
    allowed[:19, 2] = True  # too few to be seen
    policy.allow(allowed)
    policy.tell(arena.play(policy.ask()))
    assert policy.state()["shards"][0]["attempts_left"].tolist() == [0, 0, POPULATION.attempts]
    policy.allow(np.ones((400, 3), np.bool_))
    plan = policy.ask()
    assert np.count_nonzero(plan.arms[plan.groups >= 0] == 2) == 400 // 3
    policy.tell(arena.play(plan))
    assert policy.state()["shards"][0]["attempts_left"].tolist() == [0, 0, 0]


def test_an_arm_that_stays_unheard_is_given_up() -> None:
    means = np.full((300, 3), 0.5)
    problem = Problem(n_users=300, n_arms=3, min_group_size=30, horizon=500)
    policy = PopulationPolicy(problem, rng=np.random.default_rng(0))
    environment = make_environment(
        "bernoulli", problem, means, rng=np.random.default_rng(0), participation=0.01
    )
    for _ in range(POPULATION.attempts + 1):
        policy.tell(environment.play(policy.ask()))
    assert policy.state()["shards"][0]["attempts_left"].tolist() == [0, 0, 0]


def test_nobody_explores_where_no_group_forms() -> None:
    means = np.tile(np.linspace(0.1, 0.9, 15), (346, 1))
    problem = Problem(n_users=346, n_arms=15, min_group_size=32, horizon=500)
    policy = PopulationPolicy(problem, rng=np.random.default_rng(0))
    environment = make_environment("bernoulli", problem, means, rng=np.random.default_rng(0))
    for _ in range(100):
        plan, belief = policy.ask(), policy.shards[0].belief
        crowds = np.bincount(plan.arms, minlength=15)
        posterior = workspace(15, belief.factors.shape[1])
        for user in np.flatnonzero(crowds[plan.arms] < 32).tolist():
            infer(belief.prior(), belief.evidence, user, posterior)
            assert posterior.means.argmax() == plan.arms[user]
        policy.tell(environment.play(plan))
