"""The flagship on instances of every kind, beside what else there is.

Seeds are this benchmark's own: nothing was tuned on them. Total pseudo-regret, mean and 95 %
interval over runs; the reference columns are measured in the same run on the same instances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.report import page, table
from shoal.engines import LocalEngine, Tick
from shoal.environments import make_environment
from shoal.instances import clustered, linear, lower_bound, uniform
from shoal.model import Problem
from shoal.policies import make_policy
from shoal.simulation import simulate

SEED = 987_654_321
Means = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One line of the table: an instance, the policies to run on it, and the target."""

    name: str
    make: Callable[[np.random.Generator], Means]
    min_group_size: int
    n_runs: int
    target: str
    horizon: int = 100_000
    policies: Sequence[str] = ("shoal",)
    participation: float = 1.0


def uniform_50(rng: np.random.Generator) -> Means:
    return uniform(50, 5, rng=rng)


def linear_50(rng: np.random.Generator) -> Means:
    return linear(50, 5, rng=rng)


def uniform_20(rng: np.random.Generator) -> Means:
    return uniform(20, 10, rng=rng)


def uniform_50_20(rng: np.random.Generator) -> Means:
    return uniform(50, 20, rng=rng)


def uniform_6(rng: np.random.Generator) -> Means:
    return uniform(6, 3, rng=rng)


def uniform_200(rng: np.random.Generator) -> Means:
    return uniform(200, 5, rng=rng)


def clicks(rng: np.random.Generator) -> Means:
    return clustered(5_000, 10, rng=rng)


def tastes(rng: np.random.Generator) -> Means:
    return linear(2_000, 10, rng=rng, dimension=3)


def theorem_4(rng: np.random.Generator) -> Means:
    return lower_bound("no-clusters", rng=rng, gap=0.2)


def theorem_4_small(rng: np.random.Generator) -> Means:
    return lower_bound("no-clusters", rng=rng, horizon=100_000)


ROWS = [
    Row("uniform N=50 K=5 C=4", uniform_50, 4, 20, "7,000",
        policies=("shoal", "pooled-thompson", "pooled-elimination", "ucb")),
    Row("linear N=50 K=5 C=4", linear_50, 4, 20, "14,000",
        policies=("shoal", "pooled-thompson", "pooled-elimination", "ucb")),
    Row("uniform N=20 K=10 C=5", uniform_20, 5, 20, "25,000",
        policies=("shoal", "pooled-thompson", "explore-then-commit")),
    Row("uniform N=50 K=20 C=4", uniform_50_20, 4, 8, "30,000", policies=("shoal",)),
    Row("uniform N=6 K=3 C=5", uniform_6, 5, 60, "8,000",
        policies=("shoal", "pooled-thompson", "explore-then-commit")),
    Row("Theorem 4, gap 0.2", theorem_4, 2, 60, "600",
        policies=("shoal", "pooled-thompson", "explore-then-commit")),
    Row("Theorem 4, gap T^(-1/3)", theorem_4_small, 2, 200, "700",
        policies=("shoal", "pooled-thompson", "explore-then-commit")),
    Row("uniform N=200 K=5 C=4, T=20,000", uniform_200, 4, 8, "", horizon=20_000),
    Row("the same, participation 0.7", uniform_200, 4, 8, "1.6 times", horizon=20_000,
        participation=0.7),
]  # fmt: skip

POPULATIONS = [
    Row("clustered clicks, N=5,000 K=10 C=20 T=500", clicks, 20, 10, "0.42", horizon=500,
        policies=("shoal", "pooled-thompson", "best-arm", "thompson")),
    Row("linear dimension 3, N=2,000 K=10 C=10 T=500", tastes, 10, 10, "0.38", horizon=500,
        policies=("shoal", "pooled-thompson", "best-arm", "thompson")),
    Row("clustered clicks, participation 0.7", clicks, 20, 10, "", horizon=500,
        policies=("shoal", "pooled-thompson", "best-arm"), participation=0.7),
]  # fmt: skip

GROWTH = [1_000, 3_162, 10_000, 31_623, 100_000]
DRIFTS = [
    0.0,
    2e-6,
    8e-6,
    3e-5,
]  # one redraw of uniform means in 10,000 rounds is 1/12/10,000
SETTLED = 200  # the round from which a population's learner must not be worse than the best arm


