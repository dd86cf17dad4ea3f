"""Released rounds as time series, thinned to as many points as a chart can show.

Rounds are thinned in the database: a point stands for ``width`` rounds, a power of two, so that a
page costs the same after ten rounds and after ten thousand. Nothing of a round is read before the
learner has it on record (threat 17), and nothing of an open one at all (threat 21).
"""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, case, func, literal, or_, select

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.releases import variance_of
from shoal.service.campaign import Campaign
from shoal.service.dashboard.lift import Lift, read_lift, variance_bound
from shoal.service.dashboard.released import count_released, nth_released
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
    best: FloatArray  # (n_arms,) the share of users for whom it is the best arm
    spread: FloatArray  # (n_arms,) how users differ, as a deviation


@dataclass(frozen=True)
class Series:
    """Released rounds, ``width`` to a point.

    ``sums`` and ``minima`` are by column, each (n_points, n_arms); ``minima`` has NaN for none. So
    are those of the holdout, (n_points, 1).
    """

    width: int
    starts: LongArray  # (n_points,) the number of each point's first round, from 1
    last: int  # the last round shown
    n_rounds: LongArray  # (n_points,) released rounds in each point: some may be abandoned
    n_released: int  # released rounds in all
    sums: dict[str, FloatArray]
    minima: dict[str, FloatArray]
    holdout_sums: dict[str, FloatArray]
    holdout_minima: dict[str, FloatArray]
    times: list[int | None]  # (n_points,) when each point's last round was released
    best: FloatArray  # (n_points,) the best single arm's mean, as it was estimated then
    best_offered: float  # the last mean of the best arm that is not retired
    estimates: ArmIntervals
    first_reward: float
    latest_reward: float
    latest_noise: float  # half of the 95 % interval of what noise adds to it
    latest_reporters: float
    lift: Lift | None  # against the holdout

    @property
    def ends(self) -> LongArray:
        """Return each point's last round."""
        return np.minimum(self.starts + self.width - 1, self.last)

    @property
    def reward(self) -> FloatArray:
        """Return the mean reward of those behind released totals, (n_points,)."""
        return _ratio(self.sums["total"].sum(axis=1), self.sums["reporters"].sum(axis=1))

    @property
    def holdout_reward(self) -> FloatArray:
        """Return the mean reward of those held out, (n_points,)."""
        sums = self.holdout_sums
        return _ratio(sums["total"][:, 0], sums["reporters"][:, 0])

    def estimated_lift(self) -> tuple[float, float]:
        """Return the latest reward less the best single arm's estimate, and its half-width.

        The interval allows for chance in both; that the estimate comes from a model, and that the
        best of several is chosen, it can't allow for.
        """
        best = self.best_offered
        near = np.abs(self.estimates.means - best)
        if np.isnan(near).all() or np.isnan(self.latest_reward):
            return np.nan, np.nan
        chance = Z_95 * np.sqrt(variance_bound(self.latest_reward, self.latest_reporters))
        half_width = self.estimates.half_widths[np.nanargmin(near)]
        parts = [half_width, chance, self.latest_noise]
        return float(self.latest_reward - best), float(np.linalg.norm(parts))

    def per_point(self, column: str) -> FloatArray:
        """Return a column's sum over all arms and the holdout, (n_points,)."""
        total: FloatArray = self.sums[column].sum(axis=1) + self.holdout_sums[column].sum(axis=1)
        return total

    def minima_per_point(self, column: str) -> FloatArray:
        """Return a column's smallest value over arms and holdout, inf for none, (n_points,)."""
        values = np.hstack([self.minima[column], self.holdout_minima[column]])
        lowest: FloatArray = np.nanmin(values, axis=1, initial=np.inf)
        return lowest

    def count(self, column: str) -> int:
        """Return a column's sum over all rounds, arms and the holdout."""
        return int(self.per_point(column).sum())

    def smallest(self, column: str) -> int | None:
        """Return the smallest value of a column over all rounds, None if there is none."""
        smallest = self.minima_per_point(column).min(initial=np.inf)
        return int(smallest) if np.isfinite(smallest) else None


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
        is_offered = np.array([arm.until is None for arm in aggregator.directory.arms(name)])
        series = _read(connection, name, campaign, shown or 0, is_offered)
    return shown is not None or aggregator.rounds.latest(name) is None, series


