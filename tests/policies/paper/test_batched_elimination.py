"""Algorithm 1 with each decomposition."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from shoal.decompositions import decompose
from shoal.environments import make_environment
from shoal.errors import DemandError, ShoalError
from shoal.experiments import Run, simulate
from shoal.instances import uniform
from shoal.model import Problem
from shoal.policies import POLICIES, make_policy
from shoal.policies.paper.batched_elimination import BatchedElimination

NEED_A_SPARE_USER = [name for name, entry in POLICIES.items() if "T" in entry.needs.split(", ")]


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


@cache
def play(name: str) -> Run:
    """Play two instances; random play, which all are compared with, once."""
    rng = np.random.default_rng(20220914)
    means = np.stack([uniform(40, 3, rng=rng) for _ in range(2)])
    return simulate(name, means, options={}, min_group_size=2, horizon=50_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEED_A_SPARE_USER)
def test_the_papers_algorithms_learn(name: str) -> None:
    run = play(name)
    assert run.regret < 0.3 * play("random").regret
    assert run.smallest_group == 2


def clustered_means(n_arms: int, min_group_size: int) -> np.ndarray:
    """Clusters of C+1: on each arm one decided user, and C who like this arm a little more."""
    means = np.full((n_arms, min_group_size + 1, n_arms), 0.4)
    means[:, 0] = 0.0
    arms = np.arange(n_arms)
    means[arms, :, arms] = 0.9
    means[arms, 0, arms] = 1.0
    return means.reshape(-1, n_arms)


@pytest.mark.parametrize(
    "name", [name for name in POLICIES if name.startswith("elimination-") and "lp" not in name]
)
def test_no_default_explores_for_the_whole_horizon(name: str) -> None:
    """Where U = C+1 exactly; the theorem of lp is for U ≥ K(C+1), below."""
    means = clustered_means(6, 2)
    problem = Problem(len(means), 6, 2, horizon=60_000)
    assert last_groups(name, problem, means) == 0


def test_the_default_of_lp_explores_less_than_the_horizon_in_large_clusters() -> None:
    means = np.tile(0.2 + 0.6 * np.eye(3), (10, 1))
    assert last_groups("elimination-lp", Problem(30, 3, 2, horizon=40_000), means) == 0


def last_groups(name: str, problem: Problem, means: np.ndarray) -> int:
    """Return the groups of the last plan: none once a policy has committed."""
    policy = make_policy(name, problem, rng=np.random.default_rng(0))
    environment = make_environment("bernoulli", problem, means, rng=np.random.default_rng(1))
    while policy.rounds < policy.need_horizon():
        plan = policy.ask()
        policy.tell(environment.play(plan))
    return plan.n_groups


def test_without_robust_nothing_falls_back() -> None:
    """U = 3, but arm 1's mean load is 2.5: lp refuses it, and blocks do not."""
    problem = Problem(12, 2, 2, horizon=2000)
    active = np.array([[True, False]] * 8 + [[False, True]] + [[True, True]] * 3)
    for robust in (True, False):
        policy = make_policy(
            "elimination-lp", problem, rng=np.random.default_rng(0), options={"robust": robust}
        )
        assert isinstance(policy, BatchedElimination)
        if robust:
            assert len(policy._assignments(active, 10)[1])
        else:
            with pytest.raises(DemandError, match="must have a mean load of at least"):
                policy._assignments(active, 10)


def test_greedy_as_printed_repeats_every_arm_for_the_whole_demand() -> None:
    active = np.ones((6, 3), bool)
    printed = decompose(active, 30, min_crowd=3, method="greedy-printed")
    until_met = decompose(active, 30, min_crowd=3, method="greedy")
    assert (printed.total, until_met.total) == (90, 30)
