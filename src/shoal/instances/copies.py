"""Events that were recorded several times, in a log in which nothing else tells copies apart.

Where every event has m rows, every number of equal rows (user, arm, reward) is a multiple of m.
Chance hardly makes that. Of a user's n rows on an arm, let k of two rewards have the first one,
0 < k < n: k and n - k are both even with a probability below 1/2 whatever the user's mean, since
|1 - 2 mean|^n < mean^n + (1 - mean)^n; larger divisors are rarer still.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import bdtrc

from shoal.arrays import BoolArray

FALSE_ALARM = 1e-6
"""Probability that chance makes what the log shows, below which it is reported."""

MAX_COPIES = 12
"""Rows of one event that are looked for."""

MAX_COMPARED_ROWS = 500_000
"""About so many rows are looked at: those of the first users, which tell as much as all."""

MANY_COUNTS = 20
"""Numbers of equal rows, all multiples of one, of which chance makes fewer than one in 1e6."""

NEARLY = 0.9
"""A larger divisor is preferred if it divides at least this part of what the best one does."""


class Copies(NamedTuple):
    """Numbers of equal rows that are multiples of one number.

    Attributes
    ----------
    times
        That number: how often an event seems to be recorded.
    multiples
        Pairs of user and arm whose numbers of equal rows are all multiples of it.
    pairs
        Pairs that were looked at: those with different rewards, or all where these are few.
    """

    times: int
    multiples: int
    pairs: int

    @property
    def everywhere(self) -> bool:
        """Whether no pair is without copies."""
        return self.multiples == self.pairs


def find_copies(rows: pl.DataFrame) -> Copies | None:
    """Return how often events seem to be recorded; None where chance explains it.

    Users and arms are places from 0.

    >>> rows = pl.DataFrame({"user": range(40), "arm": 0, "reward": [0.0, 1.0] * 20})
    >>> find_copies(rows), find_copies(pl.concat([rows] * 3))
    (None, Copies(times=3, multiples=40, pairs=40))
    """
    if rows.height > MAX_COMPARED_ROWS:
        n_users = int(rows["user"].n_unique() * MAX_COMPARED_ROWS / rows.height)
        rows = rows.filter(pl.col("user") <= n_users)
    numbers = rows.group_by("user", "arm", "reward").len()
    divided = numbers.group_by("user", "arm").agg(
        pl.len().alias("n_rewards"),
        *((pl.col("len") % times == 0).all().alias(str(times)) for times in _candidates()),
    )
    commonest = rows["reward"].value_counts().sort("count", "reward")["reward"][-1]
    others = numbers.filter(pl.col("reward") != commonest).height
    for times in reversed(_candidates()):
        if divided[str(times)].all() and others >= MANY_COUNTS:
            return Copies(times, divided.height, divided.height)
    return _most_multiples(divided.filter(pl.col("n_rewards") > 1))


def _candidates() -> range:
    return range(2, MAX_COPIES + 1)


def _most_multiples(mixed: pl.DataFrame) -> Copies | None:
    """Return the divisor of more pairs with different rewards than chance allows, or None."""
    multiples = np.array([int(mixed[str(times)].sum()) for times in _candidates()])
    chances = bdtrc(multiples - 1.0, mixed.height, 0.5)  # of as many, or more
    if not mixed.height or chances.min() >= FALSE_ALARM / len(chances):
        return None
    enough: BoolArray = multiples >= NEARLY * multiples.max()
    place = int(np.flatnonzero(enough)[-1])
    return Copies(_candidates()[place], int(multiples[place]), mixed.height)
