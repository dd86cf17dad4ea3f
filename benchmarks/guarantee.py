"""What the guarantee of `shoal` costs, and what it saves, at horizons where it forces rounds.

Seeds are this benchmark's own. Each instance is played with and without the option.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.minorities import draw_means
from benchmarks.regret import SEED, Means
from benchmarks.report import page, table
from shoal.engines import LocalEngine, Tick
from shoal.experiments import simulate
from shoal.instances import linear, uniform

RUNS = 2


class Case(NamedTuple):
    """A class of instances, and a horizon."""

    make: Callable[[np.random.Generator], Means]
    min_group_size: int
    horizon: int


def _two_tastes(rng: np.random.Generator) -> Means:
    means = np.tile([0.6, 0.4], (20, 1))
    means[rng.permutation(20)[:6]] = [0.5, 0.6]
    return means


CASES = {
    "uniform, N=50 K=5 C=4": Case(lambda rng: uniform(50, 5, rng=rng), 4, 100_000),
    "uniform, N=50 K=5 C=4, longer": Case(lambda rng: uniform(50, 5, rng=rng), 4, 4_000_000),
    "linear, N=50 K=5 C=4": Case(lambda rng: linear(50, 5, rng=rng), 4, 4_000_000),
    "uniform, N=20 K=10 C=5": Case(lambda rng: uniform(20, 10, rng=rng), 5, 4_000_000),
    "two tastes, N=20 K=2 C=2": Case(_two_tastes, 2, 2_000_000),
    "13 % outsiders, N=60 K=6 C=5": Case(
        lambda rng: draw_means((60, 6), 0.13, 0.2, 1, 0.7, rng), 5, 4_000_000
    ),
}


def main() -> None:
    tasks = [(name, run, option) for name in CASES for run in range(RUNS) for option in (0, 1)]
    curves: dict[tuple[str, int, int], Means] = {}
    for index, curve in LocalEngine().run(measure, tasks):
        curves[tasks[index]] = curve
        print(f"done: {tasks[index]}: {curve.round()}", flush=True)
    page(
        "guarantee",
        "The guarantee",
        "python -m benchmarks guarantee",
        f"`shoal` without and with `guarantee=true`, total regret, the mean of {RUNS} runs (both "
        "runs in brackets), and that of the last third of the rounds. [What it is]"
        "(../theory.md#a-guarantee-for-any-learner): about 1 % of the rounds is forced, unless the "
        "horizon is too short for the bound to say anything.",
        table(
            ["instances", "T", "without", "with", "times", "last third without", "with"],
            [_line(name, curves) for name in CASES],
        ),
        "Two runs decide nothing about small differences; these are large.",
    )


def _line(name: str, curves: dict[tuple[str, int, int], Means]) -> tuple[object, ...]:
    runs = np.array([[curves[name, run, option] for run in range(RUNS)] for option in (0, 1)])
    totals, late = runs[..., -1], runs[..., -1] - runs[..., -2]
    cells = [
        f"{total.mean():,.0f} ({', '.join(f'{one:,.0f}' for one in total)})" for total in totals
    ]
    ratio = totals[1].mean() / totals[0].mean()
    late_cells = [f"{part.mean():,.0f}" for part in late]
    return name, CASES[name].horizon, *cells, f"{ratio:.1f}", *late_cells


def measure(task: tuple[str, int, int], tick: Tick) -> Means:
    """Return the regret after each third of the rounds."""
    name, number, option = task
    case = CASES[name]
    means = case.make(np.random.default_rng([SEED, 602, number]))
    run = simulate(
        "shoal", means, min_group_size=case.min_group_size, horizon=case.horizon,
        seed=SEED + number, tuned=False, n_checkpoints=3, options={"guarantee": bool(option)},
    )  # fmt: skip
    curve: Means = np.asarray(run.cumulative_regret)
    return curve
