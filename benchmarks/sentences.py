"""Each sentence of the paper's experimental section, checked against the reproduction's runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from shoal.experiments.statistics import Interval, mean_interval, ratio_interval

Floats = NDArray[np.float64]
Regrets = Mapping[tuple[str, str, str], Floats]

READINGS = ("γ only, α = 1", "γ only, α = K", "tuned")
GREEDY = ("elimination-greedy", "elimination-greedy-printed")
TEN = (8.0, 12.5)
SIMILAR = (0.85, 1.15)
ALMOST_ALWAYS = 0.95


def sentences(
    regrets: Regrets, clusters: Mapping[str, Sequence[int]], min_group_size: int
) -> list[list[str]]:
    """Return a row for each sentence, class of instances and reading.

    ``clusters`` counts instances by the size of their smallest cluster.
    """
    rows = [_clusters(name, counts, min_group_size) for name, counts in clusters.items()]
    for instance in clusters:
        for reading in READINGS:
            rows += _of_reading(regrets, instance, reading)
    return rows


def _clusters(instance: str, counts: Sequence[int], min_group_size: int) -> list[str]:
    n_large, n_drawn = sum(counts[min_group_size + 1 :]), sum(counts)
    share = binomtest(n_large, n_drawn).proportion_ci()
    interval = Interval(n_large / n_drawn, share.low, share.high)
    return [
        "instances almost always have U ≥ C+1", instance, "",
        f"{interval.low:.1%} to {interval.high:.1%} of {n_drawn:,}",
        _inside(interval, ALMOST_ALWAYS, 1.0),
    ]  # fmt: skip


def _of_reading(regrets: Regrets, instance: str, reading: str) -> list[list[str]]:
    def of(policy: str, reading: str = reading) -> Floats:
        return regrets[policy, reading, instance]

    # Greedy has one γ-only row, at α = K; explore-then-commit and UCB have one row each.
    of_greedy = {name: of(name, "tuned" if reading == "tuned" else READINGS[1]) for name in GREEDY}
    lp, chance, commit = (
        of("elimination-lp"),
        of("elimination-random"),
        of("explore-then-commit", "tuned"),
    )
    ucb = of("ucb", "sees every reward")
    best = min((lp, chance, commit, *of_greedy.values()), key=lambda runs: float(runs.mean()))
    ratio, apart = ratio_interval(best, ucb), ratio_interval(chance, lp)
    rows = [
        ["UCB has about 10 times less than the next best", f"{ratio.low:.1f} to {ratio.high:.1f} "
         "times", _inside(ratio, *TEN)],
        ["random and LP perform similarly", f"random / LP {apart.low:.2f} to {apart.high:.2f}",
         _inside(apart, *SIMILAR)],
        _order("explore-then-commit is worse than LP", commit, lp),
        _order("explore-then-commit is worse than random", commit, chance),
    ]  # fmt: skip
    for name, greedy in of_greedy.items():
        kind = "greedy (printed)" if name.endswith("printed") else "greedy"
        rows.append(_order(f"{kind} is worse than LP", greedy, lp))
        rows.append(_order(f"{kind} is worse than random", greedy, chance))
        if reading == READINGS[0]:
            continue  # the same runs as in the next reading
        if instance == "uniform":
            rows.append(_order(f"{kind} is better than explore-then-commit", commit, greedy))
        else:
            rows.append(_order(f"{kind} is worse than explore-then-commit", greedy, commit))
    return [[title, instance, reading, measured, holds] for title, measured, holds in rows]


def _order(title: str, worse: Floats, better: Floats) -> list[str]:
    gap = mean_interval(worse - better)
    verdict = "yes" if gap.low > 0 else "no" if gap.high < 0 else "undecided"
    return [title, f"difference {gap.low:,.0f} to {gap.high:,.0f}", verdict]


def _inside(interval: Interval, least: float, most: float) -> str:
    if least <= interval.low and interval.high <= most:
        return "yes"
    return "no" if interval.high < least or most < interval.low else "undecided"
