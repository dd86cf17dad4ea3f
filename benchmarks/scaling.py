"""Regret against C, N, K and T, the flagship beside the paper's; what it believes beside the truth.

One quantity is varied, the others stay at N = 50, K = 5, C = 4 and T = 3,000. Options are the
shipped ones, tuned at T = 100,000.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from benchmarks.report import IMAGES, page, table
from shoal.engines import LocalEngine
from shoal.environments import make_environment
from shoal.experiments import compare
from shoal.figures import estimates_figure, save, scaling_figure
from shoal.instances import uniform
from shoal.model import Problem
from shoal.policies.shoal.joint.policy import JointPolicy

SEED = 31_415_926
N_RUNS = 5
POLICIES = ["shoal", "ucb", "elimination-lp", "elimination-greedy", "explore-then-commit"]
USUAL: dict[str, Any] = {"n_users": 50, "n_arms": 5, "min_group_size": 4, "horizon": 3_000}
VARIED = {
    "least group size C": ("min_group_size", [2, 4, 8, 16]),
    "users N": ("n_users", [10, 20, 50, 100]),
    "arms K": ("n_arms", [2, 5, 10, 20]),
    "rounds T": ("horizon", [300, 1_000, 3_000, 10_000]),
}
LOOKS = (30, 300, 3_000)


def main() -> None:
    points = _points()
    save(scaling_figure(points, title="Uniform instances: regret per user"), IMAGES / "scaling")
    errors = _estimates()
    page(
        "scaling",
        "Regret against C, N, K and T",
        "make bench",
        f"Uniform instances, {N_RUNS} runs, mean and 95 % interval of the total regret per user. "
        "One quantity is varied, the others are N = 50, K = 5, C = 4, T = 3,000. UCB sees every "
        "reward, whatever C. Options of the paper's policies were tuned at T = 100,000.",
        "![Regret per user against C, N, K and T](../images/scaling.png)",
        table(["varied", "value", *POLICIES], _rows(points)),
        "## What it believes",
        "Estimated against true means of `shoal`, one run of N = 50, K = 5, C = 4. Each point is a "
        "user on an arm. It learns well what matters: arms that are worth playing. Where an arm is "
        "clearly worse, it stops asking how much. "
        + " ".join(
            f"After {rounds:,} rounds the root mean squared error is {best:.3f} on the users' best "
            f"arms and {others:.3f} on the others."
            for rounds, (best, others) in errors.items()
        ),
        "![Estimated against true means after 30, 300 and 3,000 rounds](../images/estimates.png)",
    )


def _points() -> pl.DataFrame:
    rows = []
    for name, (parameter, values) in VARIED.items():
        for value in values:
            settings = USUAL | {parameter: value}
            found = compare(
                instances=["uniform"], policies=POLICIES, n_runs=N_RUNS, seed=SEED,
                engine=LocalEngine(n_workers=1), **settings,
            ).summary()  # fmt: skip
            users = settings["n_users"]
            rows.append(
                found.select(
                    "policy", pl.lit(name).alias("quantity"), pl.lit(value).alias("value"),
                    pl.col("mean", "low", "high") / users,
                )
            )  # fmt: skip
            print(f"done: {parameter} {value}", flush=True)
    return pl.concat(rows)


def _rows(points: pl.DataFrame) -> list[tuple[object, ...]]:
    return [
        (str(name), value, *(_interval(part.filter(policy=policy)) for policy in POLICIES))
        for (name, value), part in points.group_by("quantity", "value", maintain_order=True)
    ]


def _interval(one: pl.DataFrame) -> str:
    mean, high = one["mean"].item(), one["high"].item()
    return f"{mean:,.0f} ± {high - mean:,.0f}"


def _estimates() -> dict[int, tuple[float, float]]:
    """Draw the estimates; return the error on best arms and others after some rounds."""
    rng = np.random.default_rng(SEED)
    means = uniform(50, 5, rng=rng)
    problem = Problem(50, 5, 4, horizon=LOOKS[-1])
    policy = JointPolicy(problem, rng=rng)
    environment = make_environment("bernoulli", problem, means, rng=rng)
    best = means == means.max(axis=1, keepdims=True)
    looks, errors = {}, {}
    while policy.rounds < LOOKS[-1]:
        policy.tell(environment.play(policy.ask()))
        if policy.rounds in LOOKS:
            found = policy.posterior.estimates().copy()
            looks[f"after {policy.rounds:,} rounds"] = found
            squares = (found - means) ** 2
            errors[policy.rounds] = (
                float(np.sqrt(squares[best].mean())),
                float(np.sqrt(squares[~best].mean())),
            )
    figure = estimates_figure(means, looks, title="shoal: estimated against true means")
    save(figure, IMAGES / "estimates")
    return errors
