"""Choosing hyperparameters on separate validation instances, as the paper's simulations do.

Validation instances come from streams that no comparison uses, so that nothing is tuned on what
is later reported.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from shoal import __version__
from shoal.engines import Engine
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments.cells import Cell, ProgressCallback, combinations, run_cells, split_runs
from shoal.experiments.comparison import as_lists, check_names
from shoal.experiments.setting import (
    PAPER_SETTING,
    SettingOptions,
    check_arguments,
    make_setting,
)
from shoal.model.numbers import whole_number
from shoal.policies import POLICIES, find_policy
from shoal.policies.own import label

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
    instances: Sequence[str] | str | None = None,
    policies: Sequence[str] | str = tuple(GRID),
    n_runs: int = 20,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    **setting: Unpack[SettingOptions],
) -> dict[str, Any]:
    """Try every point of the grid and return the choices, as ``tuned.json`` keeps them.

    The parameters are those of ``compare``, but for ``means``, ``options`` and ``tuned``.
    """
    if "means" in setting:
        raise InvalidInputError(
            "means must be left out of tune, which draws instances that no comparison reports: "
            "give values of a policy's options to compare, which takes means."
        )
    check_arguments(tune, setting)
    instances, policies = as_lists(instances, policies, setting)
    for policy in policies:
        if not isinstance(policy, str) or policy not in POLICIES:
            find_policy(policy)
            raise InvalidInputError(
                "policies must have a grid to tune, and one of your own has none: give values of "
                f"its options to compare or to a sweep; got {label(policy)!r}."
            )
        if policy not in GRID:
            raise UnknownNameError("policy with options to tune", policy, GRID)
    check_names(instances, policies)
    n_runs = whole_number("n_runs", n_runs)
    whole = make_setting(setting, base=PAPER_SETTING, instance=instances[0])
    parts = split_runs(whole.n_users, n_runs)
    cells = [
        Cell(replace(whole, instance=name), policy, point, first, count, purpose="validation")
        for name in instances
        for policy in policies
        for point in combinations(GRID[policy])
        for first, count in parts
    ]
    runs = run_cells(cells, engine=engine, progress=progress)
    regrets = np.reshape([run.regret for run in runs], (-1, len(parts))).sum(axis=1) / n_runs
    chosen: dict[str, dict[Any, Any]] = {name: {} for name in instances}
    for cell, regret in zip(cells[:: len(parts)], regrets.tolist(), strict=True):
        by_policy = chosen[cell.setting.instance]
        best = by_policy.get(cell.policy)
        if best is None or regret < best["regret"]:
            by_policy[cell.policy] = {"options": dict(cell.options), "regret": regret}
    return {
        "chosen": chosen,
        "grid": {policy: GRID[policy] for policy in policies},
        "setting": {**whole.as_json(without=("instance",)), "n_runs": n_runs},
        "shoal": __version__,
    }
