"""What anonymity costs, in words for those who decide: intervals and a recommendation.

All of it compares three earnings per user and round: the learner's, those of the best single arm
for everyone, and those of full knowledge, where every user plays its best arm. The share captured
is (learner - best arm) / (full knowledge - best arm), as a ratio of means over the runs. With a
log, intervals are those of ``logged``: they hold what the log does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import FloatArray, LongArray
from shoal.environments import REWARDS, Bernoulli, Bounded
from shoal.experiments.price import recommend
from shoal.experiments.price.logged import luck_that_stays, outlook
from shoal.experiments.statistics import (
    Interval,
    mean_interval,
    prediction_interval,
    ratio_interval,
)
from shoal.model.scale import UNCHANGED, Scale
from shoal.notebook import html_table

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from shoal.instances.population import Population

AT_LEAST = 5
"""The smallest groups that are recommended, as the service's least group size."""

NATS = "Nats are units of log-likelihood: above 0, predictions with tastes are better."
"""What the check on rows held out counts."""

MIN_NARROWING = 0.1
"""Part of an interval's width that more runs must take away to be advised."""

FAR_NOISE = 2.0
"""Ratio of the variance played to the log's, or its inverse, from which on it is said."""

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
    gain
        Reward above that of the best single arm; a recommendation needs an interval above 0.
    luck
        Half-width that the gain's interval would have if the log told everything; None without.
    loss
        Reward lost against the smallest group size, run by run on the same populations.
    homogeneous
        Expected share of totals in which all users have the same reward of 0 or 1, so that the
        total reveals it: m^C + (1 - m)^C with m the mean reward. None for other rewards.
    passes_at
        The round from which on more is earned than by the best single arm, or None; it says
        nothing where the interval of the gain does not lie above 0.
    runs
        The reward of each run.
    """

    min_group_size: int
    reward: Interval
    one_population: Interval
    share: Interval
    gain: Interval
    luck: float | None
    loss: Interval
    homogeneous: float | None
    passes_at: int | None
    runs: tuple[float, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Price:
    """The answer of ``price``.

    Attributes
    ----------
    costs
        One for each group size, in increasing order.
    best_arm
        Reward per user and round of the best single arm for everyone.
    full_knowledge
        The same where every user plays its best arm.
    mean_rate
        The same of a random arm.
    bands
        The same three with their intervals, by name.
    rounds
        Ends of the stretches into which the rounds are cut, (n_stretches,).
    curves
        Reward per user and round in each of them, (n_costs, n_stretches).
    config
        Everything needed to run it again.
    at_least
        Smaller groups are compared, but not recommended.
    population
        The posterior behind the populations, where they come from a log.
    """

    costs: Sequence[Cost]
    best_arm: float
    full_knowledge: float
    mean_rate: float
    bands: Mapping[str, Interval]
    rounds: LongArray
    curves: FloatArray
    config: Mapping[str, Any]
    at_least: int = AT_LEAST
    population: Population | None = None

    @classmethod
    def from_rewards(
        cls,
        sizes: Sequence[int],
        rewards: FloatArray,  # (n_sizes, n_runs, n_stretches)
        references: FloatArray,  # (n_runs, 3): best arm, full knowledge, random arm
        rounds: LongArray,
        config: Mapping[str, Any],
        *,
        at_least: int = AT_LEAST,
        population: Population | None = None,
    ) -> Price:
        """Compute the costs from the reward per user and round of every run."""
        lengths = np.diff(rounds, prepend=0)
        earned = rewards @ lengths / rounds[-1]  # (n_sizes, n_runs)
        best, full, _ = references.T
        full = np.where(full - best > ROUNDING * np.abs(full), full, best)
        bar = float(best.mean() + ROUNDING * abs(best.mean()))
        curves = rewards.mean(axis=1)
        bounded = "rewards" in config and REWARDS[config["rewards"]].bounded
        costs: list[Cost] = []
        for size, reward, curve in zip(sizes, earned, curves, strict=True):
            intervals, luck = _intervals(reward, best, full, population)
            if bounded:
                for name in ("reward", "one_population"):
                    intervals[name] = intervals[name].within(0.0, 1.0)
            rate = intervals["reward"].mean
            binary = config.get("rewards") == "bernoulli"
            costs.append(
                Cost(
                    min_group_size=size,
                    **intervals,
                    luck=luck,
                    loss=_loss(earned[0] - reward, costs, intervals["reward"], population),
                    homogeneous=rate**size + (1 - rate) ** size if binary else None,
                    passes_at=passing_round(curve, bar, rounds),
                    runs=tuple(reward.tolist()),
                )
            )
        bands = _bands(references, population)
        if bounded:
            bands = {name: band.within(0.0, 1.0) for name, band in bands.items()}
        return cls(
            costs, bands["best_arm"].mean, bands["full_knowledge"].mean, bands["mean_rate"].mean,
            bands, rounds, curves, config, at_least, population,
        )  # fmt: skip

    @property
    def recommended(self) -> Cost | None:
        """The largest groups that keep 90 % of the best gain.

        None if no gain is shown, or if it takes more runs to tell. Groups below ``at_least`` hide
        too little: they are there to compare with.
        """
        if self.more_runs is not None:
            return None
        return recommend.largest_that_keeps(recommend.candidates(self))

    @property
    def more_runs(self) -> int | None:
        """How many runs would probably decide, where these are too few; else None."""
        open_cost = recommend.undecided(self)
        return open_cost and open_cost[1]

    @property
    def recommendation(self) -> str:
        """One sentence for a document."""
        return recommend.recommendation(self)

    @property
    def scale(self) -> Scale:
        """What rewards of 0 and 1 stand for, where they come from a log in other units."""
        return UNCHANGED if self.population is None else self.population.scale

    def gain_in_words(self, cost: Cost) -> str:
        """Say what a size gains over the best arm: in percent where that has a meaning."""
        middle, low, high = recommend.gain_parts(self, cost.gain)
        return f"{middle} ({low} to {high})"

    def share_in_words(self, cost: Cost) -> str:
        """Say what part of the gap a size captures; of no gap, there is none."""
        gap = self.full_knowledge - self.best_arm
        return f"{cost.share.mean:z.0%}" if gap > ROUNDING * abs(self.full_knowledge) else "–"

    @property
    def notes(self) -> list[str]:
        """What a reader should know before trusting the numbers."""
        notes = []
        if self.scale.changes:
            notes.append(
                f"Rewards are on a scale: {self.scale}. Percentages are of the log's own rewards, "
                "all other numbers are on the scale."
            )
        if self.population is not None:
            check = self.population.held_out_tells
            check += f" {NATS}" if "nats" in check else ""
            notes += [self.population.tells, check, self._source_of_width]
            notes += self._noise_that_differs(self.population)
            notes += self.population.doubts
        better = [cost for cost in self.costs if cost.loss.high < 0]
        if better:
            best = max(better, key=lambda cost: cost.reward.mean)
            notes.append(
                f"Groups of {best.min_group_size} earn more than groups of "
                f"{self.costs[0].min_group_size}: this learner is not at its best with small "
                "groups, and larger ones are always allowed."
            )
        return notes

    def _noise_that_differs(self, population: Population) -> list[str]:
        """Say where rewards vary more or less, as they are played, than in the log."""
        played = {Bernoulli.rewards: 1.0, Bounded.rewards: Bounded.dispersion}
        kind = str(self.config.get("rewards"))
        if kind not in played or kind == population.rewards == Bernoulli.rewards:
            return []
        spread = population.arm_means * (1 - population.arm_means)
        ratio = float(played[kind] * np.median(spread) / np.median(population.noise))
        if 1 / FAR_NOISE < ratio < FAR_NOISE:
            return []
        speed = "faster" if ratio > 1 else "slower"
        return [
            f"Rewards are played as {kind}, with {ratio:.2g} times the variance of the log's rows: "
            f"from the real ones, learning would be {speed}."
        ]

    @property
    def _source_of_width(self) -> str:
        """Say whether the interval is wide because of the log or because of luck."""
        cost = recommend.judged(self)
        half = cost.gain.half
        luck = min(cost.luck or 0.0, half)
        source = f"The width of the interval for C = {cost.min_group_size} comes mostly from"
        if half > 2**0.5 * luck:
            return f"{source} how much users differ, which only more rows can tell."
        fewest = luck * luck_that_stays(len(cost.runs))
        narrower = 1 - float(np.hypot(fewest, np.sqrt(half**2 - luck**2))) / half if half else 0.0
        if narrower < MIN_NARROWING:
            return f"{source} the luck of a single campaign, which more runs hardly narrow."
        return f"{source} chance in the simulation; more runs narrow it by up to {narrower:.0%}."

    def __repr__(self) -> str:
        sizes = [cost.min_group_size for cost in self.costs]
        chosen = self.recommended
        size = f".min_group_size={chosen.min_group_size}" if chosen else "=None"
        return f"Price(min_group_sizes={sizes}, recommended{size})"

    def _repr_html_(self) -> str:
        rows = [
            (
                cost.min_group_size,
                cost.reward.mean,
                self.gain_in_words(cost),
                self.share_in_words(cost),
                recommend.passes_in_words(cost, never="never"),
            )
            for cost in self.costs
        ]
        columns = ["C", "reward", "gain on best arm", "share of gap", "passes at"]
        caption = "Reward per user and round; intervals are 95 %"
        return html_table(caption, columns, rows, *self.notes, self.recommendation)

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each group size; intervals in columns NAME, NAME_low and NAME_high."""
        import polars as pl

        rows = []
        for cost in self.costs:
            row: dict[str, Any] = {"min_group_size": cost.min_group_size}
            for name in ("reward", "one_population", "share", "gain", "loss"):
                part: Interval = getattr(cost, name)
                row |= {name: part.mean, f"{name}_low": part.low, f"{name}_high": part.high}
            rows.append(row | {"homogeneous": cost.homogeneous, "passes_at": cost.passes_at})
        kinds = {"homogeneous": pl.Float64, "passes_at": pl.Int64}
        return pl.DataFrame(rows, schema_overrides=kinds)

    def plot(self) -> alt.HConcatChart:
        """Draw what each group size earns, and when it starts to pay."""
        from shoal.figures import price_figure

        return price_figure(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "config": dict(self.config),
            "best_arm": self.best_arm,
            "full_knowledge": self.full_knowledge,
            "mean_rate": self.mean_rate,
            "scale": self.scale._asdict(),
            "bands": {name: asdict(band) for name, band in self.bands.items()},
            "at_least": self.at_least,
            "costs": [asdict(cost) for cost in self.costs],
            "rounds": self.rounds.tolist(),
            "curves": {
                str(cost.min_group_size): curve.tolist()
                for cost, curve in zip(self.costs, self.curves, strict=True)
            },
            "recommended": self.recommended and self.recommended.min_group_size,
            "doubts": [] if self.population is None else list(self.population.doubts),
            "notes": self.notes,
            "recommendation": self.recommendation,
        }


