"""How regret grows with the horizon on the paper's lower-bound families (Theorems 4 and 5)."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.report import page, table
from shoal.experiments import simulate
from shoal.instances import lower_bound

HORIZONS = [10**4, 10**5, 10**6, 10**7, 10**8]
SHORTER = [10**3, 10**4, 10**5]  # where every round is played
N_RUNS = 50


def main() -> None:
    four = [("explore-then-commit", {"exploration": c}, f"c = {c}") for c in (0.05, 0.1, 0.2)]
    rows = [_row("no-clusters", "bernoulli", HORIZONS, *policy) for policy in four]
    five = [
        _row("too-few-users", "deterministic", SHORTER, name, {}, "")
        for name in ("random", "best-arm", "pooled-thompson", "shoal")
    ]
    page(
        "growth",
        "Growth with the horizon",
        "make bench",
        "## Theorem 4: no clusters, N = C+1",
        "Three users, three arms, groups of at least 2, gap T^(-1/3): no learner does better than "
        f"T^(2/3). Mean total regret of {N_RUNS} runs of explore-then-commit with its constant c, "
        "and the exponent fitted over all horizons.",
        table(["policy", *[f"T = {t:,}" for t in HORIZONS], "exponent"], rows),
        "The theorem bounds the regret at each T, not the slope between two of them. Who comes "
        "down to the bound as T grows fits a smaller exponent over a finite range, as "
        "[`shoal` does](regret.md).",
        "## Theorem 5: too few users, N = C",
        "Two users, two arms, groups of at least 2: regret is linear for every anonymous policy "
        f"that accepts the problem; these are all of them, {N_RUNS} runs each. The others refuse "
        "it, because they need N > C.",
        table(["policy", *[f"T = {t:,}" for t in SHORTER], "exponent"], five),
    )


def _row(
    family: str,
    rewards: str,
    horizons: list[int],
    policy: str,
    options: dict[str, Any],
    note: str,
) -> list[object]:
    regrets = []
    for horizon in horizons:
        rng = np.random.default_rng([horizon, 4])
        means = np.stack([lower_bound(family, rng=rng, horizon=horizon) for _ in range(N_RUNS)])
        run = simulate(
            policy, means, min_group_size=2, horizon=horizon, rewards=rewards, options=options
        )
        regrets.append(run.regret / N_RUNS)
    exponent = float(np.polyfit(np.log(horizons), np.log(regrets), 1)[0])
    return [f"{policy} {note}".strip(), *regrets, exponent]
