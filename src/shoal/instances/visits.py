"""How often users come back, and whether their tastes move: what only a log with time can tell.

Time is cut into rounds. *Participation* is the chance that a user who has been here comes in a
later round of the log. Tastes that stay make the product of a user's deviations from the mean, on
one arm in two rounds, the same on average whatever the lag; where each mean moves by a variance of
d a round, it falls by d / 2 a round. The fall is estimated within pairs of user and arm, so that
users who came for longer may differ from the others, with an error over users (a sandwich
estimate).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.errors import InvalidInputError
from shoal.instances.copies import FALSE_ALARM
from shoal.instances.population.estimate import Range
from shoal.model.plurals import count

UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
"""Seconds of the units of a round's length."""

MONDAY = -3 * UNITS["d"]  # 1970-01-01 was a Thursday

MAX_ROUNDS = 1_000_000
"""Rounds of a log: more are a column that is no time, or a round that is too short."""

FAR = 10
"""Rounds without anyone, for each other round, from which on they are not counted.

A single 1970-01-01 that stands for no time would else be 20,000 rounds that its user missed.
"""

MAX_USERS_TIMED = 50_000
"""Users from whom movement is estimated; of more, a random sample."""

NORMAL_QUANTILE = 1.959964  # of a 95 % interval


class EmptyTime(NamedTuple):
    """Rounds without anyone that are not counted: times before and after, and rows beyond them.

    The rows are those before or after, whichever are fewer; ``early`` says that they are before.
    """

    last: str
    next: str
    rows: int
    early: bool


@dataclass(frozen=True, slots=True)
class Visits:
    """When users came.

    Attributes
    ----------
    round_length
        What a round is, in words.
    n_rounds
        Rounds from the first row to the last.
    returning
        Share of users who came in more than one round.
    gap
        Median number of rounds from one visit of a user to the next, or None.
    participation
        Chance that a user comes in a round after its first, or None in a log of one round.
    drift
        Variance by which a user's mean moves in a round, with a 95 % interval that may reach below
        0; None where nobody came to one arm in three rounds.
    empty_times
        Rounds without anyone that are not counted, since they are far more than all others.
    """

    round_length: str
    n_rounds: int
    returning: float
    gap: float | None
    participation: float | None
    drift: Range | None
    empty_times: tuple[EmptyTime, ...] = ()

    @property
    def moves(self) -> bool:
        """Whether the log shows that tastes move."""
        return self.drift is not None and self.drift.low > 0

    @property
    def learner_drift(self) -> float:
        """The drift to set for a learner: 0 unless the log shows that tastes move."""
        return self.drift.median if self.drift is not None and self.moves else 0.0

    def turnover(self, covariance: FloatArray) -> float:
        """Return the chance a round that a user's means are exchanged, where they have this spread.

        Exchanging means with another user moves them by twice the variance, and leaves the
        population as it is.
        """
        variance = float(np.diag(covariance).mean())
        return min(1.0, self.learner_drift / (2 * variance)) if variance > 0 else 0.0

    def __str__(self) -> str:
        lines = [f"{count(self.n_rounds, 'round')} of {self.round_length}"]
        if self.gap is None or self.participation is None:
            return lines[0] + ": nobody could come back."
        lines.append(
            f"{self.returning:.0%} of the users came back, half of the times within "
            f"{self.gap:.3g} {'round' if self.gap == 1 else 'rounds'}"
        )
        lines.append(f"a user comes in {self.participation:.2%} of the rounds after its first")
        return "; ".join(lines) + f". {self.movement}"

    @property
    def movement(self) -> str:
        """Whether tastes move, in words."""
        if self.drift is None:
            return "Nobody came to one arm in three rounds: whether tastes move is not known."
        low, middle, high = self.drift
        if self.moves:
            return f"Tastes move: set a drift of {middle:.2g} ({low:.2g} to {high:.2g})."
        return f"Tastes are not shown to move: set no drift (at most {max(high, 0.0):.2g} a round)."


