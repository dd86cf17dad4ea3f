"""Choosing hyperparameters on separate validation instances, as the paper's simulations do.

Validation instances come from streams that no comparison uses, so that nothing is tuned on what
is later reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from shoal import __version__
from shoal.engines import Engine, LocalEngine
from shoal.errors import UnknownNameError
from shoal.experiments.cells import Progress, run_cells
from shoal.experiments.comparison import Cell, check_instances, check_setting, run_cell
from shoal.model.numbers import whole_number

_ELIMINATION: dict[str, list[Any]] = {
    "gamma": [4.0, 8.0, 16.0],
    "grid": ["minimax", "geometric"],
    "n_batches": [4, 6, 8],
    "approximation_ratio": [1.0, 2.0, 5.0],
}

GRID: dict[str, dict[str, list[Any]]] = {
    "explore-then-commit": {"exploration": [0.125, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0]},
    "elimination-greedy": _ELIMINATION,
    "elimination-random": _ELIMINATION,
    "elimination-lp": _ELIMINATION,
    "elimination-blocks": _ELIMINATION,
    "elimination-euler": _ELIMINATION,
    "pooled-elimination": {"gamma": [1.0, 1.5, 2.0, 3.0, 4.0]},
}
"""The values tried, by policy and option."""


def tune(
    *,
    instances: Sequence[str] = ("uniform", "linear"),
    policies: Sequence[str] = tuple(GRID),
    n_users: int = 50,
    n_arms: int = 5,
    min_group_size: int = 4,
    horizon: int = 100_000,
    n_runs: int = 20,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Try every point of the grid and return the choices, as ``tuned.json`` keeps them."""
    for policy in policies:
        if policy not in GRID:
            raise UnknownNameError("policy with options to tune", policy, GRID)
    check_instances(instances)
    n_runs = whole_number("n_runs", n_runs)
    settings = check_setting(
        policies,
        n_users=n_users,
        n_arms=n_arms,
        min_group_size=min_group_size,
        horizon=horizon,
        seed=seed,
    )
    cells = [
        Cell(instance, policy, 0, n_runs, settings, options, purpose="validation")
        for instance in instances
        for policy in policies
        for options in _points(GRID[policy])
    ]
    runs = run_cells(run_cell, cells, engine or LocalEngine(), progress)
    chosen: dict[str, dict[str, Any]] = {instance: {} for instance in instances}
    for cell, run in zip(cells, runs, strict=True):
        regret = run.regret / cell.n_runs
        best = chosen[cell.instance].get(cell.policy)
        if best is None or regret < best["regret"]:
            chosen[cell.instance][cell.policy] = {"options": dict(cell.options), "regret": regret}
    return {
        "chosen": chosen,
        "grid": {policy: GRID[policy] for policy in policies},
        "setting": {**settings, "n_runs": n_runs},
        "shoal": __version__,
    }


def _points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
