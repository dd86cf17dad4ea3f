"""The record that a run leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import FloatArray, LongArray
from shoal.model import Problem
from shoal.model.plurals import count
from shoal.notebook import as_text, html_table

if TYPE_CHECKING:
    import altair as alt
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The record of one policy's run.

    Attributes
    ----------
    policy
        The policy's name.
    options
        The options that it was made with: the tuned ones and the caller's.
    problem
        The problem that was played; ``min_group_size`` is 1 for a policy that is not anonymous.
    rounds
        Checkpoints, (n_checkpoints,); the last is the horizon.
    curves
        Pseudo-regret of each shard up to each checkpoint, (n_shards, n_checkpoints).
    smallest_group
        Users behind the smallest released total, 0 if nothing was released.
    withheld
        Totals that were not released, because too few of their users reported.
    seconds
        Time taken by the rounds.
    """

    policy: str
    options: Mapping[str, Any]
    problem: Problem
    rounds: LongArray
    curves: FloatArray
    smallest_group: int
    withheld: int
    seconds: float

    @property
    def cumulative_regret(self) -> FloatArray:
        """Pseudo-regret of all users up to each checkpoint, (n_checkpoints,)."""
        total: FloatArray = self.curves.sum(axis=0)
        return total

    @property
    def regret(self) -> float:
        """Total pseudo-regret over all users and rounds."""
        return float(self.curves[:, -1].sum())

    def __repr__(self) -> str:
        options = f"options={dict(self.options)!r}, " if self.options else ""
        shards = ""
        if self.problem.n_shards > 1:
            mean = self.regret / self.problem.n_shards
            shards = f"n_shards={self.problem.n_shards}, regret_per_shard={mean:.6g}, "
        return (
            f"Run({self.policy!r}, {options}regret={self.regret:.6g}, {shards}"
            f"n_users={self.problem.n_users}, horizon={int(self.rounds[-1])})"
        )

    def _repr_html_(self) -> str:
        problem = self.problem
        n_shards = problem.n_shards
        shards = [(f"mean of {n_shards:,} shards or runs", self.regret / n_shards)]
        rows = (
            ("regret of all users", self.regret),
            *(shards if n_shards > 1 else ()),
            ("per user and round", self.regret / (problem.n_users * int(self.rounds[-1]))),
            ("smallest group seen", self.smallest_group or "no group was seen"),
            ("totals withheld", self.withheld),
            ("options", as_text(dict(self.options)) or "none"),
        )
        caption = (
            f"{self.policy}: {count(problem.n_users, 'user')}, {count(problem.n_arms, 'arm')}, "
            f"groups of at least {problem.min_group_size}, {count(int(self.rounds[-1]), 'round')}"
        )
        return html_table(caption, ["", "value"], rows)

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each shard and checkpoint, with its regret so far."""
        import polars as pl

        n_shards, n_checkpoints = self.curves.shape
        return pl.DataFrame(
            {
                "policy": [self.policy] * self.curves.size,
                "shard": np.repeat(np.arange(n_shards), n_checkpoints),
                "round": np.tile(self.rounds, n_shards),
                "regret": self.curves.ravel(),
            }
        )

    def plot(self) -> alt.LayerChart:
        """Draw the regret of all users over the rounds."""
        import polars as pl

        from shoal.figures import regret_figure

        empty = pl.Series([None] * len(self.rounds), dtype=pl.Float64)
        curve = {"policy": [self.policy] * len(self.rounds), "round": self.rounds}
        curves = pl.DataFrame(
            {**curve, "mean": self.cumulative_regret, "low": empty, "high": empty}
        )
        return regret_figure(curves, title=f"{self.problem.n_users:,} users, {self.policy}")


def join_shards(runs: Sequence[Run]) -> Run:
    """Return one record of shards of equal size that were played one by one."""
    problem = runs[0].problem
    return replace(
        runs[0],
        problem=replace(problem, n_users=problem.n_users * len(runs), n_shards=len(runs)),
        curves=np.concatenate([run.curves for run in runs]),
        smallest_group=min((run.smallest_group for run in runs if run.smallest_group), default=0),
        withheld=sum(run.withheld for run in runs),
        seconds=sum(run.seconds for run in runs),
    )