def count_visits(
    times: pl.Series, users: LongArray, arms: LongArray, rewards: FloatArray, round_length: str
) -> Visits:
    """Return when users came, and how their rewards moved.

    Parameters
    ----------
    times
        Dates or numbers, one for each row.
    users, arms, rewards
        Places of user and arm, and the reward without any trend.
    """
    rounds, name = _rounds(times, round_length)
    rounds, empty_times = _without_empty(rounds, times)
    span = int(rounds.max()) + 1
    visits = np.sort(users * span + rounds)
    user, visit = np.divmod(visits[np.diff(visits, prepend=-1) > 0], span)
    returns = np.diff(user) == 0
    gaps = np.diff(visit)[returns]
    first = np.flatnonzero(np.diff(user, prepend=-1))
    later_rounds = int((span - 1 - visit[first]).sum())
    return Visits(
        round_length=name,
        n_rounds=span,
        returning=len(np.unique(user[1:][returns])) / len(first),
        gap=float(np.median(gaps)) if len(gaps) else None,
        participation=len(gaps) / later_rounds if later_rounds else None,
        drift=estimate_drift(users, arms, rounds, rewards),
        empty_times=empty_times,
    )


def _rounds(times: pl.Series, round_length: str) -> tuple[LongArray, str]:
    """Return the round of every row from 0, and a round's length in words."""
    match = re.fullmatch(r"(\d+)([mhdw])", str(round_length))
    if match is None or not int(match[1]):
        raise InvalidInputError(
            f"round_length must be a number of m, h, d or w, such as 1d; got {round_length!r}."
        )
    if times.dtype.is_temporal():
        stamps = times.cast(pl.Datetime("us")) if times.dtype == pl.Date else times
        if getattr(stamps.dtype, "time_zone", None):
            stamps = stamps.dt.replace_time_zone(None)  # days begin at midnight where people are
        seconds = stamps.to_physical().to_numpy().astype(np.float64) / _ticks(stamps)
        if match[2] == "w":
            seconds -= MONDAY
        length, name = float(int(match[1]) * UNITS[match[2]]), round_length
    else:
        seconds, length, name = times.to_numpy().astype(np.float64), 1.0, "one unit of time"
    numbers = np.floor(seconds / length)
    numbers -= numbers.min()
    if numbers.max() >= MAX_ROUNDS:
        first, last = map(str, (times.min(), times.max()))
        raise InvalidInputError(
            f"a log must have fewer than {MAX_ROUNDS:,} rounds; got {numbers.max() + 1:.3g} of "
            f"{name}, from {first} to {last}: choose another column for the time, or "
            "longer rounds, or leave the cell empty where there is no time."
        )
    return numbers.astype(np.int64), name


def _without_empty(rounds: LongArray, times: pl.Series) -> tuple[LongArray, tuple[EmptyTime, ...]]:
    """Leave out one or two stretches without anyone that are ``FAR`` longer than all else.

    If n visited rounds fell at random, k of the stretches between them would leave a part p of all
    rounds with a probability below n^(2k) p^(n-1-k).
    """
    visited = np.unique(rounds)
    empty, n_rounds = np.diff(visited) - 1, int(visited[-1]) + 1
    for n_longest in (2, 1):
        longest = np.sort(np.argsort(empty)[-n_longest:])
        others = n_rounds - int(empty[longest].sum())
        n_free = len(empty) - n_longest
        chance = len(visited) ** (2.0 * n_longest) * (others / n_rounds) ** n_free
        if chance < FALSE_ALARM and empty[longest].min() > FAR * others:
            left_out = np.zeros_like(visited)
            left_out[longest + 1] = empty[longest]
            stretches = tuple(_empty_time(rounds <= visited[place], times) for place in longest)
            return rounds - left_out.cumsum()[np.searchsorted(visited, rounds)], stretches
    return rounds, ()


def _empty_time(before: BoolArray, times: pl.Series) -> EmptyTime:
    n_before = int(before.sum())
    n_after = len(before) - n_before
    last, following = times.filter(before).max(), times.filter(~before).min()
    return EmptyTime(str(last), str(following), min(n_before, n_after), n_before <= n_after)


def _ticks(times: pl.Series) -> float:
    """Return the ticks of a second in a series of times."""
    unit = getattr(times.dtype, "time_unit", None) or "ns"  # times of the day are in nanoseconds
    return {"ms": 1e3, "us": 1e6, "ns": 1e9}[unit]


