from __future__ import annotations

import math

import numpy as np

from shoal.model import Feedback, Problem
from shoal.policies import make_policy


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
