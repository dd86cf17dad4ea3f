"""Users who agree but for a few: whether the few are found.

Sizes, shares and gaps are drawn; seeds are this benchmark's own. One arm suits the crowd, all
other means are lower, but each outsider has a niche: an arm that is better by ``gap``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from benchmarks.regret import SEED, Means
from benchmarks.report import page, table
from shoal.engines import LocalEngine, Tick
from shoal.experiments import simulate

DRAWS = 20  # of each family
POLICIES = ("shoal", "pooled-thompson", "thompson")
FAILED = 0.9  # of the regret of never finding anyone


class Family(NamedTuple):
    """Ranges that instances are drawn from."""

    users: tuple[int, int]
    arms: tuple[int, int]
    group_sizes: tuple[int, int]
    horizons: tuple[int, int]
    rate: float = 0.7  # of the crowd's arm


FAMILIES = {
    "60 to 240 users": Family((60, 240), (5, 8), (5, 10), (20_000, 40_000)),
    "600 to 5,000 users": Family((600, 5_000), (5, 8), (10, 20), (2_000, 10_000)),
    "600 to 5,000 users, rates of 10 %": Family(
        (600, 5_000), (5, 8), (10, 20), (2_000, 10_000), 0.1
    ),
}


class Instance(NamedTuple):
    """One draw."""

    means: Means
    min_group_size: int
    horizon: int
    gap: float
    share: float
    n_niches: int

    def __str__(self) -> str:
        n_users, n_arms = self.means.shape
        return (
            f"N={n_users:,} K={n_arms} C={self.min_group_size} T={self.horizon:,}, "
            f"{self.share:.0%} with {self.gap:.2f} more in {self.n_niches}"
        )


class Found(NamedTuple):
    """What was measured on one instance."""

    regrets: Means  # (n_policies,)
    late: Means  # (n_policies,) of the last third of the rounds
    never: float  # regret of never finding anyone


def main() -> None:
    tasks = [(name, draw) for name in FAMILIES for draw in range(DRAWS)]
    found: dict[tuple[str, int], Found] = {}
    for index, result in LocalEngine().run(measure, tasks):
        found[tasks[index]] = result
        print(f"done: {tasks[index]}: {(result.regrets / result.never).round(3)}", flush=True)
    page(
        "minorities",
        "Minorities",
        "python -m benchmarks minorities",
        "One arm pays 0.7 (or 0.1) to everyone and all others less, but 5 to 30 % of the users, "
        "the outsiders, have one or two niches: arms that pay them 0.1 to 0.2 more. Everything is "
        f"drawn, {DRAWS} instances a family, one run each. `thompson` sees every reward; *never* "
        "is what it costs to give everyone the crowd's arm.",
        table(
            ["instances", "policy", "of `thompson`'s regret", "at worst", "where gap ≥ 0.15",
             "of never", "at worst", "runs over 0.9", "last third"],
            [_line(name, policy, found) for name in FAMILIES for policy in range(2)],
        ),
        "Ratios of regrets: geometric means, and the worst run. The last column is the regret of "
        "the last third of the rounds as a share of never finding anyone in them.",
        "Single runs of `shoal`:",
        table(
            ["instance", "regret", "`thompson`", "never"],
            [
                (str(instance(*task)), float(r.regrets[0]), float(r.regrets[-1]), r.never)
                for task, r in found.items()
            ],
        ),
    )  # fmt: skip


def _line(name: str, policy: int, found: dict[tuple[str, int], Found]) -> tuple[str, ...]:
    results = [found[name, draw] for draw in range(DRAWS)]
    wide = [instance(name, draw).gap >= 0.15 for draw in range(DRAWS)]
    ratios = np.array([r.regrets[policy] / r.regrets[-1] for r in results])
    shares = np.array([r.regrets[policy] / r.never for r in results])
    late = np.mean([3 * r.late[policy] / r.never for r in results])
    return (
        name, f"`{POLICIES[policy]}`", f"{_mean(ratios):.2f}", f"{ratios.max():.2f}",
        f"{_mean(ratios[wide]):.2f}", f"{_mean(shares):.2f}", f"{shares.max():.2f}",
        f"{(shares > FAILED).sum()} of {DRAWS}", f"{late:.3f}",
    )  # fmt: skip


def _mean(ratios: Means) -> float:
    return float(np.exp(np.log(ratios).mean()))


def instance(name: str, draw: int, *, seed: int = SEED) -> Instance:
    """Return a draw of a family, always the same one."""
    family = FAMILIES[name]
    rng = np.random.default_rng([seed, 601, list(FAMILIES).index(name), draw])
    n_users, horizon = (
        int(np.exp(rng.uniform(*np.log(r)))) for r in (family.users, family.horizons)
    )
    n_arms, size = (int(rng.integers(*r, endpoint=True)) for r in (family.arms, family.group_sizes))
    share, gap = rng.uniform(0.05, 0.3), rng.uniform(0.1, 0.2)
    n_niches = int(rng.integers(1, 3))
    means = draw_means((n_users, n_arms), share, gap, n_niches, family.rate, rng)
    return Instance(means, size, horizon, float(gap), float(share), n_niches)


def draw_means(
    shape: tuple[int, int],
    share: float,
    gap: float,
    n_niches: int,
    rate: float,
    rng: np.random.Generator,
) -> Means:
    """Return means of which the first arm's suit everyone but a ``share`` of outsiders."""
    means: Means = rate * rng.uniform(0.15, 0.85, shape)
    means[:, 0] = rate
    outsiders = rng.permutation(len(means))[: max(n_niches, round(share * len(means)))]
    means[outsiders, 1 + np.arange(len(outsiders)) % n_niches] = rate + gap
    return means


def measure(task: tuple[str, int], tick: Tick) -> Found:
    """Return each policy's regret on one instance."""
    drawn = instance(*task)
    runs = [
        simulate(
            policy, drawn.means, min_group_size=drawn.min_group_size, horizon=drawn.horizon,
            seed=SEED + task[1], tuned=False, n_checkpoints=3,
        )
        for policy in POLICIES
    ]  # fmt: skip
    curves = np.array([run.cumulative_regret for run in runs])
    never = drawn.horizon * float((drawn.means.max(axis=1) - drawn.means[:, 0]).sum())
    return Found(curves[:, -1], curves[:, -1] - curves[:, -2], never)
