"""The flagship on instances that nobody chose: kinds, sizes and horizons are drawn.

Seeds are this benchmark's own: nothing was tuned on them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.regret import SEED, Means
from benchmarks.report import page, table
from shoal.engines import LocalEngine, Tick
from shoal.experiments import simulate
from shoal.instances import clustered, linear, uniform

DRAWS = 25  # of each kind
POLICIES = (
    "shoal", "pooled-thompson", "pooled-elimination", "explore-then-commit", "best-arm", "thompson"
)  # fmt: skip
RIVALS = POLICIES[1:4]  # best-arm is told what is best, thompson sees every reward
USERS = (6, 2_500)
HORIZONS = (100, 30_000)
MOST = 3_000_000  # user-rounds
LARGEST_GROUP = 60
FEW = 1.05  # times as much regret is as good as equal

Rng = np.random.Generator
Shape = tuple[int, int]


def clicks(shape: Shape, rng: Rng) -> Means:
    return clustered(*shape, rng=rng, rate=_between(0.02, 0.4, rng))


def one_each(shape: Shape, rng: Rng) -> Means:
    means = np.full(shape, 0.1)
    means[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = 0.5
    return means


def alike(shape: Shape, rng: Rng) -> Means:
    return np.clip(0.5 + 0.05 * rng.standard_normal(shape), 0, 1)


def agreed(shape: Shape, rng: Rng) -> Means:
    return np.clip(rng.random(shape[1]) + 0.05 * rng.standard_normal(shape), 0, 1)


def outsiders(shape: Shape, rng: Rng) -> Means:
    arms = rng.uniform(0.2, 0.8, shape[1])
    means = np.tile(arms, (shape[0], 1))
    for user in rng.permutation(shape[0])[: max(1, shape[0] // 10)]:
        means[user] = rng.permutation(arms)
    return means


def yes_or_no(shape: Shape, rng: Rng) -> Means:
    return rng.choice([0.1, 0.9], size=shape)


KINDS: dict[str, Callable[[Shape, Rng], Means]] = {
    "uniform": lambda shape, rng: uniform(*shape, rng=rng),
    "linear": lambda shape, rng: linear(*shape, rng=rng),
    "clustered clicks of 2 to 40 %": clicks,
    "0.1, but 0.5 on one arm": one_each,
    "0.5 ± 0.05": alike,
    "arms uniform, users ± 0.05": agreed,
    "all agree but every tenth": outsiders,
    "0.1 or 0.9": yes_or_no,
}


class Instance(NamedTuple):
    """One draw."""

    means: Means
    min_group_size: int
    horizon: int

    def __str__(self) -> str:
        n_users, n_arms = self.means.shape
        return f"N={n_users:,} K={n_arms} C={self.min_group_size} T={self.horizon:,}"


def main() -> None:
    tasks = [(kind, draw) for kind in KINDS for draw in range(DRAWS)]
    found = {}
    for index, shares in LocalEngine().run(measure, tasks):
        found[tasks[index]] = shares
        print(f"done: {tasks[index]}: {shares.round(3)}", flush=True)
    lines = []
    for kind in KINDS:
        shares = np.array([found[kind, draw] for draw in range(DRAWS)])
        ratios = shares[:, 0] / shares[:, 1:4].min(axis=1)
        means = (f"{share:.3f}" for share in shares.mean(axis=0))
        seen = shares[:, 0] / shares[:, -1]  # against who sees every reward
        lines.append(
            (kind, *means, f"{(ratios <= FEW).sum()} of {DRAWS}", f"{ratios.max():.2f}",
             f"{np.exp(np.log(seen).mean()):.2f}", f"{seen.max():.2f}")
        )  # fmt: skip
    page(
        "survey",
        "A survey",
        "python -m benchmarks survey",
        f"Of each kind of means, {DRAWS} instances: {USERS[0]} to {USERS[1]:,} users, 2 to 15 "
        f"arms, C from 1 to half of the users or {LARGEST_GROUP}, {HORIZONS[0]} to "
        f"{HORIZONS[1]:,} rounds but at most {MOST:,} user-rounds; all drawn, evenly on a "
        "logarithmic scale but for the arms. One "
        "run each. The mean over instances of the regret as a share of random play's; `best-arm` "
        "is told which single arm is best for all, and `thompson` sees every reward. No policy "
        "has an option set.",
        table(
            [
                "means",
                *(f"`{p}`" for p in POLICIES),
                "`shoal` is best",
                "at worst",
                "of `thompson`",
                "at worst",
            ],
            lines,
        ),
        "`shoal` is counted best where no other anonymous learner has less regret by more than "
        f"{FEW - 1:.0%}; beside it is the largest ratio of its regret to that of the best of "
        "them. The last two columns are its ratio to `thompson`'s: geometric mean, and largest.",
        _against_thompson(found),
        "Where it is not:",
        _losses(found),
    )


def _against_thompson(found: dict[tuple[str, int], Means]) -> str:
    ratios = np.array([shares[0] / shares[-1] for shares in found.values()])
    sizes = np.array([instance(*task).min_group_size for task in found])
    best = np.mean([shares[0] <= FEW * shares[1:4].min() for shares in found.values()])
    return (
        f"Over all {len(found)} instances: best of the anonymous learners in {best:.0%}; "
        f"{np.exp(np.log(ratios).mean()):.2f} times `thompson`'s regret by the geometric mean, "
        f"{ratios.max():.1f} at worst, and more than C times in {(ratios > sizes).sum()}."
    )


def _losses(found: dict[tuple[str, int], Means]) -> str:
    lines = [
        (kind, str(instance(kind, draw)), f"{shares[0]:.3f}", RIVALS[shares[1:4].argmin()],
         f"{shares[1:4].min():.3f}")
        for (kind, draw), shares in sorted(found.items())
        if shares[0] > FEW * shares[1:4].min()
    ]  # fmt: skip
    return table(["means", "instance", "`shoal`", "best", "share"], lines)


def instance(kind: str, draw: int) -> Instance:
    """Return a draw of a kind, always the same one."""
    rng = np.random.default_rng([SEED, 501, list(KINDS).index(kind), draw])
    n_users = int(_between(*USERS, rng))
    n_arms = int(rng.integers(2, 16))
    size = int(_between(1, max(2, min(n_users / 2, LARGEST_GROUP)), rng))
    horizon = int(_between(HORIZONS[0], min(HORIZONS[1], MOST / n_users), rng))
    return Instance(KINDS[kind]((n_users, n_arms), rng), size, horizon)


def measure(task: tuple[str, int], tick: Tick) -> Means:
    """Return each policy's regret as a share of random play's."""
    drawn = instance(*task)
    random = drawn.horizon * (drawn.means.max(axis=1) - drawn.means.mean(axis=1)).sum()
    regrets = [
        simulate(
            policy, drawn.means, min_group_size=drawn.min_group_size, horizon=drawn.horizon,
            seed=SEED + task[1], tuned=False,
        ).regret
        for policy in POLICIES
    ]  # fmt: skip
    return np.array(regrets) / float(random)


def _between(low: float, high: float, rng: Rng) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))
