"""The paper's experiment with 100 runs, in both readings (Section 4 and Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import page, table
from shoal.experiments.cells import Cell, blocks, run_cells
from shoal.experiments.setting import PAPER_SETTING
from shoal.experiments.statistics import mean_interval, ratio_interval
from shoal.policies.tuned import tuned_options

N_RUNS = 100
N_VALIDATION_RUNS = 10
INSTANCES = ("uniform", "linear")
GAMMAS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
EXPLORATIONS = (0.06, 0.09, 0.125, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4)

# B = round(log2 log2 T) = 4 on the minimax grid; only gamma is chosen.
GAMMA_ONLY: dict[str, dict[str, Any]] = {
    "elimination-greedy": {},
    "elimination-greedy-printed": {},
    "elimination-random": {"approximation_ratio": 1.0},
    "elimination-lp": {},
}
FULLY = ("elimination-greedy", "elimination-random", "elimination-lp")

Regrets = dict[str, dict[str, NDArray[np.float64]]]


def main() -> None:
    chosen = {name: _choose(name) for name in INSTANCES}
    regrets = {name: _play(name, chosen[name]) for name in INSTANCES}
    page(
        "reproduction",
        "The paper's experiment, thoroughly",
        "python -m benchmarks reproduction",
        f"50 users, 5 arms, groups of at least 4, 100,000 rounds, {N_RUNS} runs: total regret of "
        "all users, mean and 95 % interval. *γ only*: B = log log T = 4 batches on the minimax "
        "grid, as in the paper's Algorithm 1, and γ alone chosen on "
        f"{N_VALIDATION_RUNS} other instances, from {GAMMAS[0]:g} to {GAMMAS[-1]:g}. *Tuned*: what "
        "`shoal tune` chose of γ, B, grid and α; there B = 8, γ = 16 and α = 5 are the largest "
        "values that it tries, so a wider grid may do better. *Printed* repeats each arm D times "
        "(Section 3.4.1), *until met* as often as a user needs (Appendix B). UCB1 and Thompson "
        "sampling see every reward.",
        table(["policy", *INSTANCES, "γ or c chosen"], _rows(regrets, chosen)),
        "## The paper's sentences",
        "Differences are taken run by run on the same instances; an interval that covers 0 "
        "decides nothing.",
        table(["sentence", "instances", "reading", "measured", "holds"], _sentences(regrets)),
    )


def _regrets(
    instance: str, policy: str, options: Mapping[str, Any], n_runs: int, purpose: str
) -> NDArray[np.float64]:
    setting = replace(PAPER_SETTING, instance=instance)
    cells = [
        Cell(setting, policy, options, first, count, purpose=purpose, n_checkpoints=1)
        for first, count in blocks(setting.n_users, n_runs)
    ]
    runs = run_cells(cells, engine=None, progress=None)
    print(instance, policy, dict(options), purpose, flush=True)
    return np.concatenate([run.curves[:, -1] for run in runs])


def _choose(instance: str) -> dict[str, dict[str, Any]]:
    """Return the options of the rows that have one option to choose."""
    chosen: dict[str, dict[str, Any]] = {}
    grids: dict[str, list[dict[str, Any]]] = {
        name: [{**fixed, "gamma": gamma} for gamma in GAMMAS] for name, fixed in GAMMA_ONLY.items()
    }
    grids["explore-then-commit"] = [{"exploration": c} for c in EXPLORATIONS]
    for policy, points in grids.items():
        means = [
            _regrets(instance, policy, point, N_VALIDATION_RUNS, "validation").mean()
            for point in points
        ]
        best = int(np.argmin(means))
        chosen[policy] = points[best] | {"edge": best in (0, len(points) - 1)}
    return chosen


def _play(instance: str, chosen: dict[str, dict[str, Any]]) -> dict[str, NDArray[np.float64]]:
    rows: dict[str, tuple[str, Mapping[str, Any]]] = {
        "ucb": ("ucb", {}),
        "thompson": ("thompson", {}),
    }
    for policy, options in chosen.items():
        rows[policy] = policy, {key: value for key, value in options.items() if key != "edge"}
    for policy in FULLY:
        rows[f"{policy}, tuned"] = policy, tuned_options(instance, policy)
    return {
        title: _regrets(instance, policy, options, N_RUNS, "comparison")
        for title, (policy, options) in rows.items()
    }


def _rows(regrets: Regrets, chosen: dict[str, dict[str, dict[str, Any]]]) -> list[list[object]]:
    rows: list[list[object]] = []
    for title in regrets["uniform"]:
        cells = []
        for name in INSTANCES:
            interval = mean_interval(regrets[name][title])
            cells.append(f"{interval.mean:,.0f} ± {interval.half:,.0f}")
        choices = [chosen[name].get(title, {}) for name in INSTANCES]
        shown = [
            f"{choice.get('gamma', choice.get('exploration')):g}{' (edge)' * choice['edge']}"
            for choice in choices
            if choice
        ]
        rows.append([_label(title), *cells, ", ".join(shown)])
    return rows


def _label(title: str) -> str:
    reading = {"elimination-greedy": " (until met)", "elimination-greedy-printed": " (printed)"}
    if title in GAMMA_ONLY:
        return f"{title}{reading.get(title, '')}, γ only"
    return title


def _sentences(regrets: Regrets) -> list[list[str]]:
    rows: list[list[str]] = []
    for name in INSTANCES:
        for reading, suffix in (("γ only", ""), ("tuned", ", tuned")):
            totals = regrets[name]
            lp, chance = totals[f"elimination-lp{suffix}"], totals[f"elimination-random{suffix}"]
            greedy, commit = totals[f"elimination-greedy{suffix}"], totals["explore-then-commit"]
            best = lp if lp.mean() < chance.mean() else chance
            ratio = ratio_interval(best, totals["ucb"])
            rows.append(
                [
                    "UCB about ten times below the next best", name, reading,
                    f"{ratio.low:.1f} to {ratio.high:.1f} times",
                    "yes" if ratio.low <= 10 <= ratio.high else "no",
                ]
            )  # fmt: skip
            apart = ratio_interval(chance, lp)
            similar = apart.low > 0.85 and apart.high < 1.15
            different = apart.low > 1.15 or apart.high < 0.85
            rows.append(
                [
                    "random and LP similar (within 15 %)", name, reading,
                    f"random / LP {apart.low:.2f} to {apart.high:.2f}",
                    "yes" if similar else "no" if different else "undecided",
                ]
            )  # fmt: skip
            pairs = [("explore-then-commit worse than LP", commit, lp)]
            pairs += [("explore-then-commit worse than random", commit, chance)]
            pairs += [
                ("greedy worse than LP", greedy, lp),
                ("greedy worse than random", greedy, chance),
            ]
            if name == "uniform":
                pairs += [("greedy better than explore-then-commit", commit, greedy)]
            else:
                pairs += [("greedy worse than explore-then-commit", greedy, commit)]
            rows += [_order(title, name, reading, a, b) for title, a, b in pairs]
        printed = regrets[name]["elimination-greedy-printed"]
        commit = regrets[name]["explore-then-commit"]
        worse = (printed, commit) if name == "linear" else (commit, printed)
        title = (
            "greedy worse than explore-then-commit"
            if name == "linear"
            else "greedy better than explore-then-commit"
        )
        rows.append(_order(title, name, "γ only, printed", *worse))
    return rows


def _order(
    title: str, name: str, reading: str, worse: NDArray[np.float64], better: NDArray[np.float64]
) -> list[str]:
    gap = mean_interval(worse - better)
    verdict = "yes" if gap.low > 0 else "no" if gap.high < 0 else "undecided"
    return [title, name, reading, f"difference {gap.low:,.0f} to {gap.high:,.0f}", verdict]


if __name__ == "__main__":
    main()
