"""A log of past rounds, rows of user, arm and reward: how people differ, estimated from it.

The raw average of a few rows is mostly luck, and the best of several such averages is luck that was
selected. So no mean of a user is taken from its rows alone: the *population* is estimated first
(``shoal.instances.population``), with what the log does not know about it, and users are drawn from
it or understood by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypedDict, Unpack

import numpy as np
import polars as pl

from shoal.arrays import FloatArray, LongArray
from shoal.errors import InvalidInputError
from shoal.instances import rows as log_rows
from shoal.instances.assignment import MIN_RATIO, find_uneven
from shoal.instances.population import PairTotals, Population, estimate_population
from shoal.instances.profile import LogProfile, profile_rows
from shoal.instances.repeats import events_identified, repeats_by_chance, telling_columns
from shoal.instances.times import ambiguous_date, parse_times
from shoal.instances.trend import remove_trend
from shoal.instances.visits import Visits, count_visits
from shoal.model.numbers import whole_number
from shoal.model.plurals import count
from shoal.model.scale import UNCHANGED, Scale
from shoal.notebook import html_table

MAX_LOG_ARMS = 100
"""Arms of a log: what their tastes have in common takes memory as the fourth power of them."""


MANY_DROPPED = 0.01
"""Rewards outside [0, 1] that are left out, for each 1 of the others, from which on it is noted."""


class LogColumns(TypedDict, total=False):
    """The names of a log's columns."""

    user: str
    arm: str
    reward: str
    time: str | None


@dataclass(frozen=True, slots=True)
class LogReport:
    """How a log's rows and pairs were used; each dropped row is counted once, in this order.

    ``scaling`` says what 0 and 1 stand for on the scale that was chosen, ``scale`` in numbers.
    """

    rows_read: int
    duplicates_dropped: int
    missing: int
    not_numbers: int
    not_finite: int
    out_of_range: int
    without_time: int
    too_rare: int
    rows_used: int
    pairs_seen: int = 0
    pairs_filled: int = 0
    scaling: str = ""
    scale: Scale = UNCHANGED

    def __str__(self) -> str:
        reasons = {
            "duplicates": self.duplicates_dropped,
            "with missing values": self.missing,
            "not numbers": self.not_numbers,
            "not finite": self.not_finite,
            "outside [0, 1]": self.out_of_range,
            "without a time": self.without_time,
            "of rare users or arms": self.too_rare,
        }
        dropped = ", ".join(f"{n:,} {reason}" for reason, n in reasons.items() if n) or "none"
        return (
            f"{self.rows_used:,} of {self.rows_read:,} rows used; dropped: {dropped}; "
            f"{self.pairs_filled:,} of {self.pairs_seen + self.pairs_filled:,} pairs never seen."
            + (f" Scale {self.scaling}." if self.scaling else "")
        )


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """What was read from a log, with the labels of users and arms.

    Attributes
    ----------
    pairs
        Totals of the rewards of every pair of user and arm.
    halves
        The same for two random halves of the rows, for a check on rows held out.
    visits
        How often users come back and whether their tastes move, in a log with time.
    trend
        Deviation over the rows of the common trend that was taken out, which multiplies rates:
        0.1 is 10 % of the rate.
    """

    pairs: PairTotals
    halves: tuple[PairTotals, PairTotals]
    users: list[object]
    arms: list[object]
    report: LogReport
    profile: LogProfile
    visits: Visits | None = None
    trend: float = 0.0
    seed: int = 0

    def __repr__(self) -> str:
        rows = self.report.rows_used
        return f"Log(n_users={len(self.users)}, n_arms={len(self.arms)}, n_rows={rows})"

    def _repr_html_(self) -> str:
        counts, sums = self.pairs.counts.sum(axis=0), self.pairs.sums.sum(axis=0)
        rows = [
            (str(arm), int(n_rows), float(total / n_rows))
            for arm, n_rows, total in zip(self.arms, counts, sums, strict=True)
        ]
        notes = (str(self.report), *self.profile.warnings)
        return html_table(self.profile.summary, ["arm", "rows", "mean reward"], rows, *notes)

    @property
    def rewards(self) -> str:
        """The kind of rewards to play: bernoulli if all are 0 or 1, else bounded."""
        return "bernoulli" if self.profile.binary else "bounded"

    @cached_property
    def population(self) -> Population:
        """The posterior over populations; estimated when it is first asked for."""
        rng = np.random.default_rng([self.seed, 1])
        population = estimate_population(self.pairs, rng, halves=self.halves)
        doubts = (*self.profile.doubts, *self._about_amounts)
        return replace(population, doubts=doubts, rewards=self.rewards, scale=self.report.scale)

    @property
    def _about_amounts(self) -> list[str]:
        """Say where rewards were dropped that may have been amounts."""
        n_rows, total = self.report.out_of_range, float(self.pairs.sums.sum())
        if n_rows <= MANY_DROPPED * total:
            return []
        return [
            f"{count(n_rows, 'row')} with a reward outside [0, 1] "
            f"{'was' if n_rows == 1 else 'were'} left out; the rewards of all others add up to "
            f"{total:,.4g}. If they are amounts, choose a scale."
        ]

    @property
    def means(self) -> FloatArray:
        """Expected means of the log's own users, (n_users, n_arms).

        Each is the user's average, drawn to the arm's as far as the population says. They differ
        less than people do: for a simulation, draw users with ``population.draw``.
        """
        return self.population.expected_means(self.pairs)


