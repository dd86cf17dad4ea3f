"""Several policies on the same instances, many runs each (Appendix B's experiment).

Runs are shards of one problem, up to twenty at a time, so that the cost of a round in Python is paid
once for all of them. A cell (instances, policy, block of runs) depends on the seed and on itself
alone, so that the records are the same whatever the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.engines import Engine, LocalEngine, Tick
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.instances import INSTANCES, instance
from shoal.model import Problem
from shoal.model.numbers import whole_number
from shoal.policies import find_policy
from shoal.policies.registry import check_options
from shoal.simulation.records import Comparison
from shoal.simulation.run import Run, simulate
from shoal.simulation.seeds import stream
from shoal.simulation.tuned import tuned_options

PAPER = (
    "explore-then-commit",
    "elimination-greedy",
    "elimination-random",
    "elimination-lp",
    "ucb",
)
"""The five algorithms of the paper's simulations."""

RUNS_PER_CELL = 20
MOST_USERS_PER_CELL = 1_000_000
"""Large populations are played in smaller blocks of runs, to bound a cell's memory."""


@dataclass(frozen=True)
class Cell:
    """One policy on one block of runs: all that a worker needs to know."""

    instance: str
    policy: str
    first_run: int
    n_runs: int
    settings: Mapping[str, Any]
    options: Mapping[str, Any]
    means: NDArray[np.float64] | None = None
    purpose: str = "comparison"

    def __str__(self) -> str:
        last = self.first_run + self.n_runs - 1
        told = {"options": dict(self.options)} if self.options else {}
        told |= self.settings
        spelled = ", ".join(f"{name}={value}" for name, value in told.items())
        return f"{self.policy} on {self.instance}, runs {self.first_run} to {last} ({spelled})"

    @property
    def rounds(self) -> int:
        """Rounds to play, for progress."""
        return int(self.settings["horizon"])


def compare(
    *,
    instances: Sequence[str] = ("uniform", "linear"),
    policies: Sequence[str] = PAPER,
    n_users: int = 50,
    n_arms: int = 5,
    min_group_size: int = 4,
    horizon: int = 100_000,
    n_runs: int = 20,
    seed: int = 0,
    rewards: str = "bernoulli",
    participation: float = 1.0,
    means: ArrayLike | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    tuned: bool = True,
    engine: Engine | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Run every policy on every class of instances; by default, the paper's experiment.

    Parameters
    ----------
    instances
        Classes of instances; each run draws a new one, the same for every policy.
    means
        One's own expected rewards, (n_users, n_arms), in place of ``instances``.
    options
        Options by policy name.
    tuned
        Start from the options that ``shoal tune`` chose on separate instances.
    engine
        Where the cells run; by default a process per core.
    progress
        Called with (what has just finished or "", rounds done, rounds in all).

    Examples
    --------
    >>> result = compare(policies=["random", "best-arm"], horizon=100, n_runs=2,
    ...                  engine=LocalEngine(n_workers=1))
    >>> result.summary()["policy"].to_list()
    ['random', 'best-arm', 'random', 'best-arm']
    """
    settings: dict[str, Any] = {
        "n_users": n_users,
        "n_arms": n_arms,
        "min_group_size": min_group_size,
        "horizon": horizon,
        "seed": seed,
        "rewards": rewards,
        "participation": participation,
    }
    given = None
    if means is not None:
        given = np.asarray(means, dtype=np.float64)
        if given.ndim != 2:
            raise InvalidInputError(f"means must have shape (n_users, n_arms); got {given.shape}.")
        settings["n_users"], settings["n_arms"] = given.shape
        instances = ("given",)
    check_setting(settings, instances, policies, n_runs)
    own = options or {}
    for policy in own:
        if policy not in policies:
            raise UnknownNameError("policy with options", policy, policies)
    used = {
        (name, policy): {**(tuned_options(name, policy) if tuned else {}), **own.get(policy, {})}
        for name in instances
        for policy in policies
    }
    for (_, policy), chosen in used.items():
        check_options(policy, chosen)
    block = runs_per_cell(settings["n_users"])
    cells = [
        Cell(name, policy, first, min(block, n_runs - first), settings, chosen, given)
        for (name, policy), chosen in used.items()
        for first in range(0, n_runs, block)
    ]
    runs = run_cells(cells, engine or LocalEngine(), progress)
    config = {
        **settings,
        "instances": list(instances),
        "policies": list(policies),
        "n_runs": n_runs,
        "options": {f"{i}/{p}": dict(chosen) for (i, p), chosen in used.items()},
    }
    return Comparison.from_runs(
        [(c.instance, c.policy, c.first_run, run) for c, run in zip(cells, runs, strict=True)],
        config,
    )


def runs_per_cell(n_users: int) -> int:
    """Return how many runs of so many users a cell has at most."""
    return max(1, min(RUNS_PER_CELL, MOST_USERS_PER_CELL // n_users))


def check_setting(
    settings: Mapping[str, Any], instances: Sequence[str], policies: Sequence[str], n_runs: int
) -> None:
    """Refuse a bad setting at once, before any worker starts."""
    whole_number("n_runs", n_runs)
    Problem(
        settings["n_users"], settings["n_arms"], settings["min_group_size"], settings["horizon"]
    )
    for kind, names in (("instances", instances), ("policies", policies)):
        if not names:
            raise InvalidInputError(f"{kind} must name at least one; got none.")
    for policy in policies:
        find_policy(policy)
    for name in instances:
        if name not in INSTANCES and tuple(instances) != ("given",):
            raise UnknownNameError("instance", name, INSTANCES)


def run_cells(
    cells: Sequence[Cell],
    engine: Engine,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Run]:
    """Run the cells on an engine and return their runs in order."""
    total = sum(cell.rounds for cell in cells)
    done = 0

    def tick(rounds: int) -> None:
        nonlocal done
        done += rounds
        if progress:
            progress("", done, total)

    runs: dict[int, Run] = {}
    with closing(engine.run(run_cell, cells, tick=tick)) as finished:
        for index, run in finished:
            runs[index] = run
            if progress:
                progress(f"{cells[index].policy} on {cells[index].instance}", done, total)
    return [runs[index] for index in range(len(cells))]


def run_cell(cell: Cell, tick: Tick) -> Run:
    """Play one cell, its runs as shards."""
    settings = cell.settings
    runs = range(cell.first_run, cell.first_run + cell.n_runs)
    return simulate(
        cell.policy,
        np.stack([_means(cell, run) for run in runs]),
        min_group_size=settings["min_group_size"],
        horizon=settings["horizon"],
        rewards=settings["rewards"],
        participation=settings["participation"],
        seed=int(stream(settings["seed"], cell.purpose, "play", cell.first_run).integers(2**32)),
        options=cell.options,
        progress=tick,
    )


def _means(cell: Cell, run: int) -> NDArray[np.float64]:
    if cell.means is not None:
        return cell.means
    rng = stream(cell.settings["seed"], cell.purpose, cell.instance, run)
    return instance(cell.instance, cell.settings["n_users"], cell.settings["n_arms"], rng=rng)
