"""Several policies on the same instances, many runs each (Appendix B's experiment)."""

from __future__ import annotations

import hashlib
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
    make_setting,
    setting_of_means,
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
        Start from the options that ``shoal tune`` chose on separate instances; those for
        "uniform" where none were chosen for the class. False starts from the policies' defaults.
    engine
        Where the cells run; by default a process per core.
    progress
        Called with (what has just finished or "", rounds done, rounds in all).
    **setting
        Fields of a ``Setting`` that differ from the paper's (50 users, 5 arms, groups of 4,
        100,000 rounds), or a whole one as ``setting``.

    Examples
    --------
    >>> from shoal.engines import LocalEngine
    >>> result = compare(policies=["random", "best-arm"], horizon=100, n_runs=2,
    ...                  engine=LocalEngine(n_workers=1))
    >>> result.summary()["policy"].to_list()
    ['random', 'best-arm', 'random', 'best-arm']
    """
    check_names(instances, policies)
    matrix = None
    if means is None:
        whole = make_setting(setting, base=PAPER_SETTING)
    else:
        instances = (GIVEN,)
        whole, matrix = setting_of_means(means, setting, base=PAPER_SETTING)
    n_runs = whole_number("n_runs", n_runs)
    for policy in options or {}:
        if policy not in policies:
            raise UnknownNameError("policy with options", policy, policies)
    resolved = {
        (name, policy): resolve_options(
            policy, (options or {}).get(policy), instance=name, tuned=tuned
        )
        for name in instances
        for policy in policies
    }
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
    }
    if matrix is not None:
        config["means_sha256"] = hashlib.sha256(matrix.tobytes()).hexdigest()
    return Comparison.from_runs(cells, run_cells(cells, engine=engine, progress=progress), config)


def check_names(instances: Sequence[str], policies: Sequence[str]) -> None:
    """Refuse an empty list, or classes of instances that can't be drawn from."""
    for kind, names in (("instances", instances), ("policies", policies)):
        if not names:
            raise InvalidInputError(f"{kind} must name at least one; got none.")
    for name in instances:
        if name not in INSTANCES:
            raise UnknownNameError("instance", name, INSTANCES)
