"""A campaign as curves: released rounds in as many steps as a chart can show.

Rounds are thinned in the database: a point stands for ``width`` rounds, a power of two, so that a
page costs the same after ten rounds and after ten thousand. Nothing of a round is read before the
learner has it on record (threat 17), and nothing of an open one at all (threat 21).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, func, or_, select

from shoal.service.store import aggregator as store

MOST_POINTS = 240
FEW = 10  # rounds that count as the first, and as the latest
HALF_95 = 1.96

Floats = NDArray[np.float64]

_table = store.summaries
_SUMS = ("users", "totals", "merged", "withheld", "homogeneous", "reporters", "total")
_LEAST = ("users", "smallest_group", "smallest_total")


@dataclass(frozen=True)
class Estimates:
    """Each arm's mean and half of its 95 % interval, NaN for none; and whose they are."""

    by_learner: bool
    means: Floats  # (n_arms,)
    half_widths: Floats  # (n_arms,)


@dataclass(frozen=True)
class Series:
    """Released rounds, ``width`` to a point, and what they come to.

    ``sums`` and ``least`` are by column, each (n_points, n_arms); ``least`` has NaN for none.
    """

    width: int
    starts: NDArray[np.int64]  # (n_points,) the number of each point's first round, from 1
    last: int  # the last round shown
    sums: dict[str, Floats]
    least: dict[str, Floats]
    best: Floats  # (n_points,) the best single arm's mean, as it was estimated then
    estimates: Estimates
    first_reward: float
    latest_reward: float

    @property
    def ends(self) -> NDArray[np.int64]:
        """Return each point's last round."""
        return np.minimum(self.starts + self.width - 1, self.last)

    @property
    def reward(self) -> Floats:
        """Return the mean reward of those behind released totals, (n_points,)."""
        return _ratio(self.sums["total"].sum(axis=1), self.sums["reporters"].sum(axis=1))

    def count(self, column: str) -> int:
        """Return a column's sum over all rounds and arms."""
        return int(self.sums[column].sum())

    def smallest(self, column: str) -> int | None:
        """Return the least value of a column over all rounds and arms, None if there is none."""
        found = self.least[column]
        return None if np.isnan(found).all() else int(np.nanmin(found))


def width_for(n_rounds: int) -> int:
    """Return how many rounds a point stands for.

    >>> width_for(0), width_for(240), width_for(241), width_for(2000)
    (1, 1, 2, 16)
    """
    width = 1
    while n_rounds > width * MOST_POINTS:
        width *= 2
    return width


def read(connection: Connection, name: str, *, n_arms: int, shown: int, steps: int) -> Series:
    """Read a campaign's rounds up to ``shown``; ``steps`` is the grid that totals are on."""
    width = width_for(shown)
    bucket = ((_table.c.number - 1) // width).label("bucket")
    rows = connection.execute(
        select(
            bucket,
            _table.c.arm,
            *(func.sum(_table.c[column]) for column in _SUMS),
            *(func.min(_table.c[column]) for column in _LEAST),
        )
        .where(_table.c.campaign == name, _table.c.number <= shown)
        .group_by(bucket, _table.c.arm)
    ).all()
    values = np.array([[np.nan if x is None else float(x) for x in row] for row in rows])
    values = values.reshape(-1, 2 + len(_SUMS) + len(_LEAST))
    buckets, place = np.unique(values[:, 0].astype(np.int64), return_inverse=True)
    arms = values[:, 1].astype(np.int64)
    sums, least = {}, {}
    for offset, column in enumerate(_SUMS, start=2):
        sums[column] = np.zeros((len(buckets), n_arms))
        sums[column][place, arms] = values[:, offset]
    for offset, column in enumerate(_LEAST, start=2 + len(_SUMS)):
        least[column] = np.full((len(buckets), n_arms), np.nan)
        least[column][place, arms] = values[:, offset]
    sums["total"] /= steps
    starts = buckets * width + 1
    told = _told(connection, name, n_arms, shown, width)
    if told:
        best = np.array([_best(told.get(int(b))) for b in buckets]).reshape(-1)
        estimates = Estimates(True, *told[max(told)])
    else:
        best, estimates = _averages(sums)
    ends = ((1, min(FEW, shown)), (max(1, shown - FEW + 1), shown))
    first, latest = (_reward(connection, name, *span, steps) for span in ends)
    return Series(width, starts, shown, sums, least, best, estimates, first, latest)


def _told(
    connection: Connection, name: str, n_arms: int, shown: int, width: int
) -> dict[int, tuple[Floats, Floats]]:
    """Return what the learner estimated at the end of each point, by bucket."""
    table = store.estimates
    known = (table.c.campaign == name) & (table.c.number <= shown + 1)
    latest = select(func.max(table.c.number)).where(known).scalar_subquery()
    rows = connection.execute(
        select(table.c.number, table.c.millionths)
        .where(known, or_(table.c.number % width == 0, table.c.number == latest))
        .order_by(table.c.number)
    )
    found = {}
    for number, packed in rows:
        # One for each slot; slots beyond the arms are free.
        given = np.frombuffer(packed, "<i4").reshape(2, -1)[:, :n_arms]
        pair = np.where(given < 0, np.nan, given / 1e6)
        found[(number - 1) // width] = pair[0], pair[1]
    return found


def _averages(sums: dict[str, Floats]) -> tuple[Floats, Estimates]:
    """Return what released totals say by themselves: averages of those who played an arm."""
    reporters = sums["reporters"].cumsum(axis=0)
    averages = _ratio(sums["total"].cumsum(axis=0), reporters)
    best = np.array([_best((row, row)) for row in averages]).reshape(-1)
    n_arms = reporters.shape[1]
    means = averages[-1] if len(averages) else np.full(n_arms, np.nan)
    counts = reporters[-1] if len(averages) else np.zeros(n_arms)
    # Rewards in [0, 1] have a variance of at most m(1 - m).
    half_widths = HALF_95 * np.sqrt(_ratio(means * (1 - means), counts))
    return best, Estimates(False, means, half_widths)


def _best(pair: tuple[Floats, Floats] | None) -> float:
    return np.nan if pair is None or np.isnan(pair[0]).all() else float(np.nanmax(pair[0]))


def _reward(connection: Connection, name: str, first: int, last: int, steps: int) -> float:
    total, reporters = connection.execute(
        select(func.sum(_table.c.total), func.sum(_table.c.reporters))
        .where(_table.c.campaign == name)
        .where(_table.c.number >= first, _table.c.number <= last)
    ).one()
    return float(total) / steps / float(reporters) if reporters else np.nan


def _ratio(values: Floats, counts: Floats) -> Floats:
    ratio: Floats = np.divide(values, counts, out=np.full(values.shape, np.nan), where=counts > 0)
    return ratio
