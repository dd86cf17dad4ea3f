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
from scipy.special import chdtrc

from shoal.arrays import FloatArray
from shoal.instances.copies import FALSE_ALARM

MANY_ROWS = 30.0
"""Rows above chance from which on a difference is reported.

At few rows a count is far from normal: 30 in the place of one are as rare as a false alarm.
"""

MAX_OF_A_USER = 30.0
"""Squared deviation, over its variance, that a single user adds at most; chance makes 4e-8 larger.

So a few accounts of testers, who see one arm, are no alarm: visits with one arm make all uneven.
"""

MIN_RATIO = 1.1
"""An arm's share at the times of one of its rows, over that at all times, from which on it matters.

Slow changes are taken out with the trend, and in a long log even the smallest is beyond chance.
"""


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


def find_uneven(
    counts: FloatArray,
    arms: Sequence[object],
    *,
    max_deviation: float = np.inf,
    least_ratio: float = 1.0,
) -> Uneven | None:
    """Return the arm that is farthest from chance, of groups with so many rows of each arm.

    None where chance explains all of them, by each arm alone and by all of them together.

    Parameters
    ----------
    counts
        Rows, (n_groups, n_arms).
    arms
        Their names.
    max_deviation
        Squared deviation, over its variance, that a single group adds at most.
    least_ratio
        The least of ``again`` over ``share`` that is reported.

    Examples
    --------
    >>> find_uneven(np.array([[2.0, 0.0], [0.0, 2.0]] * 50), ["tea", "coffee"])
    Uneven(arm='tea', again=1.0, share=0.5)
    """
    rows = counts.sum(axis=1)
    groups, rows = counts[rows > 1], rows[rows > 1]
    if len(groups) < 2:
        return None
    again, shares, excess, errors = excess_over_chance(groups, rows, max_deviation=max_deviation)
    n_free = len(groups) - 1
    chances = chdtrc(n_free, np.maximum(n_free + np.sqrt(2 * n_free) * errors, 0.0))
    alarming = (chances < FALSE_ALARM / len(chances)) & (excess > MANY_ROWS)
    alarming[:-1] &= again > least_ratio * shares
    alarming[-1] &= np.average(again, weights=shares) > least_ratio * (shares**2).sum()
    if not alarming.any():
        return None
    arm = int(np.argmax(errors[:-1]))
    return Uneven(str(arms[arm]), float(again[arm]), float(shares[arm]))


class Excess(NamedTuple):
    """How often rows of a group have the same arm, beyond chance.

    Attributes
    ----------
    again, shares
        As in ``Uneven``, (n_arms,).
    rows
        Rows of each arm that follow another one of it, beyond chance, and last of all arms.
    errors
        The same in standard errors, where no group adds more than the most.
    """

    again: FloatArray
    shares: FloatArray
    rows: FloatArray
    errors: FloatArray


def excess_over_chance(
    counts: FloatArray, rows: FloatArray, *, max_deviation: float = np.inf
) -> Excess:
    """Compare groups that have so many ``rows`` with chance, which makes errors of about 1."""
    totals = counts.sum(axis=0)
    shares = totals / rows.sum()
    # A row of an arm is followed by it in (n_arm - 1) / (n - 1) of the other rows.
    pairs = counts * (counts - 1) / (rows - 1)[:, None]
    again = np.divide(pairs.sum(axis=0), totals, out=np.zeros_like(totals), where=totals > 0)
    # If all see arms alike, 0 on average; what errs in the shares of the whole log cancels.
    by_group = pairs - 2 * shares * counts + rows[:, None] * shares**2
    excess = by_group.sum(axis=0)
    counted = np.minimum(by_group, max_deviation * shares * (1 - shares)).sum(axis=0)
    squares = (shares**2).sum()
    together = np.sqrt(squares - 2 * (shares**3).sum() + squares**2)
    deviation = np.append(shares * (1 - shares), together) * np.sqrt(2 * (rows / (rows - 1)).sum())
    counted, excess = (np.append(values, values.sum()) for values in (counted, excess))
    errors = np.divide(counted, deviation, out=np.zeros_like(counted), where=deviation > 0)
    return Excess(again, shares, excess, errors)