def _read(
    connection: Connection, name: str, campaign: Campaign, shown: int, is_offered: BoolArray
) -> Series:
    n_arms, steps = len(campaign.arms), campaign.reward_steps
    noise = variance_of(campaign) / steps**2
    width = width_for(shown)
    values = _read_columns(connection, name, shown, width)
    held_out = _read_columns(connection, name, shown, width, holdout=True)
    buckets = np.unique(np.append(values[:, 0], held_out[:, 0]).astype(np.int64))
    sums, minima = _by_column(values, buckets, n_arms, steps)
    first_reported = np.full(n_arms, np.inf)  # the first round with a report on the arm
    np.fmin.at(first_reported, values[:, 1].astype(np.int64), values[:, -1])
    means_of, estimates = _learner_estimates(
        connection, name, first_reported, campaign.n_arms, shown
    )
    if estimates:
        unknown = np.full(n_arms, np.nan)
        means = np.array([means_of.get(int(b), unknown) for b in buckets]).reshape(-1, n_arms)
    else:
        means, estimates = _released_averages(sums, noise)
    best_offered = _best_offered(means, estimates, is_offered & np.isfinite(first_reported))
    end = nth_released(connection, name, shown, AVERAGED_ROUNDS, newest=False)
    start = nth_released(connection, name, shown, AVERAGED_ROUNDS, newest=True)
    first, _, _ = _reward(connection, name, 1, end, steps)
    latest, reporters, totals = _reward(connection, name, start, shown, steps)
    starts = buckets * width + 1
    n_rounds = count_released(connection, name, shown, width)
    return Series(
        width, starts, shown, np.array([n_rounds.get(b, 1) for b in buckets.tolist()], np.int64),
        sum(n_rounds.values()), sums, minima, *_by_column(held_out, buckets, 1, steps),
        _read_times(connection, name, np.minimum(starts + width - 1, shown)),
        _largest(means), best_offered, estimates, first, latest,
        Z_95 * float(np.sqrt(totals * noise)), reporters,
        read_lift(connection, name, shown, steps, noise=noise) if campaign.holdout else None,
    )  # fmt: skip


def _best_offered(means: FloatArray, estimates: ArmIntervals, mask: BoolArray) -> float:
    """Return the last mean of the best arm in a mask, NaN for none.

    It is that of the last point in ``means``, (n_points, n_arms), or of the latest ``estimates``
    where that point has none: the first round was played without one.
    """
    if not len(means):
        return np.nan
    last = means[-1] if np.isfinite(means[-1]).any() else estimates.means
    return float(_largest(np.where(mask, last, np.nan)))


