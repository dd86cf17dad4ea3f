"""A registry entry says what the policy does, so that nobody makes one to find out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments import simulate
from shoal.instances import uniform
from shoal.model import Problem
from shoal.policies import POLICIES, Policy, make_policy


def make(name: str, horizon: int | None = 100) -> Policy:
    least = 3 if POLICIES[name].anonymous else 1
    return make_policy(name, Problem(12, 2, least, horizon), rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", POLICIES)
def test_an_entry_says_whether_the_policy_needs_a_horizon(name: str) -> None:
    if "T" in POLICIES[name].needs.split(", "):
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


def test_ucb_and_thompson_see_everyone(rng: np.random.Generator) -> None:
    means = uniform(20, 4, rng=rng)
    for name in ("ucb", "thompson"):
        run = simulate(name, means, min_group_size=4, horizon=2_000)
        assert run.smallest_group == run.problem.min_group_size == 1


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
