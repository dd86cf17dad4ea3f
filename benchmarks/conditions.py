"""The flagship under real conditions: large populations, users who do not report, change.

Seeds are the regret benchmark's: nothing was tuned on them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.regret import SEED, Means, Row, interval
from benchmarks.report import page, table
from shoal.engines import LocalEngine, Tick
from shoal.environments import make_environment
from shoal.experiments import simulate
from shoal.experiments.statistics import mean_interval, ratio_interval
from shoal.instances import clustered, linear, uniform
from shoal.model import Problem
from shoal.model.merging import merge_short
from shoal.policies import make_policy
from shoal.policies.shoal.population.policy import PopulationPolicy


def uniform_200(rng: np.random.Generator) -> Means:
    return uniform(200, 5, rng=rng)


def clicks(rng: np.random.Generator) -> Means:
    return clustered(5_000, 10, rng=rng)


def tastes(rng: np.random.Generator) -> Means:
    return linear(2_000, 10, rng=rng, dimension=3)


TOLD = "shoal, told the population"

REPORTING = [
    Row("uniform N=200 K=5 C=4, T=20,000", uniform_200, 4, 20, "", horizon=20_000),
    Row("the same, participation 0.7", uniform_200, 4, 20, "1.6 times", horizon=20_000,
        participation=0.7),
]  # fmt: skip

POPULATIONS = [
    Row("clustered clicks, N=5,000 K=10 C=20 T=500", clicks, 20, 10, "0.42", horizon=500,
        policies=("shoal", TOLD, "pooled-thompson", "best-arm", "thompson")),
    Row("clustered clicks, N=5,000 K=10 C=50 T=500", clicks, 50, 10, "", horizon=500,
        policies=("shoal", TOLD, "pooled-thompson", "best-arm", "thompson")),
    Row("linear dimension 3, N=2,000 K=10 C=10 T=500", tastes, 10, 10, "0.38", horizon=500,
        policies=("shoal", TOLD, "pooled-thompson", "best-arm", "thompson")),
    Row("clustered clicks, participation 0.7", clicks, 20, 10, "", horizon=500,
        policies=("shoal", "pooled-thompson", "best-arm"), participation=0.7),
]  # fmt: skip

DRIFTS = [
    0.0,
    2e-6,
    8e-6,
    3e-5,
]  # one redraw of uniform means in 10,000 rounds is 1/12/10,000
SETTLED = 200  # the round from which a population's learner must not be worse than the best arm


def main() -> None:
    found = dict(LocalEngine().run(part, range(4)))
    full, some = found[0], found[1]
    assert not isinstance(full, str)
    assert not isinstance(some, str)
    lines = [
        (row.name, interval(totals), row.target, len(totals))
        for row, totals in zip(REPORTING, (full, some), strict=True)
    ]
    page(
        "conditions",
        "Real conditions",
        "python -m benchmarks conditions",
        "## Users who do not report",
        table(["instances", "regret of `shoal`", "target", "runs"], lines),
        "Groups that are short of reporters are merged inside their arm before release, as in the "
        f"service. Participation 0.7 costs {_ratio(some, full)} times what full participation "
        "costs, on the same instances. To compare: what is learnt goes with the number of totals, "
        f"and {_most_totals(4, 0.7)}.",
        "## Populations: share of random play's regret",
        str(found[2]),
        "## Drift",
        str(found[3]),
    )


def _ratio(some: Means, full: Means) -> str:
    """Return the ratio of two sums over the same instances, with its 95 % interval."""
    found = ratio_interval(some, full)
    return f"{found.mean:.2f} ± {found.half:.2f}"


def _most_totals(least: int, share: float) -> str:
    """Say which size of groups makes the most totals, with this share of members reporting."""
    rng = np.random.default_rng(SEED)
    found = {}
    for size in range(least, 3 * least):
        reporters = rng.binomial(size, share, 40_000)
        into = merge_short(reporters, np.arange(40_000) // 8, least)  # crowds of eight groups
        found[size] = len(np.unique(into[into >= 0])) / (size * 40_000)
    best = max(found, key=lambda size: found[size])
    longer = 1 / least / found[best]
    return (
        f"where {share:.0%} report, groups of {best} make the most, {found[best]:.3f} a member "
        f"once merged, where full ones make {1 / least:.3f}; so a lesson takes {longer:.2f} times "
        "as long"
    )


def part(number: int, tick: Tick) -> Means | str:
    """Return one part of the page: the regrets of a row, or text."""
    if number < len(REPORTING):
        return _reporting(REPORTING[number])
    texts: list[Callable[[], str]] = [_populations, _drift]
    return texts[number - len(REPORTING)]()


def _reporting(row: Row) -> Means:
    rng = np.random.default_rng([SEED, 200])
    means = np.stack([row.make(rng) for _ in range(row.n_runs)])
    run = simulate(
        "shoal", means, min_group_size=row.min_group_size, horizon=row.horizon,
        participation=row.participation, seed=SEED,
    )  # fmt: skip
    totals: Means = run.curves[:, -1]
    return totals


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
            last = mean_interval(found[:, -1])
            target = row.target if policy == "shoal" else ""
            rows.append((row.name, policy, f"{last.mean:.3f} ± {last.half:.3f}", target))
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
        "draws. `thompson` sees every reward. *Told the population*, the learner knows what it "
        "otherwise has to find out about all users together, the mean and the covariance of their "
        "means over arms; what is left is to find out who is who.\n\n"
        f"The largest excess of `shoal`'s share over the best single arm's, from round {SETTLED} "
        "on (target: at most 0.05), of the mean over runs and of the worst run:\n\n"
        + table(["instances", "share of", "mean", "at", "worst run"], settled)
    )


def _shares(row: Row, policy: str, means: Means, seed: int) -> Means:
    """Return the regret up to each round as a share of random play's, (horizon,)."""
    maker = partial(Told, means=means) if policy == TOLD else policy
    found = simulate(
        maker, means, min_group_size=row.min_group_size, horizon=row.horizon, seed=seed,
        participation=row.participation, n_checkpoints=row.horizon,
    )  # fmt: skip
    gaps = means.max(axis=1, keepdims=True) - means
    shares: Means = found.cumulative_regret / (found.rounds * gaps.mean(axis=1).sum())
    return shares


