"""Algorithm 1 with each decomposition."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from shoal.errors import ShoalError
from shoal.experiments import Run, simulate
from shoal.instances import uniform
from shoal.policies import POLICIES

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
    """Play five instances; random play, which all are compared with, once."""
    rng = np.random.default_rng(20220914)
    means = np.stack([uniform(40, 3, rng=rng) for _ in range(5)])
    return simulate(name, means, options={}, min_group_size=2, horizon=50_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", NEED_A_SPARE_USER)
def test_the_papers_algorithms_learn(name: str) -> None:
    run = play(name)
    assert run.regret < 0.3 * play("random").regret
    assert run.smallest_group == 2