def main(rows: Sequence[Row] = ROWS) -> None:
    cells = [(row, policy) for row in rows for policy in row.policies]
    found: dict[int, Means] = {}
    for index, totals in LocalEngine().run(run_cell, range(len(cells))):
        found[index] = totals
        row, policy = cells[index]
        print(f"done: {policy} on {row.name}: {totals.mean():,.0f}", flush=True)
    lines = [
        (row.name, policy, _interval(found[index]), row.target if policy == "shoal" else "",
         len(found[index]))
        for index, (row, policy) in enumerate(cells)
    ]  # fmt: skip
    page(
        "regret",
        "Regret of the flagship",
        "make bench",
        "Total pseudo-regret of all users, mean and 95 % interval, T = 100,000. All runs of a row "
        "meet the same instances, drawn with seeds that no tuning has seen. "
        "`shoal` and `pooled-thompson` have no option set. `pooled-elimination` has gamma = 2, as "
        "`shoal tune` chose. Explore-then-commit has a constant set by hand for the row (0.25 at "
        "N=20, 0.1 elsewhere); it was not tuned, so a better one may exist.",
        table(["instances", "policy", "regret", "target", "runs"], lines),
        "Where not everyone reports, groups that are short of reporters are merged inside their "
        f"arm before release, as in the service. Participation 0.7 costs {_ratio(rows, found)} "
        "times what full participation costs.",
        BOUND,
        _growth(),
        "## Populations: share of random play's regret",
        _populations(),
        "## Drift",
        _drift(),
    )


def _ratio(rows: Sequence[Row], found: dict[int, Means]) -> str:
    """Return the regret with participation 0.7 over that of full participation."""
    cells = [row for row in rows for _ in row.policies]
    by_participation = {
        row.participation: found[index].mean()
        for index, row in enumerate(cells)
        if row.make is uniform_200
    }
    return f"{by_participation[0.7] / by_participation[1.0]:.2f}"


def _populations() -> str:
    rows, settled = [], []
    for row in POPULATIONS:
        number = [other.make for other in POPULATIONS].index(row.make)
        rng = np.random.default_rng([SEED, 100 + number])
        worlds = [row.make(rng) for _ in range(row.n_runs)]
        shares = {policy: np.array([_shares(row, policy, world, SEED + run)
                                    for run, world in enumerate(worlds)])
                  for policy in row.policies}  # fmt: skip
        for policy, found in shares.items():
            last = found[:, -1]
            half = stats.t.ppf(0.975, len(last) - 1) * stats.sem(last)
            target = row.target if policy == "shoal" else ""
            rows.append((row.name, policy, f"{last.mean():.3f} ± {half:.3f}", target))
        rounds = np.arange(1, row.horizon + 1)
        for name, curves in (
            ("all rounds up to it", {p: shares[p] for p in ("shoal", "best-arm")}),
            ("that round alone", {p: np.diff(shares[p] * rounds, prepend=0.0)
                                  for p in ("shoal", "best-arm")}),
        ):  # fmt: skip
            above = (curves["shoal"] - curves["best-arm"])[:, SETTLED - 1 :]
            mean = above.mean(axis=0)
            where = f"round {SETTLED + int(mean.argmax())}"
            settled.append((row.name, name, f"{mean.max():+.3f}", where, f"{above.max():+.3f}"))
    return (
        table(["instances", "policy", "share", "target"], rows)
        + "\n\nThe target of 0.42 was set on a draw whose best single arm has 0.53. Draws of the "
        "same kind differ much, and most are harder: compare with the best single arm of the same "
        "draws. `thompson` sees every reward.\n\n"
        f"The largest excess of `shoal`'s share over the best single arm's, from round {SETTLED} "
        "on (target: at most 0.05), of the mean over runs and of the worst run:\n\n"
        + table(["instances", "share of", "mean", "at", "worst run"], settled)
    )


def _shares(row: Row, policy: str, means: Means, seed: int) -> Means:
    """Return the regret up to each round as a share of random play's, (horizon,)."""
    found = simulate(
        policy, means, min_group_size=row.min_group_size, horizon=row.horizon, seed=seed,
        participation=row.participation, n_checkpoints=row.horizon,
    )  # fmt: skip
    gaps = means.max(axis=1, keepdims=True) - means
    shares: Means = found.cumulative_regret / (found.rounds * gaps.mean(axis=1).sum())
    return shares


def _growth() -> str:
    regrets = []
    for horizon in GROWTH:
        rng = np.random.default_rng([SEED, horizon])
        means = np.stack([lower_bound("no-clusters", rng=rng, horizon=horizon) for _ in range(200)])
        run = simulate("shoal", means, min_group_size=2, horizon=horizon, seed=SEED)
        regrets.append(run.regret / 200)
    exponent = np.polyfit(np.log(GROWTH), np.log(regrets), 1)[0]
    listed = ", ".join(f"{r:,.0f}" for r in regrets)
    return (
        f"Measured growth of `shoal`, gap T^(-1/3), 200 runs each at T = "
        f"{', '.join(f'{t:,}' for t in GROWTH)}: {listed}; fitted exponent {exponent:.2f}."
    )


