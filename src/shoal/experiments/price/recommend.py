"""Which group size to recommend, and the sentence that says so.

A group size is recommended where its gain is *shown*: the interval lies above 0. Where it is not
shown, the reason decides what to do. If users hardly differ, or the log can't tell, the best single
arm is the answer. If only chance in the simulation makes the interval wide, the answer is to play
more runs: too few runs say nothing about users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.environments import REWARDS
from shoal.experiments.statistics import Interval, students_quantile
from shoal.model.plurals import count

if TYPE_CHECKING:
    from shoal.experiments.price.costs import Cost, Price

DEFAULT_LEARNER = "shoal"

KEEP = 0.9
"""The recommended group size keeps at least this part of the best one's gain."""

MIN_RUNS, MAX_RUNS = 5, 15
"""Populations that are played where the caller leaves their number open.

What ``MAX_RUNS`` do not show counts as not shown; fewer than ``MIN_RUNS`` can't even say how
many would be enough.
"""

FIRST_ADVICE = 6
"""Runs that are advised after fewer than ``MIN_RUNS``."""


def candidates(price: Price) -> list[Cost]:
    """Return the costs of the sizes that may be recommended."""
    return [cost for cost in price.costs if cost.min_group_size >= price.at_least]


def largest_that_keeps(costs: Sequence[Cost]) -> Cost | None:
    """Return the largest groups that keep ``KEEP`` of the best gain that is shown, or None."""
    gainful = [cost for cost in costs if cost.gain.low > 0]
    if not gainful:
        return None
    best = max(cost.gain.mean for cost in gainful)
    return [cost for cost in gainful if cost.gain.mean >= KEEP * best][-1]


def undecided(price: Price) -> tuple[Cost, int] | None:
    """Return the size that more runs would decide on, and how many runs; None if none would.

    It is the one with the largest gain among those that only chance in the simulation leaves
    unproven. One that is proven is preferred if it keeps ``KEEP`` of that gain.
    """
    costs = candidates(price)
    chosen = largest_that_keeps(costs)
    open_costs = [
        (cost, n_runs)
        for cost in costs
        if (chosen is None or chosen.gain.mean < KEEP * cost.gain.mean)
        and (n_runs := runs_to_show(price, cost)) is not None
    ]
    return max(open_costs, key=lambda pair: pair[0].gain.mean, default=None)


def judged(price: Price) -> Cost:
    """Return the size that the recommendation speaks of."""
    if (open_cost := undecided(price)) is not None:
        return open_cost[0]
    costs = candidates(price)
    chosen = largest_that_keeps(costs)
    return chosen or max(costs or price.costs, key=lambda cost: cost.gain.mean)


def runs_to_show(price: Price, cost: Cost) -> int | None:
    """Return how many runs would probably show the gain; None if no more runs would.

    With a log, runs narrow only the part of the interval that is due to chance in the simulation.
    """
    gain, n_runs = cost.gain, len(cost.runs)
    if not gain.low <= 0 < gain.mean or n_runs >= MAX_RUNS:
        return None
    below, from_log = gain.mean - gain.low, 0.0
    luck = below if cost.luck is None else min(cost.luck, below)
    if price.population is not None:
        if not price.population.shows_tastes or below > 2**0.5 * luck:
            return None
        from_log = below**2 - luck**2
    if n_runs < MIN_RUNS:
        return FIRST_ADVICE
    logged = price.population is not None
    for more in range(n_runs + 1, MAX_RUNS + 1):
        narrower = luck * _width(more, logged=logged) / _width(n_runs, logged=logged)
        if gain.mean**2 > from_log + narrower**2:
            return more
    return None


def _width(n_runs: int, *, logged: bool) -> float:
    """Return the half-width of an interval over runs whose deviation is 1.

    Of the mean over populations, or with a log of one population around a line through the runs.
    """
    if logged:
        return float(students_quantile(n_runs - 2) * (1 + 1 / n_runs) ** 0.5)
    return float(students_quantile(n_runs - 1) / n_runs**0.5)


def recommendation(price: Price) -> str:
    """Return one sentence for a document; it depends on the log where that is in doubt."""
    sentence = _sentence(price)
    if price.population is None or not price.population.doubts or not candidates(price):
        return sentence
    doubts = "the doubts about this log (in the notes)"
    if price.recommended is not None:
        begin = f"Only if {doubts} can be ruled out: "
    elif price.more_runs is None:
        begin = f"As long as {doubts} stand, "
    else:
        stay = f"As long as {doubts} stand, show everyone the best single arm."
        return f"{stay} Without them, the answer is u{sentence[1:]}"
    return f"{begin}{sentence[0].lower()}{sentence[1:]}"


