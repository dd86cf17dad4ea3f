"""Rows of a log that are equal in every column: events recorded twice, or chance.

In a log of user, arm, reward of 0 or 1 and day, many events coincide by chance, and to leave them
out would change the rates. Two rows that agree in all columns but the reward are different events
if their rewards agree no more often than those of other rows of the same user and arm. Where
rewards are too rare or rows too few to tell, the further columns and the time decide: a copy has
the same number of a receipt or the same second, which different events hardly ever have. A column
that follows from the user, the arm or the reward, such as a user's age, tells nothing of copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.arrays import FloatArray

ROWS_COMPARED = 1_000_000
"""About so many rows are compared: all those of some users, who tell as much as everyone."""

MANY_PAIRS = 100
"""Pairs of rows from which a rate of agreement is estimated; of fewer, a wider set is taken."""

TELLING = 10.0
"""Pairs that disagree by chance, from which on it tells something if none does."""

ERRORS = 3.0
"""Standard errors above chance from which on rewards agree too often."""

NEARLY_ALL = 0.9
"""Part of the events whose further columns differ from all others', where these identify events."""

FEW_REPEATS = 0.1
"""Repeated rows for each event; where there are more, a column such as a visit may repeat them.

Then rows that agree in all columns but the reward must nearly always agree in the reward too."""

MAX_STRETCHES, TIMES_OF_A_STRETCH = 10, 3
"""Stretches of the log within which tastes hardly move, each of at least so many times."""

RATIO = 10.0
"""Agreements for each one by chance, from which on another column tells copies."""


class _Agreement(NamedTuple):
    """How often rows that agree in all other columns agree in this one too."""

    pairs: float
    others: float  # pairs that have less in common
    rate: float  # among these
    excess: float  # agreements above that rate
    error: float


def telling_columns(frame: pl.DataFrame, names: dict[str, str]) -> list[str]:
    """Return the columns that can tell copies from other events of the same user, arm and reward.

    Those are keys of the rows, and what does not follow from the user, the arm or the reward alone.

    >>> rows = pl.DataFrame({"user": [1, 1, 2, 2], "arm": [1, 2, 1, 2], "reward": [0, 1, 0, 1],
    ...                      "age": [30, 30, 40, 40], "day": [5, 6, 6, 5]})
    >>> telling_columns(rows, {"user": "user", "arm": "arm", "reward": "reward"})
    ['day']
    """
    roles = [names[role] for role in ("user", "arm", "reward")]
    frame = _some_users(frame, roles[0])
    n_rows = _n_different(frame, frame.columns)
    different = {role: _n_different(frame, [role]) for role in roles}

    def tells(name: str) -> bool:
        return _n_different(frame, [name]) == n_rows or all(
            _n_different(frame, [role, name]) > n for role, n in different.items()
        )

    return [name for name in frame.columns if name not in roles and tells(name)]


def repeats_by_chance(frame: pl.DataFrame, names: dict[str, str]) -> bool:
    """Say whether chance explains the rows that are equal in every column.

    ``names`` are the columns of user, arm, reward and, where there is one, time.

    >>> day = pl.DataFrame({"user": [1, 1] * 50, "arm": [1, 1] * 50, "day": [1, 1] * 50,
    ...                     "reward": [0, 1, 1, 0, 1] * 20})
    >>> repeats_by_chance(day, {"user": "user", "arm": "arm", "reward": "reward", "time": "day"})
    True
    """
    user, arm, reward = (names[role] for role in ("user", "arm", "reward"))
    frame = _some_users(frame, user)
    masks = _further_columns(frame, names)
    comparable = _without_columns_of_reward(frame, masks)
    rewards = _agreement(comparable, reward, [[user, arm]])
    if rewards.others >= MANY_PAIRS and rewards.pairs * (1 - rewards.rate) >= TELLING:
        if rewards.excess <= ERRORS * rewards.error:
            return True
        return _tastes_move(comparable, names, rewards.excess)
    visit = [user, names["time"]] if "time" in names else [user]
    tests = [
        _agreement(frame.filter(mask), name, [[*visit, arm], visit, [user], []])
        for name, mask in masks.items()
    ]
    if "time" in names:
        tests.append(_agreement(frame, names["time"], [[user, arm], [user], []]))
    return all(test.excess <= (RATIO - 1) * test.pairs * test.rate for test in tests)


def _further_columns(frame: pl.DataFrame, names: dict[str, str]) -> dict[str, pl.Series]:
    """Return the telling columns other than the time, with the rows in which they can differ."""
    others = [name for name in telling_columns(frame, names) if name not in names.values()]
    return {name: _can_differ(frame, name, names["reward"]) for name in others}


def _without_columns_of_reward(frame: pl.DataFrame, masks: dict[str, pl.Series]) -> pl.DataFrame:
    """Leave out columns by which rows differ because their rewards do."""
    return frame.drop(name for name, mask in masks.items() if not mask.all())