def _intervals(
    reward: FloatArray, best: FloatArray, full: FloatArray, population: Population | None
) -> tuple[dict[str, Interval], float | None]:
    """Return the intervals of one size by the name of their field, and the part of luck in them."""
    if population is None:
        intervals = {
            "reward": mean_interval(reward),
            "one_population": prediction_interval(reward),
            "share": ratio_interval(reward - best, full - best),
            "gain": mean_interval(reward - best),
        }
        return intervals, None
    view = outlook(population, full - best, reward - best)
    names = ("reward", "share", "gain")
    intervals = {name: getattr(view, name) for name in names} | {"one_population": view.reward}
    return intervals, view.luck


def _loss(
    differences: FloatArray,
    smaller: Sequence[Cost],
    reward: Interval,
    population: Population | None,
) -> Interval:
    """Return what is lost against the smallest size; with a log, around its difference in reward.

    The runs of a log are spread evenly over what it allows: their mean is not its median.
    """
    over_runs = mean_interval(differences)
    if population is None or not smaller:
        return over_runs
    middle = smaller[0].reward.mean - reward.mean
    return Interval(middle, middle - over_runs.half, middle + over_runs.half)


def _bands(references: FloatArray, population: Population | None) -> dict[str, Interval]:
    """Return what the best arm, full knowledge and a random arm earn, with intervals."""
    names = ("best_arm", "full_knowledge", "mean_rate")
    bands = {name: mean_interval(values) for name, values in zip(names, references.T, strict=True)}
    if population is not None:
        best = np.array([world.best_arm for world in population.worlds])
        gains = np.array([world.gain for world in population.worlds])
        random = np.array([world.random_arm for world in population.worlds])
        for name, values in zip(names, (best, best + gains, random), strict=True):
            low, median, high = population.range_of(values)
            bands[name] = Interval(median, low, high)
    return bands


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
