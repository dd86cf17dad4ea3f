"""What the paper's algorithms refuse, and what they do when their assumptions fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from shoal.errors import InvalidInputError, ShoalError, UnknownNameError
from shoal.experiments import simulate
from shoal.instances import lower_bound, uniform
from shoal.model import Feedback, Problem
from shoal.policies import POLICIES, make_policy

NEED_A_SPARE_USER = [n for n in POLICIES if "elimination" in n] + ["explore-then-commit"]


@pytest.mark.parametrize("name", NEED_A_SPARE_USER)
def test_a_policy_that_needs_more_than_c_users_refuses_fewer(name: str) -> None:
    problem = Problem(n_users=4, n_arms=3, min_group_size=4, horizon=100)
    with pytest.raises(InvalidInputError) as refusal:
        make_policy(name, problem, rng=np.random.default_rng(0))
    assert "n_users must be greater than min_group_size=4" in str(refusal.value)
    assert str(refusal.value).endswith("got 4.")


@pytest.mark.parametrize("name", NEED_A_SPARE_USER)
def test_a_policy_that_needs_the_horizon_says_so(name: str) -> None:
    problem = Problem(n_users=9, n_arms=3, min_group_size=4)
    with pytest.raises(InvalidInputError, match="needs a horizon; got None"):
        make_policy(name, problem, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("elimination-lpp", {}, "did you mean 'elimination-lp'"),
        ("elimination-lp", {"gama": 1.0}, "option of 'elimination-lp' .* did you mean 'gamma'"),
        ("elimination-lp", {"decomposition": "lp"}, "option of 'elimination-lp'"),
        ("elimination-lp", {"gamma": -1.0}, "gamma must be a positive number; got -1.0"),
        ("elimination-lp", {"gamma": math.nan}, "gamma must be a positive number; got nan"),
        ("elimination-lp", {"grid": "minmax"}, "did you mean 'minimax'"),
        ("elimination-lp", {"n_batches": 0}, "n_batches must be a whole number of at least 1"),
        ("explore-then-commit", {"exploration": 0}, "exploration must be a positive number; got 0"),
        ("thompson", {"model": "gauss"}, "did you mean 'gaussian'"),
        ("best-arm", {"arm": [0, 1]}, "arm must be one number or one for each of 1 shards"),
    ],
)
def test_bad_names_and_options_are_refused(
    name: str, options: dict[str, object], message: str
) -> None:
    problem = Problem(n_users=20, n_arms=3, min_group_size=4, horizon=100)
    with pytest.raises(InvalidInputError, match=message):
        make_policy(name, problem, rng=np.random.default_rng(0), options=options)


def test_unknown_names_are_their_own_error() -> None:
    problem = Problem(n_users=20, n_arms=3, min_group_size=4, horizon=100)
    with pytest.raises(UnknownNameError, match="known: "):
        make_policy("zzz", problem, rng=np.random.default_rng(0))


def test_algorithm_1_aborts_only_when_told_not_to_be_robust() -> None:
    # One user alone likes arm 1: once the others have dropped it, no crowd is left for it.
    means = np.full((10, 2), 0.1)
    means[:, 0] = 0.9
    means[0] = [0.1, 0.9]
    arguments: dict[str, Any] = {
        "min_group_size": 4, "horizon": 20_000, "rewards": "deterministic",
    }  # fmt: skip
    with pytest.raises(ShoalError, match="U-batched graph for U=5; Algorithm 1 aborts"):
        simulate("elimination-greedy", means, options={"robust": False}, **arguments)
    run = simulate("elimination-greedy", means, **arguments)
    assert run.regret < 0.5 * simulate("random", means, **arguments).regret


@pytest.mark.parametrize("name", NEED_A_SPARE_USER)
def test_the_papers_algorithms_learn(name: str, rng: np.random.Generator) -> None:
    means = np.stack([uniform(40, 3, rng=rng) for _ in range(5)])
    arguments: dict[str, Any] = {"min_group_size": 2, "horizon": 50_000}
    run = simulate(name, means, options={}, **arguments)
    assert run.regret < 0.3 * simulate("random", means, **arguments).regret
    assert run.smallest_group == 2


@pytest.mark.parametrize("name", ["random", "best-arm", "shoal", "pooled-thompson"])
def test_theorem_5_gives_linear_regret(name: str, rng: np.random.Generator) -> None:
    means = lower_bound("too-few-users", rng=rng)
    short, long = (
        simulate(name, means, min_group_size=2, horizon=t, rewards="deterministic").regret
        for t in (1_000, 10_000)
    )
    assert short == pytest.approx(1_000, rel=0.2)
    assert long == pytest.approx(10_000, rel=0.1)


def test_ucb_and_thompson_see_everyone(rng: np.random.Generator) -> None:
    means = uniform(20, 4, rng=rng)
    for name in ("ucb", "thompson"):
        run = simulate(name, means, min_group_size=4, horizon=2_000)
        assert run.smallest_group == run.problem.min_group_size == 1


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
