"""How well ``shoal`` learns, pinned by recorded regrets of short runs.

A value is the regret of the second half of a run, as a share of random play's: it shows what the
first half has taught. Seeds are fixed, so an unchanged learner gives the same bits; the allowance
is for changes that alter draws but not quality. ``regret`` is the mean of the seeds 0 and 1,
``deviation`` the relative standard deviation over seeds on the same instances, from the differences
of the shards between these two seeds. A learner is judged by its mean ratio to the recorded values,
as single values are too noisy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from shoal.arrays import FloatArray
from shoal.experiments import simulate
from shoal.instances import clustered, linear, uniform

ALLOWANCE = 0.15
FALSE_ALARM = 1e-6


class Row(NamedTuple):
    """Instances, one a shard, how they are played, and the recorded value."""

    instance: Callable[[np.random.Generator], FloatArray]
    min_group_size: int
    horizon: int
    n_shards: int
    regret: float
    deviation: float
    participation: float = 1.0


TABLE = {
    "joint": {
        "few groups": Row(lambda rng: uniform(40, 4, rng=rng), 10, 300, 40, 0.2596, 0.034),
        "thin arms": Row(lambda rng: uniform(20, 8, rng=rng), 5, 300, 60, 0.2225, 0.031),
        "linear": Row(lambda rng: linear(40, 5, rng=rng, dimension=2), 4, 200, 60, 0.0678, 0.047),
        "70 % report": Row(lambda rng: uniform(40, 4, rng=rng), 3, 200, 60, 0.1486, 0.036, 0.7),
    },
    "population": {
        "clustered": Row(
            lambda rng: clustered(400, 5, rng=rng, n_clusters=3, rate=0.3),
            5,
            100,
            24,
            0.1789,
            0.023,
        ),
        "linear": Row(lambda rng: linear(400, 5, rng=rng, dimension=2), 5, 100, 24, 0.1217, 0.052),
        "uniform": Row(lambda rng: uniform(300, 4, rng=rng), 4, 100, 24, 0.1981, 0.023),
    },
}


def late_regret(row: Row, *, seed: int = 0) -> float:
    """Return the regret of the second half as a share of random play's."""
    half = row.horizon // 2
    means = np.stack([row.instance(np.random.default_rng([7, i])) for i in range(row.n_shards)])
    run = simulate(
        "shoal", means, min_group_size=row.min_group_size, horizon=row.horizon, seed=seed,
        participation=row.participation, n_checkpoints=2,
    )  # fmt: skip
    assert run.rounds.tolist() == [half, row.horizon]
    gaps = means.max(axis=2) - means.mean(axis=2)
    first, whole = run.cumulative_regret
    return float((whole - first) / (gaps.sum() * half))


@pytest.mark.parametrize("learner", TABLE)
def test_regret_is_what_was_recorded(learner: str) -> None:
    ratios = {name: late_regret(row) / row.regret for name, row in TABLE[learner].items()}
    assert np.mean(list(ratios.values())) == pytest.approx(1.0, abs=ALLOWANCE), ratios


@pytest.mark.parametrize("learner", TABLE)
def test_the_allowance_is_beyond_chance(learner: str) -> None:
    """Two learners share the false alarms; a recorded mean of two seeds adds half a variance."""
    rows = TABLE[learner].values()
    deviation = math.sqrt(1.5 * sum(row.deviation**2 for row in rows)) / len(rows)
    assert 2 * stats.norm.sf(ALLOWANCE / deviation) < FALSE_ALARM / len(TABLE)
