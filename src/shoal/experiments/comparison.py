"""Several policies on the same instances, many runs each (Appendix B's experiment).

Runs are shards of one problem, up to twenty at a time, so that the cost of a round in Python is
paid once for all of them. A cell (instances, policy, block of runs) depends on the seed and on
itself alone, so that the records are the same whatever the number of workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import FloatArray
from shoal.engines import Engine, LocalEngine, Tick
from shoal.environments.registry import check_means, check_rewards
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments.cells import Progress, run_cells
from shoal.experiments.records import Comparison
from shoal.experiments.run import Run, simulate
from shoal.experiments.seeds import stream
from shoal.experiments.tuned import tuned_options
from shoal.instances import INSTANCES, instance
from shoal.model import Problem
from shoal.model.numbers import share, whole_number
from shoal.policies import find_policy
from shoal.policies.registry import check_options

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
    means: FloatArray | None = None
    purpose: str = "comparison"

    def __str__(self) -> str:
        last = self.first_run + self.n_runs - 1
        told = {"options": dict(self.options)} if self.options else {}
        told |= self.settings
        spelled = ", ".join(f"{name}={value}" for name, value in told.items())
        return f"{self.title}, runs {self.first_run} to {last} ({spelled})"

    @property
    def title(self) -> str:
        """What it plays, in a few words."""
        return f"{self.policy} on {self.instance}"

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
    progress: Progress | None = None,
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
    given = None
    if means is None:
        check_instances(instances)
    else:
        given = check_means(means, rewards=rewards)
        n_users, n_arms = given.shape
        instances = ("given",)
    n_runs = whole_number("n_runs", n_runs)
    settings = check_setting(
        policies,
        n_users=n_users,
        n_arms=n_arms,
        min_group_size=min_group_size,
        horizon=horizon,
        seed=seed,
        rewards=rewards,
        participation=participation,
    )
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
    runs = run_cells(run_cell, cells, engine or LocalEngine(), progress)
    config = {
        **settings,
        "instances": list(instances),
        "policies": list(policies),
        "n_runs": n_runs,
        "options": {f"{i}/{p}": dict(chosen) for (i, p), chosen in used.items()},
    }
    if given is not None:
        config["means_sha256"] = hashlib.sha256(given.tobytes()).hexdigest()
    return Comparison.from_runs(
        [(c.instance, c.policy, c.first_run, run) for c, run in zip(cells, runs, strict=True)],
        config,
    )


def runs_per_cell(n_users: int) -> int:
    """Return how many runs of so many users a cell has at most."""
    return max(1, min(RUNS_PER_CELL, MOST_USERS_PER_CELL // n_users))


def check_instances(instances: Sequence[str]) -> None:
    """Refuse classes of instances that can't be drawn from."""
    if not instances:
        raise InvalidInputError("instances must name at least one; got none.")
    for name in instances:
        if name not in INSTANCES:
            raise UnknownNameError("instance", name, INSTANCES)


def check_setting(
    policies: Sequence[str],
    *,
    n_users: int,
    n_arms: int,
    min_group_size: int,
    horizon: int,
    seed: int,
    rewards: str = "bernoulli",
    participation: float = 1.0,
) -> dict[str, Any]:
    """Return a setting as JSON can hold it, or refuse it before any worker starts."""
    if not policies:
        raise InvalidInputError("policies must name at least one; got none.")
    for policy in policies:
        find_policy(policy)
    problem = Problem(n_users, n_arms, min_group_size)
    return {
        "n_users": problem.n_users,
        "n_arms": problem.n_arms,
        "min_group_size": problem.min_group_size,
        "horizon": whole_number("horizon", horizon),
        "seed": whole_number("seed", seed, least=0),
        "rewards": check_rewards(rewards),
        "participation": share("participation", participation),
    }


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


def _means(cell: Cell, run: int) -> FloatArray:
    if cell.means is not None:
        return cell.means
    rng = stream(cell.settings["seed"], cell.purpose, cell.instance, run)
    return instance(cell.instance, cell.settings["n_users"], cell.settings["n_arms"], rng=rng)
