"""Released rounds as time series, thinned to as many points as a chart can show.

Rounds are thinned in the database: a point stands for ``width`` rounds, a power of two, so that a
page costs the same after ten rounds and after ten thousand. Nothing of a round is read before the
learner has it on record (threat 17), and nothing of an open one at all (threat 21).
"""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, case, func, or_, select

from shoal.arrays import FloatArray, LongArray
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.releases import variance_of
from shoal.service.campaign import Campaign
from shoal.service.store import aggregator as store

MAX_POINTS = 240
AVERAGED_ROUNDS = 10  # that count as the first, and as the latest
Z_95 = 1.96

_table = store.summaries
_SUMS = ("users", "totals", "merged", "withheld", "homogeneous", "reporters", "total")
_MINIMA = ("users", "smallest_group", "smallest_total")


@dataclass(frozen=True)
class ArmIntervals:
    """Each arm's mean and half of its 95 % interval, NaN for none."""

    by_learner: bool  # else averages of released totals
    means: FloatArray  # (n_arms,)
    half_widths: FloatArray  # (n_arms,)


@dataclass(frozen=True)
class Series:
    """Released rounds, ``width`` to a point.

    ``sums`` and ``minima`` are by column, each (n_points, n_arms); ``minima`` has NaN for none.
    """

    width: int
    starts: LongArray  # (n_points,) the number of each point's first round, from 1
    last: int  # the last round shown
    sums: dict[str, FloatArray]
    minima: dict[str, FloatArray]
    best: FloatArray  # (n_points,) the best single arm's mean, as it was estimated then
    estimates: ArmIntervals
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
        minima = self.minima[column]
        return None if np.isnan(minima).all() else int(np.nanmin(minima))


def width_for(n_rounds: int) -> int:
    """Return how many rounds a point stands for.

    >>> width_for(0), width_for(240), width_for(241), width_for(2000)
    (1, 1, 2, 16)
    """
    width = 1
    while n_rounds > width * MAX_POINTS:
        width *= 2
    return width


def read_released(aggregator: Aggregator, name: str) -> tuple[bool, Series]:
    """Return whether all released rounds are known to be shown, and those that may be shown."""
    campaign, shown = aggregator.directory.campaign(name), aggregator.releases.shown(name)
    with aggregator.database.read() as connection:
        series = _read(connection, name, campaign, shown or 0)
    return shown is not None or aggregator.rounds.latest(name) is None, series


def _read(connection: Connection, name: str, campaign: Campaign, shown: int) -> Series:
    n_arms, steps = len(campaign.arms), campaign.reward_steps
    noise = variance_of(campaign) / steps**2
    width = width_for(shown)
    values = _read_columns(connection, name, shown, width)
    buckets, points = np.unique(values[:, 0].astype(np.int64), return_inverse=True)
    arms = values[:, 1].astype(np.int64)

    def by_arm(offset: int, missing: float) -> FloatArray:
        column = np.full((len(buckets), n_arms), missing)
        column[points, arms] = values[:, offset]
        return column

    sums = {column: by_arm(i, 0.0) for i, column in enumerate(_SUMS, start=2)}
    minima = {column: by_arm(i, np.nan) for i, column in enumerate(_MINIMA, start=2 + len(_SUMS))}
    sums["total"] /= steps
    first_reported = np.full(n_arms, np.inf)  # the first round with a report on the arm
    np.fmin.at(first_reported, arms, values[:, -1])
    best_means, estimates = _learner_estimates(connection, name, first_reported, shown, width)
    if estimates:
        best = np.array([best_means.get(int(b), np.nan) for b in buckets])
    else:
        best, estimates = _released_averages(sums, noise)
    first, _ = _reward(connection, name, 1, min(AVERAGED_ROUNDS, shown), steps)
    start = max(1, shown - AVERAGED_ROUNDS + 1)
    latest, totals = _reward(connection, name, start, shown, steps)
    return Series(
        width, buckets * width + 1, shown, sums, minima, best, estimates, first, latest,
        Z_95 * float(np.sqrt(totals * noise)),
    )  # fmt: skip


def _read_columns(connection: Connection, name: str, shown: int, width: int) -> FloatArray:
    """Return rows of bucket, arm, ``_SUMS``, ``_MINIMA`` and the first round with reporters."""
    bucket = ((_table.c.number - 1) // width).label("bucket")
    rows = connection.execute(
        select(
            bucket,
            _table.c.arm,
            *(func.sum(_table.c[column]) for column in _SUMS),
            *(func.min(_table.c[column]) for column in _MINIMA),
            func.min(case((_table.c.reporters > 0, _table.c.number))),
        )
        .where(_table.c.campaign == name, _table.c.number <= shown)
        .group_by(bucket, _table.c.arm)
    ).all()
    values = np.array([[np.nan if x is None else float(x) for x in row] for row in rows])
    return values.reshape(-1, 3 + len(_SUMS) + len(_MINIMA))


def _learner_estimates(
    connection: Connection, name: str, first_reported: FloatArray, shown: int, width: int
) -> tuple[dict[int, float], ArmIntervals | None]:
    """Return the learner's best mean at the end of each point, by bucket, and its last estimates.

    An arm without reports so far does not count as the best.
    """
    table = store.estimates
    known = (table.c.campaign == name) & (table.c.number <= shown + 1)
    latest = select(func.max(table.c.number)).where(known).scalar_subquery()
    rows = connection.execute(
        select(table.c.number, table.c.millionths)
        .where(known, or_(table.c.number % width == 0, table.c.number == latest))
        .order_by(table.c.number)
    )
    best_means, last = {}, None
    for number, column in rows:
        # One for each slot; slots beyond the arms are free.
        millionths = np.frombuffer(column, "<i4").reshape(2, -1)[:, : len(first_reported)]
        means, half_widths = np.where(millionths < 0, np.nan, millionths / 1e6)
        reported = np.where(first_reported < number, means, np.nan)
        best_means[(number - 1) // width] = float(_largest(reported))
        last = ArmIntervals(True, means, half_widths)
    return best_means, last


def _released_averages(
    sums: dict[str, FloatArray], noise: float
) -> tuple[FloatArray, ArmIntervals]:
    """Return the averages of those who played an arm, from released totals alone.

    ``noise`` is the variance of what is added to each total.
    """
    averages = _ratio(sums["total"].cumsum(axis=0), sums["reporters"].cumsum(axis=0))
    counts = sums["reporters"].sum(axis=0)
    means = _ratio(sums["total"].sum(axis=0), counts)
    # Rewards in [0, 1] have a variance of at most m(1 - m); with noise m may be outside.
    bounded = np.clip(means, 0, 1)
    variances = _ratio(bounded * (1 - bounded), counts)
    variances += _ratio(sums["totals"].sum(axis=0) * noise, counts**2)
    return _largest(averages), ArmIntervals(False, means, Z_95 * np.sqrt(variances))


def _largest(means: FloatArray) -> FloatArray:
    """Return the largest mean of all arms, NaN where there is none."""
    return np.asarray(np.fmax.reduce(means, axis=-1))


def _reward(
    connection: Connection, name: str, first: int, last: int, steps: int
) -> tuple[float, float]:
    """Return the mean reward of a span of rounds, and its totals per squared reporter."""
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
