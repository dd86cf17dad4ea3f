"""Cells: one policy on one setting and a block of runs; every experiment is a grid of them.

Runs are shards of one problem, up to twenty at a time, so that the cost of a round in Python is
paid once for all of them; a policy that does not take shards has a cell for each run. A cell
depends on the seed and on itself alone, so that the records are the same whatever the number of
workers.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from shoal import __version__
from shoal.arrays import FloatArray
from shoal.engines import Engine, LocalEngine, Tick
from shoal.errors import InvalidInputError, ShoalError
from shoal.experiments.record import Run
from shoal.experiments.run import N_CHECKPOINTS, Play, make_play
from shoal.experiments.seeds import stream
from shoal.experiments.setting import Setting, spell
from shoal.kernels import compilation_notice
from shoal.model.numbers import function_or_none, shortened
from shoal.policies.own import PolicyLike, identity, is_sendable, label

RUNS_PER_CELL = 20
MAX_USERS_PER_CELL = 1_000_000
"""Large populations are played in smaller blocks of runs, to limit a cell's memory."""

ProgressCallback = Callable[[str, int, int], None]
"""Called with (what has just finished or "", rounds done, rounds in all)."""


@dataclass(frozen=True, eq=False)
class Cell:
    """All that a worker needs to play a block of runs."""

    setting: Setting
    policy: PolicyLike
    options: Mapping[str, Any]  # resolved
    first_run: int = 0
    n_runs: int = 1
    purpose: str = "comparison"  # the experiment, which names the streams of randomness
    means: FloatArray | None = None  # (n_users, n_arms), in place of the setting's instances
    n_checkpoints: int = N_CHECKPOINTS
    version: str = __version__
    code: str | None = None  # a hash of what defines a policy of the caller's own
    label: str = ""  # what records call the policy

    def __post_init__(self) -> None:
        """Refuse a participation for each user: runs of one cell are played side by side.

        The policy is named here, once: a partial that is sent to a worker loses its __name__.
        """
        self.setting.check_one_participation()
        object.__setattr__(self, "label", self.label or label(self.policy))

    @property
    def title(self) -> str:
        """What it plays, in a few words."""
        last = self.first_run + self.n_runs - 1
        runs = f"runs {self.first_run} to {last}" if self.n_runs > 1 else f"run {last}"
        return f"{self.label} on {self.setting.instance}, {runs}"

    def __str__(self) -> str:
        options = {"options": dict(self.options)} if self.options else {}
        details = spell(options | self.setting.as_json(without=("instance",)))
        last = self.first_run + self.n_runs - 1
        what = f"{self.label} on {self.setting.instance}"
        return f"{what}, runs {self.first_run} to {last} ({details})"

    @cached_property
    def content(self) -> dict[str, Any]:
        """What the cell's records depend on, as JSON has it."""
        return {
            "instance": self.setting.instance,
            "policy": identity(self.policy),
            "options": dict(self.options),
            **self.setting.as_json(without=("instance",)),
            "first_run": self.first_run,
            "n_runs": self.n_runs,
            "shoal": self.version,
            **({} if self.code is None else {"code": self.code}),
        }

    @cached_property
    def name(self) -> str:
        """A hash of the content: the same whatever the rest of the grid."""
        text = json.dumps(self.content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def user_rounds(self) -> int:
        """Rounds × users × runs: how much work it is."""
        return self.setting.horizon * self.setting.n_users * self.n_runs

    def run_means(self, run: int) -> FloatArray:
        """Return the means of one run, (n_users, n_arms)."""
        return self.setting.draw(run, purpose=self.purpose) if self.means is None else self.means

    def start(self) -> Play:
        """Begin to play, the runs as shards of one problem."""
        seed = stream(self.setting.seed, self.purpose, "play", self.first_run).integers(2**32)
        runs = range(self.first_run, self.first_run + self.n_runs)
        play = make_play(
            self.policy,
            np.stack([self.run_means(run) for run in runs]),
            replace(self.setting, seed=int(seed)),
            self.options,
            self.n_checkpoints,
        )
        play.policy = self.label
        return play

    def play(self, tick: Tick) -> Run:
        """Play all rounds."""
        return self.start().finish(tick)


def split_runs(n_users: int, n_runs: int, *, takes_shards: bool = True) -> list[tuple[int, int]]:
    """Return how runs are split over cells: the first run and the number of runs of each.

    >>> split_runs(400_000, 5)
    [(0, 2), (2, 2), (4, 1)]
    """
    size = runs_per_cell(n_users, takes_shards=takes_shards)
    return [(first, min(size, n_runs - first)) for first in range(0, n_runs, size)]


def runs_per_cell(n_users: int, *, takes_shards: bool = True) -> int:
    """Return the most runs of so many users that one cell of a policy has."""
    if not takes_shards:
        return 1
    return max(1, min(RUNS_PER_CELL, MAX_USERS_PER_CELL // n_users))


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return every combination of the values of a grid.

    >>> combinations({"gamma": [1, 2], "grid": ["minimax"]})
    [{'gamma': 1, 'grid': 'minimax'}, {'gamma': 2, 'grid': 'minimax'}]
    """
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def choose_engine(cells: Sequence[Cell], engine: Engine | None) -> Engine:
    """Return the caller's engine, or one of processes; this process where only it has a policy.

    A class that is defined in a notebook or inside a function exists in no other process.
    """
    alone = [cell.policy for cell in cells if not is_sendable(cell.policy)]
    if engine is None:
        return LocalEngine(n_workers=1) if alone else LocalEngine()
    if not isinstance(engine, Engine):
        raise InvalidInputError(
            "engine must be an Engine, such as LocalEngine(n_workers=2) or make_engine('ray') of "
            f"shoal.engines; got {shortened(engine)}."
        )
    if alone and isinstance(engine, LocalEngine) and engine.n_workers > 1:
        raise InvalidInputError(
            "policy must be defined in a module that worker processes can import, or be played "
            f"by LocalEngine(n_workers=1); got {identity(alone[0])}."
        )
    return engine


def run_cells(
    cells: Sequence[Cell],
    *,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    title: Callable[[Cell], str] = lambda cell: cell.title,
) -> list[Run]:
    """Play cells on an engine, by default a process per core; return their runs in order."""
    function_or_none("progress", progress, "finished", "done", "total")
    engine = choose_engine(cells, engine)
    report = progress or (lambda finished, done, total: None)
    total, done = sum(cell.setting.horizon for cell in cells), 0

    def tick(rounds: int) -> None:
        nonlocal done
        done += rounds
        report("", done, total)

    report("", 0, total)
    runs: dict[Cell, Run] = {}
    with compilation_notice(), closing(engine.run(_play, cells, tick=tick)) as results:
        for index, run in results:
            runs[cells[index]] = run
            report(title(cells[index]), done, total)
    return [runs[cell] for cell in cells]


def _play(cell: Cell, tick: Tick) -> Run:
    """Play a cell; say of an error which policy and runs it comes from."""
    try:
        return cell.play(tick)
    except Exception as error:
        if isinstance(error, ShoalError) and len(error.args) == 1:
            error.args = (f"{cell.title}: {error}",)
        else:
            error.add_note(f"In {cell.title}.")
        raise
