"""What a price owes to a log: populations at all points that the log allows, and their intervals.

Runs play populations ("worlds") between the least and the largest possible gain, evenly. A line
through what the learner gained there against what full knowledge would gain says what it would
gain in every world of the posterior, never more than full knowledge and never less than the worst
arm: where all arms are equal for all users, nothing is gained or lost. The interval joins how the
worlds differ, which is what the log does not know, with how far the runs lie from the line, which
is luck.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.arrays import FloatArray
from shoal.experiments.statistics import Interval, students_quantile

if TYPE_CHECKING:
    from shoal.instances.population import Population


def choose_worlds(population: Population, n_runs: int) -> list[int]:
    """Return the place of the world that each run plays.

    The order is such that any first few runs already span the interval of the possible gain.
    """
    gains = np.array([world.gain for world in population.worlds])
    low, _, high = population.gain
    places = [0.0, 1.0]
    while len(places) < n_runs:  # halves, quarters, eighths: van der Corput's sequence
        number, place, step = len(places) - 1, 0.0, 0.5
        while number:
            place += step * (number % 2)
            number, step = number // 2, step / 2
        places.append(place)
    targets = [low + place * (high - low) for place in places[:n_runs]]
    return [int(np.argmin(np.abs(gains - target))) for target in targets]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a learner would gain over the best arm in all worlds that a log allows.

    Attributes
    ----------
    gain, reward, share
        Intervals as in ``Cost``.
    luck
        Half-width of the gain's interval in one world.
    """

    gain: Interval
    reward: Interval
    share: Interval
    luck: float


def outlook(population: Population, possible: FloatArray, gains: FloatArray) -> Outlook:
    """Join the runs with the posterior.

    Parameters
    ----------
    possible
        What full knowledge would gain over the best arm in each run.
    gains
        What the learner gained.
    """
    design = np.column_stack([np.ones(len(gains)), possible])
    if np.ptp(possible) < 1e-9 or len(gains) < 3:  # a line through two points leaves no luck
        design = design[:, :1]
    coefficients = np.linalg.lstsq(design, gains, rcond=None)[0]
    n_free = max(1, len(gains) - design.shape[1])
    residuals = gains - design @ coefficients
    deviation = float(np.sqrt((residuals**2).sum() / n_free * (1 + 1 / len(gains))))
    luck = students_quantile(n_free) * deviation
    world_gains = np.array([world.gain for world in population.worlds])
    predicted = coefficients[0] + (coefficients[1] if len(coefficients) > 1 else 0.0) * world_gains
    most_lost = np.array([world.most_lost for world in population.worlds])
    predicted = np.clip(predicted, -most_lost, world_gains)
    best = np.array([world.best_arm for world in population.worlds])
    # Luck can't bring more than full knowledge, nor less than the worst arm.
    lowest = population.range_of(best - most_lost).low
    highest = population.range_of(best + world_gains).high
    gain = _joined(population, predicted, luck)
    gain = gain.within(-population.range_of(most_lost).high, population.gain.high)
    reward = _joined(population, best + predicted, luck).within(lowest, highest)
    # The median of a sum is not the sum of the medians: without this, columns would contradict.
    middle = population.range_of(best).median + gain.mean
    return Outlook(
        gain=gain,
        reward=Interval(middle, min(reward.low, middle), max(reward.high, middle)),
        share=_share(population, predicted, world_gains, luck),
        luck=luck,
    )


def luck_that_stays(n_runs: int) -> float:
    """Return the part of luck that more runs than these would leave: chance in one world.

    >>> round(luck_that_stays(5), 2), round(luck_that_stays(120), 2)
    (0.56, 0.99)
    """
    quantile = students_quantile(max(1, n_runs - 2))
    return float(students_quantile(10**6) / (quantile * (1 + 1 / n_runs) ** 0.5))


def _joined(population: Population, values: FloatArray, luck: float) -> Interval:
    low, median, high = population.range_of(values)
    return Interval(
        median,
        median - float(np.hypot(median - low, luck)),
        median + float(np.hypot(high - median, luck)),
    )


def _share(
    population: Population, predicted: FloatArray, possible: FloatArray, luck: float
) -> Interval:
    """Return the share of the possible gain, over worlds that have one; 0 where none may exist."""
    real = possible > 0.01 * population.best_arm
    if not real.any():
        return Interval(0.0, 0.0, 0.0)
    shares = np.where(real, predicted / np.where(real, possible, 1.0), 0.0)
    joined = _joined(population, shares, luck / float(np.median(possible[real])))
    return joined.within(-1.0, 1.0)
