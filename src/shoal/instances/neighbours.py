"""Rows of a user that follow each other closely: visits with one arm, and events recorded again.

The rows of a visit share its mood, and those of an event that a client sent twice are the same one.
Where they also share their arm, they agree as only tastes should. A clean log has neither: whether
the arms of successive rows agree, and how far rewards on one arm do, has nothing to do with the
time between the rows. So pairs of successive rows that lie close together are compared with the
other pairs of the same user, as if it were drawn by lot which of its pairs are the close ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.instances.copies import MAX_COMPARED_ROWS

CLOSE = 0.1
"""Rows are close if the time between them is a smaller part of the user's mean time between rows.

Where a user comes at random, so is a tenth of the pairs.
"""

MANY_ERRORS, MANY_LARGEST = 6.0, 8.0
"""Standard errors, and agreements as large as the largest, beyond chance in arms and in rewards.

Of rare rewards, 8 agreements that are all close, and 6 errors, have a probability of 1e-6.
"""


class CloseRows(NamedTuple):
    """Pairs of successive rows that agree more often where they are close.

    Attributes
    ----------
    pairs
        Pairs of successive rows that lie close together.
    same
        Share of these whose arms are the same.
    others
        The same of all other pairs.
    """

    pairs: int
    same: float
    others: float


def find_close_rows(rows: pl.DataFrame) -> CloseRows | None:
    """Return the close pairs if arms and rewards agree more often there; None by chance.

    ``rows`` have users and arms as places from 0, rewards and times.

    >>> rng = np.random.default_rng(0)
    >>> once = {"user": rng.integers(50, size=999), "arm": rng.integers(3, size=999),
    ...         "reward": rng.random(999), "time": 1e6 * rng.random(999)}
    >>> events = pl.DataFrame(once)
    >>> again = events.head(200).with_columns(pl.col("time") + 0.3)  # 0.3 seconds later
    >>> find_close_rows(events), find_close_rows(pl.concat([events, again])) is None
    (None, False)
    """
    if rows.height > MAX_COMPARED_ROWS:
        n_users = int(rows["user"].n_unique() * MAX_COMPARED_ROWS / rows.height)
        rows = rows.filter(pl.col("user") <= n_users)
    times = rows["time"].to_physical().to_numpy().astype(np.float64)
    users, arms, rewards = (rows[name].to_numpy() for name in ("user", "arm", "reward"))
    order = np.lexsort((times, users))
    users, arms, times = users[order], arms[order], times[order]
    means = np.bincount(arms, rewards[order]) / np.maximum(np.bincount(arms), 1)
    deviations = rewards[order] - means[arms]
    successive = users[1:] == users[:-1]
    user, gaps = users[1:][successive], np.diff(times)[successive]
    mean_gaps = np.bincount(user, gaps) / np.maximum(np.bincount(user), 1)
    close: BoolArray = gaps < CLOSE * mean_gaps[user]
    same: BoolArray = (arms[1:] == arms[:-1])[successive]
    products = (deviations[1:] * deviations[:-1])[successive]
    if not (
        _exceeds_chance(same.astype(np.float64), close, user)
        and _exceeds_chance(products[same], close[same], user[same])
    ):
        return None
    return CloseRows(int(close.sum()), float(same[close].mean()), float(same[~close].mean()))


def _exceeds_chance(agreement: FloatArray, close: BoolArray, user: LongArray) -> bool:
    excess, error = excess_of_close(agreement, close, user)
    largest = float(agreement.max(initial=0.0))
    return excess > max(MANY_ERRORS * error, MANY_LARGEST * largest)


def excess_of_close(
    agreement: FloatArray, close: BoolArray, user: LongArray
) -> tuple[float, float]:
    """Return the agreement of close pairs beyond the mean of their users, and its deviation.

    The deviation is that of as many pairs of each user, drawn without replacement.
    """
    pairs = np.maximum(np.bincount(user), 1).astype(np.float64)
    mean = np.bincount(user, agreement) / pairs
    squares = np.bincount(user, (agreement - mean[user]) ** 2)
    n_close = np.bincount(user, close).astype(np.float64)
    variances = n_close * (1 - n_close / pairs) * squares / np.maximum(pairs - 1, 1)
    return float((agreement - mean[user])[close].sum()), float(np.sqrt(variances.sum()))