def _tastes_move(frame: pl.DataFrame, names: dict[str, str], excess: float) -> bool:
    """Say whether rewards of one user and arm agree as much at near times as at the same time.

    ``excess`` is by how much they agree more at the same time than at all times. Dates such as
    03/01/2026 are sorted as text: then times are less near, and less is explained.
    """
    user, arm, reward = (names[role] for role in ("user", "arm", "reward"))
    if names.get("time") not in frame.columns:
        return False
    time, stretch = frame[names["time"]], "".join(frame.columns)  # longer than any of their names
    numbers = time.cast(pl.Float64, strict=False) if time.dtype == pl.String else time
    place = (time if numbers.null_count() > time.null_count() else numbers).rank("dense") - 1
    n_times = time.n_unique()
    n_stretches = min(MAX_STRETCHES, n_times // TIMES_OF_A_STRETCH)
    timed = frame.with_columns((place * n_stretches // n_times).alias(stretch))
    near = _agreement(timed, reward, [[user, arm, stretch]])
    error = near.error * np.sqrt(1 + near.pairs / max(near.others, 1.0))  # the others vary too
    return bool(near.excess <= min(ERRORS * error, excess / 2))


def _can_differ(frame: pl.DataFrame, column: str, reward: str) -> pl.Series:
    """Mark rows whose reward has several values of a column, unlike a time of 0 for no click.

    Rewards of few rows, such as amounts, may have one by chance and are marked too.
    """
    differs = (pl.col(column).n_unique() > 1) | (pl.len() < MANY_PAIRS)
    return frame.select(differs.over(reward)).to_series()


def events_identified(frame: pl.DataFrame, names: dict[str, str]) -> bool:
    """Say whether rows that are equal in every column are copies for certain.

    They are where different events hardly ever agree in one of the further columns, whoever has
    them, as in the number of a receipt. A day does not identify an event: those of one visit may be
    alike; nor does a customer with a day, where products are the users. Nor does the number of a
    visit with many equal rows, unless their rewards agree as those of different events never do.

    >>> rows = pl.DataFrame({"user": [1, 2] * 50, "arm": 1, "reward": [0, 1, 1, 0] * 25,
    ...                      "receipt": range(100)})
    >>> names = {"user": "user", "arm": "arm", "reward": "reward"}
    >>> events_identified(pl.concat([rows, rows.head(5)]), names)
    True
    """
    frame = _some_users(frame, names["user"])
    n_events = _n_different(frame, frame.columns)
    telling = telling_columns(frame, names)
    different = max((_n_different(frame, [name]) for name in telling), default=0)
    if different < NEARLY_ALL * n_events:
        return False
    return frame.height <= (1 + FEW_REPEATS) * n_events or _rewards_never_differ(frame, names)


def _rewards_never_differ(frame: pl.DataFrame, names: dict[str, str]) -> bool:
    """Say whether rows that agree in all columns but the reward nearly always agree in it too.

    Not where rewards are so rare that those of different events would agree as well.
    """
    user, arm, reward = (names[role] for role in ("user", "arm", "reward"))
    comparable = _without_columns_of_reward(frame, _further_columns(frame, names))
    rewards = _agreement(comparable, reward, [[user, arm]])
    by_chance = rewards.pairs * (1 - rewards.rate)
    differing = by_chance - rewards.excess
    return by_chance >= TELLING and differing <= (1 - NEARLY_ALL) * by_chance


def _some_users(frame: pl.DataFrame, user: str) -> pl.DataFrame:
    """Return all rows of some users, about ``ROWS_COMPARED`` together."""
    if frame.height <= ROWS_COMPARED:
        return frame
    return frame.filter(pl.col(user).hash() % frame.height < ROWS_COMPARED)


def _n_different(frame: pl.DataFrame, columns: list[str]) -> int:
    """Return how many different rows there are in these columns."""
    return frame.select(columns).hash_rows().n_unique()


def _agreement(frame: pl.DataFrame, column: str, bases: Sequence[list[str]]) -> _Agreement:
    """Compare pairs that agree in all other columns with pairs that agree in a base alone."""
    rest = _sizes(frame, [name for name in frame.columns if name != column])
    pairs, copies = _pairs(rest), _pairs(_sizes(frame, frame.columns))
    rate, elsewhere = _pairs(_sizes(frame, [column])) / _pairs(_sizes(frame, [])), 0.0
    for base in bases:
        elsewhere = _pairs(_sizes(frame, base)) - pairs
        if elsewhere >= MANY_PAIRS or (base == bases[-1] and elsewhere > 0):
            rate = (_pairs(_sizes(frame, [*base, column])) - copies) / elsewhere
            break
    # Pairs of one group have rows in common, so that their agreements vary together.
    error = np.sqrt(rate * (1 - rate) * (rest * (rest - 1) ** 2).sum() / 2)
    return _Agreement(pairs, elsewhere, rate, copies - pairs * rate, float(error))


def _sizes(frame: pl.DataFrame, columns: list[str]) -> FloatArray:
    """Return the numbers of rows that agree in these columns."""
    if not columns:
        return np.array([float(frame.height)])
    sizes = frame.select(columns).hash_rows().value_counts()["count"]
    return sizes.to_numpy().astype(np.float64)


def _pairs(sizes: FloatArray) -> float:
    return float((sizes * (sizes - 1)).sum() / 2)