def _sentence(price: Price) -> str:
    if not candidates(price):
        return (
            f"No recommendation: none of the group sizes compared is at least {price.at_least}, "
            f"the least that is recommended."
        )
    if (open_cost := undecided(price)) is not None:
        cost, more = open_cost
        return (
            f"Undecided: {len(cost.runs)} runs are too few to tell whether groups of at least "
            f"{users(cost)}{_with_policy(price)} earn more than the best single arm for "
            f"everyone{_on_average(price)} "
            f"({gain_between(price, cost.gain)}). Play more: n_runs={more}, or leave "
            "n_runs out."
        )
    chosen = largest_that_keeps(candidates(price))
    return _best_single_arm(price) if chosen is None else _use_groups(price, chosen)


def _best_single_arm(price: Price) -> str:
    costs = candidates(price)
    smaller = ", ".join(str(cost.min_group_size) for cost in costs[:-1])
    sizes = f"{smaller} or {users(costs[-1])}" if smaller else users(costs[-1])
    best = judged(price)
    of_which = f"groups of {best.min_group_size}: " if smaller else ""
    population = price.population
    begin = "Show everyone the best single arm: "
    if population is not None and not (population.shows_tastes or population.shows_agreement):
        begin = (
            "Show everyone the best single arm for now: this log can't tell whether users differ; "
        )
    return (
        f"{begin}within {count(int(price.rounds[-1]), 'round')}, learning{_with_policy(price)} "
        f"from groups of at least {sizes} is not shown to earn more{_on_average(price)} "
        f"({of_which}{gain_between(price, best.gain)})."
        f"{_left_out(price)}"
    )


def _with_policy(price: Price) -> str:
    """Name the learner, unless it is the default one: another may earn more."""
    policy = price.config.get("policy", DEFAULT_LEARNER)
    return "" if policy == DEFAULT_LEARNER else f" with {policy}"


def _on_average(price: Price) -> str:
    """Say of populations that were drawn that the caller's own may differ from their mean."""
    return " on average over such populations" if price.config.get("rate") is not None else ""


def _left_out(price: Price) -> str:
    """Name the sizes that are shown to gain, but are too small to be recommended."""
    small = [cost for cost in price.costs if cost.min_group_size < price.at_least]
    gainful = [str(cost.min_group_size) for cost in small if cost.gain.low > 0]
    if not gainful:
        return ""
    return (
        f" Groups of {' or '.join(gainful)} do, but are below at_least={price.at_least} and only "
        "there to compare."
    )


def _use_groups(price: Price, chosen: Cost) -> str:
    average = _on_average(price)
    sentence = (
        f"Use groups of at least {users(chosen)}{_with_policy(price)}: over "
        f"{count(int(price.rounds[-1]), 'round')}"
        f"{average and f',{average},'} they earn {price.gain_in_words(chosen)} more than the best "
        "single arm for everyone"
    )
    best = max(price.costs, key=lambda cost: cost.gain.mean)
    if best is not chosen:
        part = chosen.gain.mean / best.gain.mean
        alone = best.min_group_size == 1
        sentence += f", {part:.0%} of the gain "
        sentence += "without anonymity" if alone else f"with groups of {best.min_group_size}"
    larger = [cost for cost in price.costs if cost.min_group_size > chosen.min_group_size]
    if larger:
        sentence += f"; groups of {larger[0].min_group_size} "
        part = larger[0].gain.mean / best.gain.mean
        shown = larger[0].gain.low > 0
        sentence += f"would keep {part:.0%} of that gain" if shown else "are not shown to gain"
    return sentence + "."


def users(cost: Cost) -> str:
    """Return the size of a cost's groups in words."""
    return count(cost.min_group_size, "user")


def passes_in_words(cost: Cost, *, never: str) -> str:
    """Say from when on more is earned than by the best arm: a dash where no gain is shown."""
    if cost.passes_at is None:
        return never
    return f"round {cost.passes_at:,}" if cost.gain.low > 0 else "–"


def gain_parts(price: Price, gain: Interval) -> tuple[str, str, str]:
    """Return a gain over the best arm and its ends: in percent where that has a meaning."""
    kind = price.config.get("rewards")
    if kind in REWARDS and REWARDS[kind].bounded:
        gain = gain.within(-price.best_arm, 1.0)  # nobody loses more than all
    values = (gain.mean, gain.low, gain.high)
    middle, low, high = price.scale.parts_in_words(values, price.best_arm)
    return middle if "%" in middle else f"{middle} a round", low, high


def gain_between(price: Price, gain: Interval) -> str:
    """Return a gain in words that may stand in brackets: 20%, between -10% and 50%."""
    middle, low, high = gain_parts(price, gain)
    return f"{middle}, between {low} and {high}"
