"""What it costs that the aggregator draws the groups: regret of ``shoal`` in both ways.

The rows of ``regret``, at a shorter horizon, and one with thick crowds. The policy, the instances
and the draws of rewards' seeds are the same in all columns of a row; seeds are this benchmark's
own. Rewards are Bernoulli, and everyone reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.regret import (
    Means,
    linear_50,
    theorem_4,
    uniform_6,
    uniform_20,
    uniform_50,
    uniform_50_20,
)
from benchmarks.report import page, table
from shoal.arrays import IntArray
from shoal.engines import LocalEngine, Tick
from shoal.environments import make_environment
from shoal.experiments.statistics import mean_interval
from shoal.instances import uniform
from shoal.policies import make_policy
from shoal.service.aggregator.draws import WINDOW, draw
from shoal.service.campaign import Campaign

SEED = 443_556_667
HORIZON = 400
N_RUNS = 4


def uniform_200(rng: np.random.Generator) -> Means:
    return uniform(200, 4, rng=rng)


ROWS = {
    "uniform N=200 K=4 C=5 (thick)": (uniform_200, 5),
    "uniform N=50 K=5 C=4": (uniform_50, 4),
    "linear N=50 K=5 C=4": (linear_50, 4),
    "uniform N=20 K=10 C=5": (uniform_20, 5),
    "uniform N=50 K=20 C=4": (uniform_50_20, 4),
    "uniform N=6 K=3 C=5": (uniform_6, 5),
    "Theorem 4, gap 0.2": (theorem_4, 2),
}


@dataclass(frozen=True)
class Way:
    """A column of the table: what the campaign says of its groups, None for version 0.1's."""

    name: str
    rules: dict[str, Any] | None


WAYS = [
    Way("learner's groups", None),
    Way("aggregator's", {}),
    Way("aggregator's, no limit", {"near_repeats": 1000}),
]


def main() -> None:
    cells = [(row, way) for row in ROWS for way in WAYS]
    found: dict[tuple[str, str], Means] = {}
    for index, regrets in LocalEngine(n_workers=1).run(run_cell, range(len(cells))):
        row, way = cells[index]
        found[row, way.name] = regrets
        print(f"done: {way.name} on {row}: {regrets.mean():,.0f}", flush=True)
    lines = []
    for row in ROWS:
        base = found[row, WAYS[0].name]
        ratios = [_ratio(found[row, way.name], base) for way in WAYS[1:]]
        lines.append((row, f"{base.mean():,.0f}", *ratios))
    columns = ["instances", "regret, learner's groups", *(f"{way.name}" for way in WAYS[1:])]
    page(
        "grouping",
        "What the aggregator's grouping costs",
        "python -m benchmarks grouping",
        f"Total pseudo-regret of `shoal` at T = {HORIZON:,}, {N_RUNS} runs a row on the same "
        "instances: with the groups and the repeated plans that the learner chooses, and, as a "
        "ratio to that with the 95 % interval of the runs' ratios, with groups that the aggregator "
        'draws and everyone in one (`grouping = "aggregator"`). The limit is `near_repeats`, 10 '
        "by default. A thick crowd has many groups; where N is small, an arm has one or none.",
        "Few runs at a short horizon: the intervals decide differences of a fifth at best. Where "
        "few users play an arm, as on Theorem 4's, the learner's choice of company is most of its "
        'method, and random company costs a lot: say `"grouping": "learner"` there.',
        table(columns, lines),
    )


def _ratio(regrets: Means, base: Means) -> str:
    found = mean_interval(regrets / base)
    return f"{found.mean:.2f} ± {found.half:.2f}"


def run_cell(index: int, tick: Tick) -> Means:
    """Return the regret of each run of one row in one way."""
    row, way = [(row, way) for row in ROWS for way in WAYS][index]
    make, least = ROWS[row]
    regrets = []
    for run in range(N_RUNS):
        seeds = [SEED, list(ROWS).index(row), run]
        means = make(np.random.default_rng(seeds))
        regrets.append(play(means, least, way, seeds))
        tick(1)
    return np.array(regrets)


def play(means: Means, least: int, way: Way, seeds: list[int]) -> float:
    """Return the regret of one run."""
    n_users, n_arms = means.shape
    campaign = Campaign(
        arms=[f"arm {arm}" for arm in range(n_arms)], min_group_size=least, seats=n_users,
        horizon=HORIZON, **(way.rules or {}),
    )  # fmt: skip
    campaign, problem = campaign.resolved(), campaign.problem()
    policy = make_policy("shoal", problem, rng=np.random.default_rng([*seeds, 1]))
    rewards = np.random.default_rng([*seeds, 2])
    environment = make_environment("bernoulli", problem, means, rng=rewards)
    best, regret = means.max(axis=1).sum(), 0.0
    earlier: list[IntArray] = []
    while policy.rounds < HORIZON:
        plan = policy.ask()
        if way.rules is not None:
            seed = f"{seeds} {policy.rounds}".encode()
            groups = draw(plan.arms, plan.groups, campaign, seed=seed, earlier=earlier)
            policy.regroup(groups)
            plan = policy.ask()
            earlier = [groups, *earlier[: WINDOW - 1]]
        regret += plan.repeats * (best - means[np.arange(n_users), plan.arms].sum())
        policy.tell(environment.play(plan))
    return float(regret)
