from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.errors import InvalidInputError
from shoal.experiments import simulate
from shoal.model import Feedback, Problem
from shoal.policies import make_policy


def test_thompson_refuses_rewards_that_its_model_cannot_have() -> None:
    with pytest.raises(InvalidInputError, match=r"rewards must be in \[0, 1\] for model='beta'"):
        simulate("thompson", [[0.0, 5.0]], min_group_size=1, horizon=50, rewards="gaussian")
    run = simulate(
        "thompson",
        [[0.0, 5.0]],
        min_group_size=1,
        horizon=50,
        rewards="gaussian",
        options={"model": "gaussian"},
    )
    assert run.regret < 50


def test_ucb_plays_the_index_of_auer_et_al(rng: np.random.Generator) -> None:
    problem = Problem(n_users=3, n_arms=4, min_group_size=1, horizon=200)
    policy = make_policy("ucb", problem, rng=rng)
    sums, counts = np.zeros((3, 4)), np.zeros((3, 4))
    users = np.arange(3)
    for t in range(200):
        plan = policy.ask()
        with np.errstate(divide="ignore", invalid="ignore"):
            index = sums / counts + np.sqrt(2 * math.log(max(2, t)) / counts)
        index[counts == 0] = np.inf
        np.testing.assert_allclose(
            index[users, plan.arms], index.max(axis=1), rtol=1e-9, err_msg=f"round {t}"
        )
        rewards = (rng.random(3) < 0.2 * (1 + plan.arms)).astype(float)
        sums[users, plan.arms] += rewards
        counts[users, plan.arms] += 1
        policy.tell(Feedback(rewards, np.ones(3, bool), np.ones(3, bool)))
