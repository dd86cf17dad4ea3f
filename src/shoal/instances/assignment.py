"""Whether it was left to chance who saw which arm, and when.

A price takes a user's rows on an arm for a fair sample of what that arm would earn. Where arms were
shown to those who were thought to like them, or one after the other, rows say nothing about the
others or about another time, and no estimate can repair that. It can be noticed: those who saw an
arm, or the times at which it was seen, then saw it again more often than all did.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal.arrays import FloatArray

MANY_ERRORS, MANY_ROWS = 6.0, 30.0
"""Standard errors and rows above chance from which on a difference is reported.

At few rows a count is not normal: 30 rows in the place of one have a probability below 1e-6 too.
"""

LEAST_RATIO = 1.1
"""Smaller differences change little and are not reported."""


class Uneven(NamedTuple):
    """An arm that some groups of rows saw more often than others.

    Attributes
    ----------
    arm
        Its name.
    again
        Share of the arm among the other rows of a row that has it.
    share
        Its share of all rows, which would be the same by chance.
    """

    arm: str
    again: float
    share: float


def find_uneven(counts: FloatArray, arms: Sequence[object]) -> Uneven | None:
    """Return the arm that is farthest from chance, of groups with so many rows of each arm.

    ``counts`` are (n_groups, n_arms); None where chance explains all of them.

    >>> find_uneven(np.array([[2.0, 0.0], [0.0, 2.0]] * 50), ["tea", "coffee"])
    Uneven(arm='tea', again=1.0, share=0.5)
    """
    rows = counts.sum(axis=1)
    groups, rows = counts[rows > 1], rows[rows > 1]
    if not len(groups):
        return None
    again, shares, errors = excess_over_chance(groups, rows)
    excess = (again - shares) * groups.sum(axis=0)
    alarming = (errors > MANY_ERRORS) & (excess > MANY_ROWS) & (again > LEAST_RATIO * shares)
    if not alarming.any():
        return None
    arm = int(np.argmax(np.where(alarming, errors, 0.0)))
    return Uneven(str(arms[arm]), float(again[arm]), float(shares[arm]))


def excess_over_chance(
    counts: FloatArray, rows: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``again``, ``share`` and their difference in standard errors, each (n_arms,)."""
    totals = counts.sum(axis=0)
    shares = totals / rows.sum()
    # A row of an arm is followed by it in (n_arm - 1) / (n - 1) of the other rows.
    pairs = (counts * (counts - 1) / (rows - 1)[:, None]).sum(axis=0)
    again = np.divide(pairs, totals, out=np.zeros_like(pairs), where=totals > 0)
    # If all see arms alike; what errs in the shares of the whole log cancels.
    deviation = np.sqrt(2 * (rows / (rows - 1)).sum()) * shares * (1 - shares)
    excess = pairs - rows.sum() * shares**2
    errors = np.divide(excess, deviation, out=np.zeros_like(excess), where=deviation > 0)
    return again, shares, errors