def estimate_drift(
    users: LongArray, arms: LongArray, rounds: LongArray, rewards: FloatArray
) -> Range | None:
    """Estimate the variance by which users' means move in a round; None without repeated visits.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> users, rounds = np.repeat(np.arange(2_000), 10), np.tile(np.arange(10), 2_000)
    >>> steps = rng.normal(0.0, 0.05, (2_000, 10)).cumsum(axis=1).ravel()
    >>> arms, rewards = np.zeros(20_000, dtype=np.int64), rng.normal(0.5 + steps, 0.1)
    >>> low, middle, high = estimate_drift(users, arms, rounds, rewards)
    >>> low < 0.05**2 < high
    True
    """
    users, arms, rounds, rewards = _some_users(users, arms, rounds, rewards)
    n_arms, span = int(arms.max()) + 1, int(rounds.max()) + 1
    rows = np.maximum(np.bincount(arms, minlength=n_arms), 1)
    means = np.bincount(arms, rewards, n_arms) / rows
    visits, place, counts = np.unique(
        (users * n_arms + arms) * span + rounds, return_inverse=True, return_counts=True
    )
    deviations = np.bincount(place.ravel(), rewards - means[arms]).astype(np.float64, copy=False)
    pairs, lengths = np.unique(visits // span, return_counts=True)
    moments = (visits % span).astype(np.float64)
    products, lagged, _ = _lag_sums(deviations, moments, lengths)
    weights, lags, squares = _lag_sums(counts.astype(np.float64), moments, lengths)
    mean_lag = np.divide(lags, weights, out=np.zeros_like(lags), where=weights > 0)
    spread = squares - mean_lag * lags
    informative = spread > 1e-9 * np.maximum(squares, 1.0)
    owners = (pairs // n_arms)[informative]
    if len(np.unique(owners)) < 2:
        return None
    spread, response = spread[informative], (lagged - mean_lag * products)[informative]
    slope = float(response.sum() / spread.sum())
    influence = np.bincount(owners, response - slope * spread)
    half = 2 * NORMAL_QUANTILE * float(np.sqrt((influence**2).sum()) / spread.sum())
    return Range(-2 * slope - half, -2 * slope, -2 * slope + half)


def _some_users(
    users: LongArray, arms: LongArray, rounds: LongArray, rewards: FloatArray
) -> tuple[LongArray, LongArray, LongArray, FloatArray]:
    """Return the rows of at most ``MAX_USERS_TIMED`` users."""
    n_users = int(users.max()) + 1
    if n_users <= MAX_USERS_TIMED:
        return users, arms, rounds, rewards
    sampled = np.zeros(n_users, dtype=bool)
    sampled[np.random.default_rng(0).choice(n_users, MAX_USERS_TIMED, replace=False)] = True
    inside = sampled[users]
    return users[inside], arms[inside], rounds[inside], rewards[inside]


def _lag_sums(
    values: FloatArray, moments: FloatArray, lengths: LongArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sums over all two visits of a group: of the products, times lag, times lag squared.

    Visits are sorted by group and moment; ``lengths`` are those of the groups.

    >>> one, lag, square = _lag_sums(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 5.0]),
    ...                              np.array([3]))
    >>> one, lag, square  # 1·2 + 1·3 + 2·3; 1·2·1 + 1·3·5 + 2·3·4; 1·2·1 + 1·3·25 + 2·3·16
    (array([11.]), array([41.]), array([173.]))
    """
    group = np.repeat(np.arange(len(lengths)), lengths)
    start = np.cumsum(lengths) - lengths
    since = moments - moments[start][group]

    def earlier(amounts: FloatArray) -> FloatArray:
        total = np.cumsum(amounts) - amounts
        sums: FloatArray = total - total[start][group]
        return sums

    before, moved, squared = (earlier(values * since**power) for power in range(3))
    products = (
        values * before,
        values * (since * before - moved),
        values * (since**2 * before - 2 * since * moved + squared),
    )
    one, lag, square = (
        np.bincount(group, amounts).astype(np.float64, copy=False) for amounts in products
    )
    return one, lag, square
