"""Pooled elimination in both forms: as it ships, and as its theorem has it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from shoal.environments import make_environment
from shoal.errors import UnknownNameError
from shoal.experiments import simulate
from shoal.instances import clustered
from shoal.model import Problem
from shoal.policies.pooled.elimination import PooledElimination


def test_estimates_of_a_batch_come_from_its_totals_alone() -> None:
    problem = Problem(24, 3, 3, horizon=4000)
    rng = np.random.default_rng(0)
    policy = PooledElimination(problem, rng=rng, estimates="batch", gamma=0.5)
    means = np.random.default_rng(1).random((24, 3))
    environment = make_environment("bernoulli", problem, means, rng=rng)
    rounds_of_batch, batch = 0, 0
    while policy.rounds < 4000:
        plan = policy.ask()
        if policy._batches[0] != batch:
            batch, rounds_of_batch = policy._batches[0], 0
            assert not policy._samples.information.any()
        policy.tell(environment.play(plan))
        rounds_of_batch += plan.repeats
        # A round adds a projection whose trace is the number of its groups.
        assert policy._samples.information.trace(axis1=2, axis2=3).sum() <= 8 * rounds_of_batch
    assert batch >= 2


def test_the_theorems_form_has_the_theorems_defaults() -> None:
    log = math.log(24 * 3 * 4000)
    for bounded, factor in ((True, 1), (False, 4)):
        problem = Problem(24, 3, 3, horizon=4000, bounded=bounded)
        rng = np.random.default_rng(0)
        policy = PooledElimination(problem, rng=rng, estimates="batch")
        assert policy._gamma == pytest.approx(factor * log)
        assert policy.decomposition == "home-away"
        assert policy._demands.sum() < 4000 / (2 - 1 / 3)
        shipped = PooledElimination(problem, rng=rng)
        assert shipped._gamma == pytest.approx(log)
        assert shipped.decomposition == "euler"


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="estimates must be a known name; got 'each'"):
        PooledElimination(
            Problem(24, 3, 3, horizon=100), rng=np.random.default_rng(0), estimates="each"
        )


@pytest.mark.slow
def test_the_theorems_form_learns() -> None:
    rng = np.random.default_rng(5)
    means = np.stack([clustered(60, 3, rng=rng) for _ in range(2)])
    arguments: dict[str, Any] = {"min_group_size": 4, "horizon": 60_000, "tuned": False}
    run = simulate("pooled-elimination", means, options={"estimates": "batch"}, **arguments)
    assert run.regret < 0.3 * simulate("random", means, **arguments).regret