def from_log(
    log: Any,
    *,
    scale: str | None = None,
    min_user_rows: int = 1,
    min_arm_rows: int = 1,
    drop_duplicates: bool = False,
    round_length: str | None = None,
    seed: int = 0,
    **columns: Unpack[LogColumns],
) -> Log:
    """Read a log.

    Parameters
    ----------
    log
        A .csv file with a header, a .parquet file, or a dataframe: pandas, polars, pyarrow, DuckDB
        and others that narwhals knows.
    scale
        How rewards are brought into [0, 1]: percent, range, p99 or positive. Without it, rewards
        outside are dropped and counted, and refused where they are more than 5 %.
    min_user_rows, min_arm_rows
        Users and arms with fewer usable rows are dropped, both counted before either is dropped.
    drop_duplicates
        Leave out rows that repeat another in every column.
    round_length
        What a round is where time is a date: a number of m, h, d or w, by default 1d; weeks begin
        on Monday. Where time is a number, a round is 1.
    seed
        Of the population's draws.
    **columns
        ``user``, ``arm`` and ``reward`` where the log's columns have other names, and ``time`` if
        there is one.

    Examples
    --------
    >>> rows = {"user": ["a", "a", "b", "b"], "arm": [1, 2, 1, 1], "reward": [1.0, 0.5, 0.0, None]}
    >>> print(from_log(pl.DataFrame(rows)).report)
    3 of 4 rows used; dropped: 1 with missing values; 1 of 4 pairs never seen.
    """
    min_rows, seed = _check_numbers(min_user_rows, min_arm_rows, seed)
    names = _column_names(columns, round_length)
    frame = log_rows.read_log(log)
    rows = log_rows.select_columns(frame, names)
    complete, tells = log_rows.complete_rows(rows), bool(telling_columns(frame, names))
    repeated = log_rows.repeated_rows(frame, complete) if tells else None
    findings = _look_over(frame, names, complete, None if drop_duplicates else repeated)
    if drop_duplicates:
        rows = log_rows.select_columns(log_rows.drop_duplicates(frame, repeated), names)
    counts = {"rows_read": frame.height, "duplicates_dropped": frame.height - rows.height}
    rows = rows.with_columns(repeat=repeated) if findings["duplicates"] else rows
    del frame  # of ten million rows, more than half a gigabyte
    rows, dropped, scaling, ends = _keep_usable(rows, names, scale, min_rows)
    findings["mean_without_duplicates"] = _mean_without_repeats(rows)
    _check_variety(rows, names)
    report = LogReport(**counts, **dropped, rows_used=rows.height, scaling=scaling, scale=ends)
    log_read = _total(rows, report, "1d" if round_length is None else round_length, seed)
    if not tells:
        _check_copies(log_read.profile)
    return replace(log_read, profile=replace(log_read.profile, **findings))


def _check_numbers(min_user_rows: int, min_arm_rows: int, seed: int) -> tuple[dict[str, int], int]:
    """Return the least numbers of rows of a user and of an arm, and the seed."""
    min_rows = {
        "user": whole_number("min_user_rows", min_user_rows),
        "arm": whole_number("min_arm_rows", min_arm_rows),
    }
    return min_rows, whole_number("seed", seed, minimum=0)


def _column_names(columns: LogColumns, round_length: str | None) -> dict[str, str]:
    """Return the names of the columns by their roles; time only if it has one."""
    names = {"user": "user", "arm": "arm", "reward": "reward"} | columns
    for role in names:
        if role not in LogColumns.__annotations__:
            raise TypeError(f"from_log() got an unexpected keyword argument {role!r}")
    if round_length is not None and names.get("time") is None:
        raise InvalidInputError(
            f"round_length needs a column for the time beside it; got {round_length!r} alone."
        )
    return {role: str(name) for role, name in names.items() if name is not None}


def _look_over(
    frame: pl.DataFrame, names: dict[str, str], complete: pl.Series, repeated: pl.Series | None
) -> dict[str, Any]:
    """Return what a profile says of the log as it was read; of copies only where it can tell."""
    duplicates = None if repeated is None else int(repeated.sum())
    date = ambiguous_date(frame[names["time"]]) if "time" in names else None
    if duplicates and not complete.all():
        frame = frame.filter(complete)
    return {
        "duplicates": duplicates,
        "duplicates_by_chance": bool(duplicates) and repeats_by_chance(frame, names),
        "events_identified": bool(duplicates) and events_identified(frame, names),
        "ambiguous_date": None if date is None else (names["time"], date),
    }


