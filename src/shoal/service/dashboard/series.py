"""A campaign as curves: released rounds in as many steps as a chart can show.

Rounds are thinned in the database: a point stands for ``width`` rounds, a power of two, so that a
page costs the same after ten rounds and after ten thousand. Nothing of a round is read before the
learner has it on record (threat 17), and nothing of an open one at all (threat 21).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, case, func, or_, select

from shoal.arrays import FloatArray, LongArray
from shoal.service.aggregator.noise import variance_of
from shoal.service.campaign import Campaign
from shoal.service.store import aggregator as store

MOST_POINTS = 240
FEW = 10  # rounds that count as the first, and as the latest
HALF_95 = 1.96


_table = store.summaries
_SUMS = ("users", "totals", "merged", "withheld", "homogeneous", "reporters", "total")
_LEAST = ("users", "smallest_group", "smallest_total")


@dataclass(frozen=True)
class Estimates:
    """Each arm's mean and half of its 95 % interval, NaN for none; and whose they are."""

    by_learner: bool
    means: FloatArray  # (n_arms,)
    half_widths: FloatArray  # (n_arms,)


@dataclass(frozen=True)
class Series:
    """Released rounds, ``width`` to a point, and what they come to.

    ``sums`` and ``least`` are by column, each (n_points, n_arms); ``least`` has NaN for none.
    """

    width: int
    starts: LongArray  # (n_points,) the number of each point's first round, from 1
    last: int  # the last round shown
    sums: dict[str, FloatArray]
    least: dict[str, FloatArray]
    best: FloatArray  # (n_points,) the best single arm's mean, as it was estimated then
    estimates: Estimates
    first_reward: float
    latest_reward: float
    latest_noise: float  # half of the 95 % interval of what noise adds to it

    @property
    def ends(self) -> LongArray:
        """Return each point's last round."""
        return np.minimum(self.starts + self.width - 1, self.last)

    @property
    def reward(self) -> FloatArray:
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


def read(connection: Connection, name: str, campaign: Campaign, *, shown: int) -> Series:
    """Read a campaign's rounds up to ``shown``."""
    n_arms, steps = len(campaign.arms), campaign.reward_steps
    noise = variance_of(campaign) / steps**2
    width = width_for(shown)
    bucket = ((_table.c.number - 1) // width).label("bucket")
    rows = connection.execute(
        select(
            bucket,
            _table.c.arm,
            *(func.sum(_table.c[column]) for column in _SUMS),
            *(func.min(_table.c[column]) for column in _LEAST),
            func.min(case((_table.c.reporters > 0, _table.c.number))),
        )
        .where(_table.c.campaign == name, _table.c.number <= shown)
        .group_by(bucket, _table.c.arm)
    ).all()
    values = np.array([[np.nan if x is None else float(x) for x in row] for row in rows])
    values = values.reshape(-1, 3 + len(_SUMS) + len(_LEAST))
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
    heard_of = np.full(n_arms, np.inf)  # the first round in which anyone reported an arm's reward
    np.fmin.at(heard_of, arms, values[:, -1])
    bests, told = _told(connection, name, heard_of, shown, width)
    if told:
        best = np.array([bests.get(int(b), np.nan) for b in buckets]).reshape(-1)
        estimates = told
    else:
        best, estimates = _averages(sums, noise)
    first, _ = _reward(connection, name, 1, min(FEW, shown), steps)
    latest, totals = _reward(connection, name, max(1, shown - FEW + 1), shown, steps)
    return Series(
        width, starts, shown, sums, least, best, estimates, first, latest,
        HALF_95 * float(np.sqrt(totals * noise)),
    )  # fmt: skip


def _told(
    connection: Connection, name: str, heard_of: FloatArray, shown: int, width: int
) -> tuple[dict[int, float], Estimates | None]:
    """Return the learner's best arm at the end of each point, by bucket, and its last estimates.

    An arm that nobody has reported on yet is not the best of them.
    """
    table = store.estimates
    known = (table.c.campaign == name) & (table.c.number <= shown + 1)
    latest = select(func.max(table.c.number)).where(known).scalar_subquery()
    rows = connection.execute(
        select(table.c.number, table.c.millionths)
        .where(known, or_(table.c.number % width == 0, table.c.number == latest))
        .order_by(table.c.number)
    )
    bests, last = {}, None
    for number, packed in rows:
        # One for each slot; slots beyond the arms are free.
        given = np.frombuffer(packed, "<i4").reshape(2, -1)[:, : len(heard_of)]
        means, half_widths = np.where(given < 0, np.nan, given / 1e6)
        bests[(number - 1) // width] = _best(np.where(heard_of < number, means, np.nan))
        last = Estimates(True, means, half_widths)
    return bests, last


def _averages(sums: dict[str, FloatArray], noise: float) -> tuple[FloatArray, Estimates]:
    """Return what released totals say by themselves: averages of those who played an arm.

    ``noise`` is the variance of what is added to each total.
    """
    reporters = sums["reporters"].cumsum(axis=0)
    averages = _ratio(sums["total"].cumsum(axis=0), reporters)
    best = np.array([_best(row) for row in averages]).reshape(-1)
    n_arms = reporters.shape[1]
    means = averages[-1] if len(averages) else np.full(n_arms, np.nan)
    counts = reporters[-1] if len(averages) else np.zeros(n_arms)
    # Rewards in [0, 1] have a variance of at most m(1 - m); with noise m may be outside.
    true = np.clip(means, 0, 1)
    variances = _ratio(true * (1 - true), counts)
    variances += _ratio(sums["totals"].sum(axis=0) * noise, counts**2)
    return best, Estimates(False, means, HALF_95 * np.sqrt(variances))


def _best(means: FloatArray) -> float:
    return np.nan if np.isnan(means).all() else float(np.nanmax(means))


def _reward(
    connection: Connection, name: str, first: int, last: int, steps: int
) -> tuple[float, float]:
    """Return the mean reward of a span of rounds, and totals behind it per squared reporter."""
    total, reporters, totals = connection.execute(
        select(func.sum(_table.c.total), func.sum(_table.c.reporters), func.sum(_table.c.totals))
        .where(_table.c.campaign == name)
        .where(_table.c.number >= first, _table.c.number <= last)
    ).one()
    if not reporters:
        return np.nan, np.nan
    return float(total) / steps / float(reporters), float(totals) / float(reporters) ** 2


def _ratio(values: FloatArray, counts: FloatArray) -> FloatArray:
    ratio: FloatArray = np.divide(
        values, counts, out=np.full(values.shape, np.nan), where=counts > 0
    )
    return ratio