def _by_column(
    values: FloatArray, buckets: LongArray, n_arms: int, steps: int
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the sums and the minima of rows as ``_read_columns`` gives them, by point and arm."""
    points = np.searchsorted(buckets, values[:, 0].astype(np.int64))
    arms = values[:, 1].astype(np.int64)

    def by_arm(offset: int, missing: float) -> FloatArray:
        column = np.full((len(buckets), n_arms), missing)
        column[points, arms] = values[:, offset]
        return column

    sums = {column: by_arm(i, 0.0) for i, column in enumerate(_SUMS, start=2)}
    minima = {column: by_arm(i, np.nan) for i, column in enumerate(_MINIMA, start=2 + len(_SUMS))}
    sums["total"] /= steps
    return sums, minima


def _read_columns(
    connection: Connection, name: str, shown: int, width: int, *, holdout: bool = False
) -> FloatArray:
    """Return rows of bucket, arm, ``_SUMS``, ``_MINIMA`` and the first round with reporters.

    The holdout has no arm of its own: it is 0.
    """
    table = store.holdout_summaries if holdout else _table
    bucket = ((table.c.number - 1) // width).label("bucket")
    keys = [bucket] if holdout else [bucket, table.c.arm]
    rows = connection.execute(
        select(
            bucket,
            literal(0) if holdout else table.c.arm,
            *(func.sum(table.c[column]) for column in _SUMS),
            *(func.min(table.c[column]) for column in _MINIMA),
            func.min(case((table.c.reporters > 0, table.c.number))),
        )
        .where(table.c.campaign == name, table.c.number <= shown)
        .group_by(*keys)
    ).all()
    values = np.array([[np.nan if x is None else float(x) for x in row] for row in rows])
    return values.reshape(-1, 3 + len(_SUMS) + len(_MINIMA))


def _read_times(connection: Connection, name: str, ends: LongArray) -> list[int | None]:
    """Return when these rounds were released, None where that is not known."""
    table = store.release_times
    query = select(table.c.number, table.c.at).where(table.c.campaign == name)
    rows = connection.execute(query.where(table.c.number.in_(ends.tolist())))
    times: dict[int, int] = {row.number: row.at for row in rows}
    return [times.get(number) for number in ends.tolist()]


def _learner_estimates(
    connection: Connection, name: str, first_reported: FloatArray, n_slots: int, shown: int
) -> tuple[dict[int, FloatArray], ArmIntervals | None]:
    """Return the learner's means at the end of each point, by bucket, and its last estimates.

    The mean of an arm without reports so far is NaN.
    """
    table, width = store.estimates, width_for(shown)
    known = (table.c.campaign == name) & (table.c.number <= shown + 1)
    latest = select(func.max(table.c.number)).where(known).scalar_subquery()
    rows = connection.execute(
        select(table.c.number, table.c.millionths)
        .where(known, or_(table.c.number % width == 0, table.c.number == latest))
        .order_by(table.c.number)
    )
    means_of, last = {}, None
    for number, column in rows:
        # One for each slot; slots beyond the arms are free.
        rows_of = np.frombuffer(column, "<i4").reshape(-1, n_slots)[:, : len(first_reported)]
        missing = np.full((4 - len(rows_of), rows_of.shape[1]), -1)  # of a policy that says less
        millionths = np.vstack([rows_of, missing])
        means, half_widths, *of_users = np.where(millionths < 0, np.nan, millionths / 1e6)
        means_of[(number - 1) // width] = np.where(first_reported < number, means, np.nan)
        last = ArmIntervals(True, means, half_widths, *of_users)
    return means_of, last


def _released_averages(
    sums: dict[str, FloatArray], noise: float
) -> tuple[FloatArray, ArmIntervals]:
    """Return the averages of those who played an arm, from released totals: at each point, at last.

    ``noise`` is the variance of what is added to each total.
    """
    averages = _ratio(sums["total"].cumsum(axis=0), sums["reporters"].cumsum(axis=0))
    counts = sums["reporters"].sum(axis=0)
    means = _ratio(sums["total"].sum(axis=0), counts)
    variances = variance_bound(means, counts)
    variances += _ratio(sums["totals"].sum(axis=0) * noise, counts**2)
    unknown = np.full_like(means, np.nan)
    half_widths = Z_95 * np.sqrt(variances)
    return averages, ArmIntervals(False, means, half_widths, unknown, unknown)


def _largest(means: FloatArray) -> FloatArray:
    """Return the largest mean of all arms, NaN where there is none."""
    return np.asarray(np.fmax.reduce(means, axis=-1))


def _reward(
    connection: Connection, name: str, first: int, last: int, steps: int
) -> tuple[float, float, float]:
    """Return a span's mean reward, its reporters, and its totals per squared reporter."""
    total, reporters, totals = connection.execute(
        select(func.sum(_table.c.total), func.sum(_table.c.reporters), func.sum(_table.c.totals))
        .where(_table.c.campaign == name)
        .where(_table.c.number >= first, _table.c.number <= last)
    ).one()
    if not reporters:
        return np.nan, 0.0, np.nan
    n_reports = float(reporters)
    return float(total) / steps / n_reports, n_reports, float(totals) / n_reports**2


def _ratio(values: FloatArray, counts: FloatArray) -> FloatArray:
    ratio: FloatArray = np.divide(
        values, counts, out=np.full(values.shape, np.nan), where=counts > 0
    )
    return ratio
