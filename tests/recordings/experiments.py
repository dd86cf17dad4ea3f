"""Recordings of experiments: results of ``simulate``, ``compare``, ``simulate_shards``, ``price``.

``simulate`` is called with every option that ``shoal tune`` chooses, so that the recordings do not
depend on which options it takes by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tests.recordings.documents import short_hash, tidy
from tests.recordings.pinned import Recording
from tests.recordings.surface import (
    POLICIES,
    LocalEngine,
    Run,
    ShoalError,
    compare,
    instance,
    price,
    simulate,
    simulate_shards,
)

ELIMINATION = {"gamma": 2.0, "n_batches": 5, "grid": "minimax", "approximation_ratio": 2.0}
OPTIONS: dict[str, Mapping[str, Any]] = {
    **{name: ELIMINATION for name in POLICIES if "elimination" in name},
    "explore-then-commit": {"exploration": 0.2},
}
REWARDS = ("bernoulli", "gaussian", "bounded", "deterministic")


def of_run(run: Run) -> dict[str, Any]:
    """Return a run as JSON can hold it, without the time that it took."""
    return {
        "curves": short_hash(run.curves.astype("<f8").tobytes()),
        "min_group_size": run.problem.min_group_size,
        "policy": run.policy,
        "regret": run.regret,
        "rounds": short_hash(run.rounds.astype("<i8").tobytes()),
        "shape": list(run.curves.shape),
        "smallest_group": run.smallest_group,
        "withheld": run.withheld,
    }


def _simulate(name: str, *, horizon: int = 500, **play: Any) -> dict[str, Any] | str:
    means = play.pop("means", None)
    if means is None:
        means = instance("uniform", 30, 4, rng=np.random.default_rng(5))
    options = {**OPTIONS.get(name, {}), **play.pop("options", {})}
    try:
        run = simulate(
            name, means, min_group_size=3, horizon=horizon, options=options, seed=11, **play
        )
    except ShoalError:
        return "refused"
    return of_run(run)


def _simulations() -> Recording:
    stack = np.stack(
        [instance("linear", 20, 3, rng=np.random.default_rng([5, run])) for run in range(3)]
    )
    found: Recording = {}
    for name in POLICIES:
        found[f"simulate {name}"] = _simulate(name)
        found[f"simulate {name}, shards"] = _simulate(name, means=stack, horizon=300)
        found[f"simulate {name}, participation"] = _simulate(
            name, participation=np.linspace(0.5, 1.0, 30), n_checkpoints=7
        )
        for rewards in REWARDS[1:]:
            found[f"simulate {name}, {rewards}"] = _simulate(name, rewards=rewards, horizon=200)
    large = instance("clustered", 400, 4, rng=np.random.default_rng(6))
    for rewards in REWARDS:
        found[f"simulate shoal, 400 users, {rewards}"] = _simulate(
            "shoal", means=large, rewards=rewards, horizon=50, participation=0.8
        )
    return found


def _compare(**setting: Any) -> dict[str, Any]:
    found = compare(engine=LocalEngine(n_workers=1), **setting)
    return {
        "config": tidy(dict(found.config)),
        "summary": tidy(found.summary().to_dicts()),
        "curves": short_hash(repr(found.curves().to_dicts()).encode()),
    }


def record() -> Recording:
    """Return every experiment's result."""
    engine = LocalEngine(n_workers=1)
    small = {"n_users": 24, "n_arms": 3, "min_group_size": 3, "horizon": 400, "n_runs": 3}
    found = _simulations()
    found["compare, all policies"] = _compare(
        instances=["uniform", "linear", "clustered"], policies=list(POLICIES), seed=2, **small
    )
    found["compare, untuned"] = _compare(
        policies=["elimination-lp", "pooled-elimination", "explore-then-commit", "shoal"],
        tuned=False, options={"shoal": {"drift": 1e-4}}, rewards="bounded", participation=0.8,
        **small,
    )  # fmt: skip
    found["compare, 25 runs"] = _compare(
        policies=["random", "ucb"], instances=["uniform"], **{**small, "n_runs": 25}
    )
    found["compare, own means"] = _compare(
        policies=["shoal", "random"], means=np.eye(12, 3), min_group_size=2, horizon=100, n_runs=2
    )
    for name in ("shoal", "elimination-euler", "thompson"):
        run = simulate_shards(
            name, n_users=900, n_arms=3, n_shards=3, min_group_size=5, horizon=40, seed=4,
            participation=0.9, options=OPTIONS.get(name), engine=engine,
        )  # fmt: skip
        found[f"simulate_shards {name}"] = of_run(run)
    drawn = price(
        n_users=300, n_arms=3, rate=0.2, horizon=60, min_group_sizes=[2, 5, 20], n_runs=3, seed=1,
        engine=engine,
    )  # fmt: skip
    own = price(
        means=instance("uniform", 80, 3, rng=np.random.default_rng(8)), horizon=80,
        min_group_sizes=[1, 4], n_runs=2, sample=40, policy="pooled-thompson", participation=0.8,
        engine=engine,
    )  # fmt: skip
    found["price, drawn"] = tidy(drawn.to_dict())
    found["price, own means"] = tidy(own.to_dict())
    return found
