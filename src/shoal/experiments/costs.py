"""What anonymity costs, in the words of who has to decide: intervals and a recommendation.

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

KEEP = 0.9
"""The recommended group size keeps at least this part of the best one's gain."""

ROUNDING = 1e-9
"""Relative differences below this are the computer's."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with a 95 % interval, from Student's distribution over the runs."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2


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
    def from_runs(
        cls,
        sizes: Sequence[int],
        rewards: FloatArray,  # (n_sizes, n_runs, n_stretches)
        references: FloatArray,  # (n_runs, 3): best arm, full knowledge, random arm
        rounds: LongArray,
        config: Mapping[str, Any],
    ) -> Price:
        """Reckon the costs from what every run earned."""
        lengths = np.diff(rounds, prepend=0)
        earned = rewards @ lengths / rounds[-1]  # (n_sizes, n_runs)
        best, full, _ = references.T
        full = np.where(full - best > ROUNDING * np.abs(full), full, best)
        bar = float(best.mean() + ROUNDING * abs(best.mean()))
        curves = rewards.mean(axis=1)
        costs = [
            Cost(
                min_group_size=size,
                reward=of_mean(own),
                one_population=of_one(own),
                share=of_ratio(own - best, full - best),
                loss=of_mean(earned[0] - own),
                passes_at=passing(curve, bar, rounds),
                runs=tuple(own.tolist()),
            )
            for size, own, curve in zip(sizes, earned, curves, strict=True)
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
            kept = chosen.share.mean / best.share.mean
            alone = best.min_group_size == 1
            sentence += f", {kept:.0%} of the gain "
            sentence += "without anonymity" if alone else f"with groups of {best.min_group_size}"
        larger = [cost for cost in self.costs if cost.min_group_size > chosen.min_group_size]
        if larger:
            kept = max(0.0, larger[0].share.mean / best.share.mean)
            sentence += f"; groups of {larger[0].min_group_size} would keep {kept:.0%}"
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


def of_mean(values: FloatArray) -> Interval:
    """Return the mean's interval.

    >>> of_mean(np.array([1.0, 2.0, 3.0]))
    Interval(mean=2.0, low=-0.48413..., high=4.48413...)
    """
    return _around(float(values.mean()), values.std(ddof=1) / len(values) ** 0.5, len(values))


def of_one(values: FloatArray) -> Interval:
    """Return the interval for one more value of the same kind."""
    n = len(values)
    return _around(float(values.mean()), values.std(ddof=1) * (1 + 1 / n) ** 0.5, n)


def of_ratio(parts: FloatArray, wholes: FloatArray) -> Interval:
    """Return the interval of mean(parts) / mean(wholes), by linearisation; 0 of nothing is 0."""
    whole = float(wholes.mean())
    if whole <= 0:
        return Interval(0.0, 0.0, 0.0)
    ratio = float(parts.mean()) / whole
    off = (parts - ratio * wholes) / whole
    return _around(ratio, off.std(ddof=1) / len(parts) ** 0.5, len(parts))


def _around(mean: float, error: float, n: int) -> Interval:
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, 0.975) * error)
    return Interval(mean, mean - half, mean + half)


def passing(curve: FloatArray, best: float, rounds: LongArray) -> int | None:
    """Return the first round from which on every stretch earns more than ``best``, or None.

    >>> passing(np.array([1.0, 3.0, 1.0, 3.0, 4.0]), 2.0, np.array([10, 20, 30, 40, 50]))
    31
    """
    behind = np.flatnonzero(curve <= best)
    if not len(behind):
        return 1
    last = int(behind[-1])
    return None if last == len(curve) - 1 else int(rounds[last]) + 1
