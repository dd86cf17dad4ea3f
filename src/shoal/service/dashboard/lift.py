"""What personalisation gives: reward against that of the holdout, with its 95 % interval.

Each held-out report is compared with the others' mean of the same round, so that what moves both,
a holiday for example, moves nothing here. The interval is about *users*: a person who reports in
fifty rounds is one person. The holdout is a random sample of all users, so that the difference of
the two means has at most the variance of both (Neyman). Of that,

- the holdout's part is measured, from the differences between blocks that stay the same over the
  rounds (``aggregator.holdout``), if there are ``MIN_BLOCKS``: with Student's t for as many;
- otherwise it is bounded: rewards in [0, 1] with mean m have a variance of at most m (1 - m), as if
  everyone always gave the same answer, so that a mean over n people has at most m (1 - m) / n;
- the others', who are many more, is always bounded. Nobody's single answers are known.

A bound is wider than it needs to be where users agree, never narrower.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from sqlalchemy import Connection, func, select

from shoal.arrays import FloatArray, LongArray
from shoal.service.dashboard.released import nth_released
from shoal.service.store import aggregator as store

LIFT_ROUNDS = 50  # the last ones
MIN_BLOCKS = 8  # whose differences are measured; with four the bound is hardly wider
LEVEL = 0.975  # of each end


@dataclass(frozen=True)
class Lift:
    """How much more those with arms of their own get than those held out, a report."""

    mean: float
    half_width: float  # of the 95 % interval
    reference: float  # the holdout's mean reward
    n_rounds: int  # in which both were measured
    n_users: int  # held out, who reported in a round on average
    by_blocks: bool  # else the variance is a bound

    @property
    def low(self) -> float:
        """Return the lower end of the interval."""
        return max(-1.0, self.mean - self.half_width)  # rewards are in [0, 1]

    @property
    def high(self) -> float:
        """Return the upper end of the interval."""
        return min(1.0, self.mean + self.half_width)


@dataclass(frozen=True)
class RoundSums:
    """Totals of rewards in [0, 1], of rounds and, of the holdout, of blocks; parallel columns."""

    rounds: LongArray
    blocks: LongArray
    totals: FloatArray
    reporters: FloatArray
    n_totals: FloatArray  # released, each with its noise


def measure(others: RoundSums, held_out: RoundSums, *, noise: float = 0.0) -> Lift | None:
    """Return the lift over the rounds in which both were measured, None where there is none.

    ``noise`` is the variance of what is added to each total.
    """
    common = np.intersect1d(others.rounds[others.reporters > 0],
                            held_out.rounds[held_out.reporters > 0])  # fmt: skip
    others, held_out = _only(others, common), _only(held_out, common)
    if not common.size:
        return None
    totals, reporters = _by(others.rounds, common, others.totals, others.reporters)
    place = np.searchsorted(common, held_out.rounds)
    differences = held_out.reporters * (totals / reporters)[place] - held_out.totals
    n_reports = held_out.reporters.sum()
    mean = float(differences.sum() / n_reports)
    levels = 2 ** np.floor(np.log2(held_out.blocks)).astype(np.int64)
    n_blocks = int(levels.min())
    variance = _bound(others, len(common), noise)
    quantile = NormalDist().inv_cdf(LEVEL)
    if n_blocks >= MIN_BLOCKS:
        blocks, index = np.unique(held_out.blocks // (levels // n_blocks), return_inverse=True)
        n_blocks = len(blocks)  # some may never have been measured
    if by_blocks := n_blocks >= MIN_BLOCKS:
        sums = np.bincount(index, differences), np.bincount(index, held_out.reporters)
        weights = sums[1] / n_reports
        spread = float((weights**2 * (sums[0] / sums[1] - mean) ** 2).sum())
        variance += spread * n_blocks / (n_blocks - 1)
        quantile = _students_quantile(n_blocks - 1)
    else:
        variance += _bound(held_out, len(common), noise)
    return Lift(
        mean, quantile * math.sqrt(variance), float(held_out.totals.sum() / n_reports),
        len(common), round(n_reports / len(common)), by_blocks,
    )  # fmt: skip


def _students_quantile(n_free: int) -> float:
    from scipy.special import stdtrit  # late: it takes half a second to load

    return float(stdtrit(n_free, LEVEL))


def _bound(sums: RoundSums, n_rounds: int, noise: float) -> float:
    """Return the largest variance that a mean over these users can have."""
    n_reports = float(sums.reporters.sum())
    mean = float(sums.totals.sum()) / n_reports
    bound = variance_bound(mean, n_reports / n_rounds)
    return float(bound + noise * sums.n_totals.sum() / n_reports**2)


def variance_bound(mean: float | FloatArray, n_users: float | FloatArray) -> FloatArray:
    """Return the largest variance of a mean of rewards in [0, 1] over so many users.

    Two more of each answer are counted (Agresti and Coull): a mean of exactly 0 is not certain.
    """
    n = np.asarray(n_users, np.float64)
    shrunk = (np.clip(mean, 0, 1) * n + 2) / (n + 4)
    variance: FloatArray = shrunk * (1 - shrunk) / np.where(n > 0, n, np.nan)
    return variance


def _only(sums: RoundSums, rounds: LongArray) -> RoundSums:
    chosen = np.isin(sums.rounds, rounds) & (sums.reporters > 0)
    return RoundSums(*(column[chosen] for column in vars(sums).values()))


def _by(rounds: LongArray, common: LongArray, *columns: FloatArray) -> list[FloatArray]:
    place = np.searchsorted(common, rounds)
    n_rounds = len(common)
    return [np.bincount(place, c, minlength=n_rounds).astype(np.float64) for c in columns]


def read_lift(
    connection: Connection, name: str, shown: int, steps: int, *, noise: float
) -> Lift | None:
    """Return the lift over the last rounds that may be shown; rewards are in ``steps``."""
    others, held_out = (
        _read(connection, name, shown, steps, blocks=blocks) for blocks in (False, True)
    )
    return measure(others, held_out, noise=noise)


def _read(connection: Connection, name: str, shown: int, steps: int, *, blocks: bool) -> RoundSums:
    table = store.holdout_summaries if blocks else store.summaries
    first = nth_released(connection, name, shown, LIFT_ROUNDS, newest=True)
    keys = [table.c.number, table.c.block] if blocks else [table.c.number]
    rows = connection.execute(
        select(*keys, *(func.sum(table.c[name]) for name in ("total", "reporters", "totals")))
        .where(table.c.campaign == name, table.c.number <= shown)
        .where(table.c.number >= first)
        .group_by(*keys)
    ).all()
    values = np.array([[float(x) for x in row] for row in rows]).reshape(-1, len(keys) + 3)
    number, *block, total, reporters, n_totals = values.T
    places = block[0] if block else np.ones(len(values))
    return RoundSums(
        number.astype(np.int64), places.astype(np.int64), total / steps, reporters, n_totals
    )