class Told(PopulationPolicy):
    """The flagship for large populations, told before the first round what all users share."""

    def __init__(self, problem: Problem, *, rng: np.random.Generator, means: Means) -> None:
        super().__init__(problem, rng=rng)
        sizes, directions = np.linalg.eigh(np.cov(means.T))
        for shard in self.shards:
            belief = shard.belief
            belief.means[:] = means.mean(axis=0)
            belief.mean_variances[:], belief.hidden[:] = 1e-9, 1e-7
            belief.factors = np.ascontiguousarray(directions * np.sqrt(np.maximum(sizes, 0.0)))
            shard.panel_share, shard.next_refresh = 0.0, 10**9


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
    # One each: what the learner draws must not change the instances that it meets.
    learner, world, luck = (np.random.default_rng([SEED, 7, seed, use]) for use in range(3))
    problem = Problem(50, 5, 4, horizon=20_000)
    policy = make_policy("shoal", problem, rng=learner, options={"drift": drift})
    regrets = [0.0, 0.0]
    for segment in range(n_segments):
        means = uniform(50, 5, rng=world)
        gaps = means.max(axis=1, keepdims=True) - means
        environment = make_environment("bernoulli", problem, means, rng=luck)
        while policy.rounds < 20_000 * (segment + 1) // n_segments:  # a plan may end up to 20 later
            plan = policy.ask()
            policy.tell(environment.play(plan))
            regrets[segment] += plan.repeats * float(gaps[np.arange(50), plan.arms].sum())
    return regrets[0], regrets[1]
