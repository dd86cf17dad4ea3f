"""The cells of a sweep: one policy on one setting and a block of runs, named by what they hold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from shoal import __version__
from shoal.experiments.comparison import Cell, runs_per_cell
from shoal.experiments.sweep.configuration import Configuration


@dataclass(frozen=True)
class NamedCell:
    """A cell and its name, a hash of all that its records depend on."""

    cell: Cell
    version: str

    @cached_property
    def content(self) -> dict[str, Any]:
        """What the cell's records depend on, as JSON has it."""
        cell = self.cell
        return {
            "instance": cell.instance,
            "policy": cell.policy,
            "options": dict(cell.options),
            **cell.settings,
            "first_run": cell.first_run,
            "n_runs": cell.n_runs,
            "shoal": self.version,
        }

    @cached_property
    def name(self) -> str:
        """The same for the same content, whatever the rest of the sweep."""
        text = json.dumps(self.content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def user_rounds(self) -> int:
        """Rounds × users × runs: how much work it is, for progress."""
        return self.cell.rounds * self.per_round

    @property
    def per_round(self) -> int:
        """Users × runs."""
        return int(self.cell.settings["n_users"]) * self.cell.n_runs

    def __str__(self) -> str:
        return f"{self.name}, {self.cell}"


def cells_of(configuration: Configuration, *, version: str = __version__) -> list[NamedCell]:
    """Return every cell of the grid, in its order, as this version of Shoal plays it."""
    cells = []
    for seed, instance, users, arms, least, horizon, rewards, participation in product(
        configuration.seed,
        configuration.instances,
        configuration.users,
        configuration.arms,
        configuration.min_group_size,
        configuration.horizon,
        configuration.rewards,
        configuration.participation,
    ):
        settings = {
            "n_users": users,
            "n_arms": arms,
            "min_group_size": least,
            "horizon": horizon,
            "rewards": rewards,
            "participation": participation,
            "seed": seed,
        }
        block = runs_per_cell(users)
        cells += [
            Cell(instance, policy, first, min(block, configuration.runs - first), settings, options)
            for policy in configuration.policies
            for options in configuration.points(policy)
            for first in range(0, configuration.runs, block)
        ]
    return [NamedCell(cell, version) for cell in cells]