def _mean_without_repeats(rows: pl.DataFrame) -> float | None:
    """Take the column ``repeat`` out of the rows; return the mean reward of those without it."""
    if "repeat" not in rows.columns:
        return None
    repeat = rows.drop_in_place("repeat")
    return float(rows["reward"].filter(~repeat).to_numpy().mean())


def _check_variety(rows: pl.DataFrame, names: dict[str, str]) -> None:
    """Refuse rows from which nothing can be learnt: of equal rewards, or with an id for an arm."""
    if rows["reward"].n_unique() == 1:
        raise InvalidInputError(
            f"nothing can be learnt from this log: rewards in column {names['reward']!r} must "
            f"differ; all {rows.height:,} are {rows['reward'][0]:g}."
        )
    n_arms = rows["arm"].n_unique()
    if n_arms > MAX_LOG_ARMS:
        raise InvalidInputError(
            f"arm column {names['arm']!r} must name at most {MAX_LOG_ARMS} arms; got {n_arms:,} "
            f"in {rows.height:,} rows. If it is an id, choose another column; else join rare arms."
        )


def _check_copies(profile: LogProfile) -> None:
    """Refuse a log of three columns in which every event seems to be recorded several times."""
    if profile.copies is not None and profile.copies.everywhere:
        times = profile.copies.times
        raise InvalidInputError(
            f"each event must be recorded once; got {times} times, as it seems: all numbers of "
            f"rows with the same user, arm and reward are multiples of {times}, and the price "
            f"would take copies for tastes. Keep one of each {times} equal rows; if they are "
            "different events, add a column that numbers them."
        )


def _keep_usable(
    rows: pl.DataFrame, columns: dict[str, str], scale: str | None, min_rows: dict[str, int]
) -> tuple[pl.DataFrame, dict[str, int], str, Scale]:
    """Return the rows to use, the numbers of the others by reason, and what the scale did."""
    usable, dropped, scaling, ends = log_rows.usable_rows(rows, columns["reward"], scale)
    timed = parse_times(usable, columns["time"]) if "time" in columns else usable
    frequent = timed.filter(*(pl.len().over(name) >= n for name, n in min_rows.items() if n > 1))
    dropped["without_time"] = usable.height - timed.height
    if frequent.is_empty():
        reasons = [f"{n:,} {name.replace('_', ' ')}" for name, n in dropped.items() if n]
        raise InvalidInputError(
            f"a log must leave at least one row; got {count(rows.height, 'row')}, "
            f"{timed.height:,} of them usable, with min_user_rows={min_rows['user']} and, for an "
            f"arm, at least {count(min_rows['arm'], 'row')}; dropped: "
            f"{', '.join(reasons) or 'none'}."
        )
    dropped["too_rare"] = timed.height - frequent.height
    return frequent, dropped, scaling, ends


def _total(rows: pl.DataFrame, report: LogReport, round_length: str, seed: int) -> Log:
    """Add up the rows, in two random halves; with time, without a common trend."""
    # Names are as large as all else, and not needed beside their places.
    arm_names, arms = _places(rows.drop_in_place("arm"))
    user_names, users = _places(rows.drop_in_place("user"))
    shape = len(user_names), len(arm_names)
    rewards, trend, visits, by_time = rows["reward"].to_numpy(), 0.0, None, None
    if "time" in rows.columns:
        times = rows["time"].to_physical().to_numpy().astype(np.float64)
        rewards, trend, by_time = remove_trend(times, arms, rewards, shape[1])
        visits = count_visits(rows["time"], users, arms, rewards, round_length)
    first = np.random.default_rng([seed, 0]).integers(2, size=len(rewards), dtype=np.int8) == 0
    one, other = (
        PairTotals.from_rows(users[half], arms[half], rewards[half], shape)
        for half in (first, ~first)
    )
    pairs = one + other
    n_pairs = int(np.count_nonzero(pairs.counts))
    report = replace(report, pairs_seen=n_pairs, pairs_filled=pairs.counts.size - n_pairs)
    rows = rows.with_columns(user=users, arm=arms)
    profile = profile_rows(rows, pairs.counts, user_names, arm_names)
    if visits is not None and by_time is not None:
        uneven = find_uneven(by_time, arm_names, least_ratio=MIN_RATIO)
        profile = replace(profile, by_time=uneven, empty_times=visits.empty_times)
    return Log(
        pairs, (one, other), user_names, arm_names, report, profile, visits, trend, seed
    )  # fmt: skip


def _places(column: pl.Series) -> tuple[list[object], LongArray]:
    """Return the sorted names of a column, and the place of every row's name among them."""
    names = column.unique().sort()
    places = pl.Series(np.arange(len(names)))
    return names.to_list(), column.replace_strict(names, places).to_numpy()
