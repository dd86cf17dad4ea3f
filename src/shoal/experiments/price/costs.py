"""What anonymity costs, in words for those who decide: intervals and a recommendation.

All of it compares three earnings per user and round: the learner's, those of the best single arm
for everyone, and those of full knowledge, where every user plays its best arm. The share captured
is (learner - best arm) / (full knowledge - best arm), as a ratio of means over the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shoal.arrays import FloatArray, LongArray
from shoal.experiments.statistics import (
    Interval,
    mean_interval,
    prediction_interval,
    ratio_interval,
)

KEEP = 0.9
"""The recommended group size keeps at least this part of the best one's gain."""

ROUNDING = 1e-9
"""Relative differences below this are rounding errors."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one group size costs.

    Attributes
    ----------
    reward
        Expected reward per user and round.
    one_population
        Where the reward of a single population lies, 95 times out of 100.
    share
        Of the gap between the best single arm and full knowledge, how much is captured; negative
        where the best single arm earns more.
    loss
        Reward lost against the smallest group size, run by run on the same populations.
    passes_at
        The round from which on more is earned than by the best single arm, or None.
    runs
        The reward of each run.
    """

    min_group_size: int
    reward: Interval
    one_population: Interval
    share: Interval
    loss: Interval
    passes_at: int | None
    runs: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Price:
    """The answer of ``price``.

    Attributes
    ----------
    costs
        One for each group size, in increasing order.
    best_arm, full_knowledge, mean_rate
        Reward per user and round of the best single arm for everyone, of every user's own best
        arm, and of a random arm.
    rounds, curves
        Ends of the stretches into which the rounds are cut, and the reward per user and round in
        each of them, (n_costs, n_stretches).
    config
        Everything needed to run it again.
    """

    costs: Sequence[Cost]
    best_arm: float
    full_knowledge: float
    mean_rate: float
    rounds: LongArray
    curves: FloatArray
    config: Mapping[str, Any]

    @classmethod
    def from_rewards(
        cls,
        sizes: Sequence[int],
        rewards: FloatArray,  # (n_sizes, n_runs, n_stretches)
        references: FloatArray,  # (n_runs, 3): best arm, full knowledge, random arm
        rounds: LongArray,
        config: Mapping[str, Any],
    ) -> Price:
        """Compute the costs from the reward per user and round of every run."""
        lengths = np.diff(rounds, prepend=0)
        earned = rewards @ lengths / rounds[-1]  # (n_sizes, n_runs)
        best, full, _ = references.T
        full = np.where(full - best > ROUNDING * np.abs(full), full, best)
        bar = float(best.mean() + ROUNDING * abs(best.mean()))
        curves = rewards.mean(axis=1)
        costs = [
            Cost(
                min_group_size=size,
                reward=mean_interval(reward),
                one_population=prediction_interval(reward),
                share=ratio_interval(reward - best, full - best),
                loss=mean_interval(earned[0] - reward),
                passes_at=passing_round(curve, bar, rounds),
                runs=tuple(reward.tolist()),
            )
            for size, reward, curve in zip(sizes, earned, curves, strict=True)
        ]
        best_arm, full_knowledge, mean_rate = references.mean(axis=0).tolist()
        return cls(costs, best_arm, full_knowledge, mean_rate, rounds, curves, config)

    @property
    def recommended(self) -> Cost | None:
        """The largest groups that keep ``KEEP`` of the best gain; None if none is shown to gain.

        A group of one hides nobody: it is there to compare with.
        """
        gainful = [cost for cost in self._groups if cost.share.low > 0]
        if not gainful:
            return None
        best = max(cost.share.mean for cost in gainful)
        return [cost for cost in gainful if cost.share.mean >= KEEP * best][-1]

    @property
    def _groups(self) -> Sequence[Cost]:
        return [cost for cost in self.costs if cost.min_group_size > 1] or self.costs

    @property
    def recommendation(self) -> str:
        """One sentence for a document."""
        horizon = int(self.rounds[-1])
        chosen = self.recommended
        if chosen is None:
            tried = ", ".join(str(cost.min_group_size) for cost in self._groups)
            return (
                f"Show everyone the best single arm: within {horizon:,} rounds, learning from "
                f"groups of at least {tried} users is not shown to earn more."
            )
        best = max(self.costs, key=lambda cost: cost.share.mean)
        gain = chosen.reward.mean - self.best_arm
        more = f"{gain / self.best_arm:.0%}" if self.best_arm > 0 else f"{gain:.2g} a round"
        sentence = (
            f"Use groups of at least {_users(chosen)}: over {horizon:,} rounds they "
            f"earn {more} more than the best single arm for everyone"
        )
        if best is not chosen:
            share_kept = chosen.share.mean / best.share.mean
            alone = best.min_group_size == 1
            sentence += f", {share_kept:.0%} of the gain "
            sentence += "without anonymity" if alone else f"with groups of {best.min_group_size}"
        larger = [cost for cost in self.costs if cost.min_group_size > chosen.min_group_size]
        if larger:
            share_kept = max(0.0, larger[0].share.mean / best.share.mean)
            sentence += f"; groups of {larger[0].min_group_size} would keep {share_kept:.0%}"
        return sentence + "."

    @property
    def notes(self) -> list[str]:
        """What a reader should know before trusting the numbers."""
        better = [cost for cost in self.costs if cost.loss.high < 0]
        if not better:
            return []
        best = max(better, key=lambda cost: cost.reward.mean)
        return [
            f"Groups of {best.min_group_size} earn more than groups of "
            f"{self.costs[0].min_group_size}: this learner is not at its best with small groups, "
            "and larger ones are always allowed."
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "config": dict(self.config),
            "best_arm": self.best_arm,
            "full_knowledge": self.full_knowledge,
            "mean_rate": self.mean_rate,
            "costs": [asdict(cost) for cost in self.costs],
            "rounds": self.rounds.tolist(),
            "curves": {
                str(cost.min_group_size): curve.tolist()
                for cost, curve in zip(self.costs, self.curves, strict=True)
            },
            "recommended": self.recommended and self.recommended.min_group_size,
            "notes": self.notes,
            "recommendation": self.recommendation,
        }


def _users(cost: Cost) -> str:
    return f"{cost.min_group_size} user{'s' if cost.min_group_size > 1 else ''}"


def passing_round(curve: FloatArray, best: float, rounds: LongArray) -> int | None:
    """Return the first round from which on every stretch earns more than ``best``, or None.

    >>> passing_round(np.array([1.0, 3.0, 1.0, 3.0, 4.0]), 2.0, np.array([10, 20, 30, 40, 50]))
    31
    """
    behind = np.flatnonzero(curve <= best)
    if not len(behind):
        return 1
    last = int(behind[-1])
    return None if last == len(curve) - 1 else int(rounds[last]) + 1