def _drift() -> str:
    """Redraw all means at half time; uniform N=50 K=5 C=4, T = 20,000."""
    rows = []
    start = 0.0
    for drift in DRIFTS:
        changing = [_segments(seed, drift, n_segments=2) for seed in range(5)]
        fresh = float(np.mean([first for first, _ in changing]))
        after = float(np.mean([second for _, second in changing]))
        steady = float(np.mean([_segments(seed, drift, n_segments=1)[0] for seed in range(5)]))
        start = start or fresh
        rows.append((f"{drift:g}", fresh, after, f"{after / start:.1f}", steady))
    return (
        "Uniform N=50 K=5 C=4: all means are redrawn after 10,000 of 20,000 rounds; 5 runs. A "
        "fresh start is the first segment without the option. The last column is what the option "
        "costs where nothing drifts.\n\n"
        + table(
            ["drift", "first 10,000 rounds", "10,000 rounds after the change",
             "times a fresh start (target 4)", "20,000 rounds without a change"],
            rows,
        )
    )  # fmt: skip


def _segments(seed: int, drift: float, *, n_segments: int) -> tuple[float, float]:
    """Return the regret of each of two segments; with one segment, all of it and 0."""
    rng = np.random.default_rng([SEED, 7, seed])
    problem = Problem(50, 5, 4, horizon=20_000)
    policy = make_policy("shoal", problem, rng=rng, options={"drift": drift})
    regrets = [0.0, 0.0]
    for segment in range(n_segments):
        means = uniform(50, 5, rng=rng)
        gaps = means.max(axis=1, keepdims=True) - means
        environment = make_environment("bernoulli", problem, means, rng=rng)
        for _ in range(20_000 // n_segments):
            plan = policy.ask()
            policy.tell(environment.play(plan))
            regrets[segment] += float(gaps[np.arange(50), plan.arms].sum())
    return regrets[0], regrets[1]


BOUND = """\
## Theorem 4 with gap T^(-1/3): what is possible at all

The target of 700 can't be met by any learner, in expectation over the family's two members. A round
that tells anything about which member it is costs at least 1 (user 1 must leave its arm) and shows
one draw of Bern(1/2 ± ε), ε = T^(-1/3) = 0.0215. Being wrong for good costs 4εT = 8,618. Even a
learner who knows all but the member faces a sequential test with cost 1 per draw; Wald's formula
for its risk, (1-2a)·ln((1-a)/a)/KL + 8,618·a with KL = 8ε², is least at an error probability of
a = 0.038: 1,131."""


def run_cell(index: int, tick: Tick) -> Means:
    """Return the total regret of each run of one row and policy."""
    row, policy = [(row, policy) for row in ROWS for policy in row.policies][index]
    # Rows of the same maker meet the same instances.
    rng = np.random.default_rng([SEED, [other.make for other in ROWS].index(row.make)])
    means = np.stack([row.make(rng) for _ in range(row.n_runs)])
    options: dict[str, Any] = TUNED.get((row.name, policy), {})
    run = simulate(
        policy,
        means,
        min_group_size=row.min_group_size,
        horizon=row.horizon,
        participation=row.participation,
        seed=SEED,
        options=options,
        progress=tick,
    )
    totals: Means = run.curves[:, -1]
    return totals


# Baselines only. Explore-then-commit's constants were set by hand, not searched for.
TUNED: dict[tuple[str, str], dict[str, Any]] = {
    ("uniform N=50 K=5 C=4", "pooled-elimination"): {"gamma": 2.0},
    ("linear N=50 K=5 C=4", "pooled-elimination"): {"gamma": 2.0},
    ("uniform N=20 K=10 C=5", "explore-then-commit"): {"exploration": 0.25},
    ("uniform N=6 K=3 C=5", "explore-then-commit"): {"exploration": 0.1},
    ("Theorem 4, gap 0.2", "explore-then-commit"): {"exploration": 0.1},
    ("Theorem 4, gap T^(-1/3)", "explore-then-commit"): {"exploration": 0.1},
}


def _interval(totals: Means) -> str:
    half = stats.t.ppf(0.975, len(totals) - 1) * stats.sem(totals)
    return f"{totals.mean():,.0f} ± {half:,.0f}"
