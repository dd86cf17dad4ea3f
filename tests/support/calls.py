"""Calls that are wrong on purpose, of which no type checker is to say so, and their parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

import shoal
import shoal.experiments.tune as tuning
from shoal import environments, experiments, instances, mab
from shoal.engines import LocalEngine
from shoal.experiments.sweep import configuration
from shoal.policies import shoal as flagship
from shoal.policies.baselines import RandomPlay

Feedback: Any = shoal.Feedback
Plan: Any = shoal.Plan
Problem: Any = shoal.Problem
Roster: Any = shoal.Roster
MAB: Any = mab.MAB
compare: Any = shoal.compare
decompose: Any = shoal.decompose
make_environment: Any = environments.make_environment
make_policy: Any = shoal.make_policy
price: Any = shoal.price
simulate: Any = shoal.simulate
clustered: Any = instances.clustered
linear: Any = instances.linear
lower_bound: Any = instances.lower_bound
uniform: Any = instances.uniform
random_play: Any = RandomPlay
make_shoal: Any = flagship.make_shoal
Configuration: Any = configuration.Configuration
Setting: Any = experiments.Setting
tune: Any = tuning.tune

PROBLEM = Problem(n_users=6, n_arms=2, min_group_size=3)
MEANS = np.full((6, 2), 0.5)
HERE = LocalEngine(n_workers=1)
RULES: dict[str, Any] = {"min_group_size": 3, "horizon": 10}
Call = Callable[[], Any]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def plan() -> Any:
    return Plan([0] * 3 + [1] * 3, [0] * 3 + [1] * 3, problem=PROBLEM)


def asked() -> Any:
    policy = make_policy("random", PROBLEM, rng=rng())
    policy.ask()
    return policy


def environment(**more: Any) -> Any:
    return make_environment("bernoulli", PROBLEM, **{"means": MEANS, "rng": rng()} | more)


def frame(**more: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": [0.1] * 6, "b": [0.9] * 6, **more})


def priced(**more: Any) -> Any:
    known: dict[str, Any] = {"rate": 0.2, "n_users": 40, "n_arms": 2, "horizon": 5, "n_runs": 2}
    known |= {"min_group_sizes": [5], "policy": "random", "engine": HERE}
    return price(**known | more)


def compared(**more: Any) -> Any:
    return compare(**{"policies": ["random"], "n_runs": 1, "engine": HERE} | RULES | more)


EXTENDED = (*RandomPlay.changing, "best")
RNG = r"rng must be a numpy.random.Generator, such as np.random.default_rng\(0\); got "
COMMON = RNG.replace("rng", "common", 1)


def asked_to_explore() -> Any:
    policy = make_policy("explore-then-commit", Problem(6, 2, 3, 50), rng=rng())
    policy.ask()
    return policy
