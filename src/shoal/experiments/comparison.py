"""Several policies on the same instances, many runs each (Appendix B's experiment)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from numpy.typing import ArrayLike

from shoal.engines import Engine
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments.cells import Cell, ProgressCallback, blocks, run_cells
from shoal.experiments.records import Comparison
from shoal.experiments.setting import (
    GIVEN,
    PAPER_SETTING,
    SettingOptions,
    means_hash,
    setting_and_means,
)
from shoal.instances import INSTANCES
from shoal.model.numbers import whole_number
from shoal.policies.tuned import resolve_options

PAPER_POLICIES = (
    "explore-then-commit",
    "elimination-greedy",
    "elimination-random",
    "elimination-lp",
    "ucb",
)
"""The five algorithms of the paper's simulations."""


def compare(
    *,
    instances: Sequence[str] = ("uniform", "linear"),
    policies: Sequence[str] = PAPER_POLICIES,
    n_runs: int = 20,
    means: ArrayLike | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    tuned: bool = True,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    **setting: Unpack[SettingOptions],
) -> Comparison:
    """Run every policy on every class of instances; by default, the paper's experiment.

    Parameters
    ----------
    instances
        Classes of instances; each run draws a new one, the same for every policy.
    means
        The caller's own expected rewards, (n_users, n_arms), in place of ``instances``.
    options
        Options by policy name.
    tuned
        As in ``simulate``.
    engine
        Where the cells run; by default a process per core.
    progress
        Called with (what has just finished or "", rounds done, rounds in all).
    **setting
        Fields of a ``Setting`` that differ from the paper's, or a whole one as ``setting``.

    Examples
    --------
    >>> from shoal.engines import LocalEngine
    >>> result = compare(policies=["random", "best-arm"], horizon=100, n_runs=2,
    ...                  engine=LocalEngine(n_workers=1))
    >>> result.summary()["policy"].to_list()
    ['random', 'best-arm', 'random', 'best-arm']
    """
    check_names(instances, policies)
    whole, matrix = setting_and_means(setting, means, base=PAPER_SETTING)
    if matrix is not None:
        instances = (GIVEN,)
    n_runs = whole_number("n_runs", n_runs)
    resolved = _resolve_all(instances, policies, options or {}, tuned=tuned)
    cells = [
        Cell(replace(whole, instance=name), policy, chosen, first, count, means=matrix)
        for (name, policy), chosen in resolved.items()
        for first, count in blocks(whole.n_users, n_runs)
    ]
    config = {
        **whole.as_json(without=("instance",)),
        "instances": list(instances),
        "policies": list(policies),
        "n_runs": n_runs,
        "options": {f"{name}/{policy}": chosen for (name, policy), chosen in resolved.items()},
        **means_hash(matrix),
    }
    return Comparison.from_runs(cells, run_cells(cells, engine=engine, progress=progress), config)


def _resolve_all(
    instances: Sequence[str],
    policies: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    *,
    tuned: bool,
) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the options of each policy on each class of instances."""
    for policy in options:
        if policy not in policies:
            raise UnknownNameError("policy with options", policy, policies)
    return {
        (name, policy): resolve_options(policy, options.get(policy), instance=name, tuned=tuned)
        for name in instances
        for policy in policies
    }


def check_names(instances: Sequence[str], policies: Sequence[str]) -> None:
    """Refuse an empty list, or classes of instances that can't be drawn from."""
    for kind, names in (("instances", instances), ("policies", policies)):
        if not names:
            raise InvalidInputError(f"{kind} must name at least one; got none.")
    for name in instances:
        if name not in INSTANCES:
            raise UnknownNameError("instance", name, INSTANCES)
