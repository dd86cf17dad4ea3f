"""What a log looks like before anything is computed from it, and what looks wrong in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.arrays import FloatArray
from shoal.instances.assignment import MANY_ROWS, MAX_OF_A_USER, MIN_RATIO, Uneven, find_uneven
from shoal.instances.copies import Copies, find_copies
from shoal.instances.names import is_number_text, looks_missing, similar_names
from shoal.instances.neighbours import CloseRows, find_close_rows
from shoal.instances.visits import EmptyTime
from shoal.model.plurals import count

MANY_ARMS = 12
"""Of more arms, only the most frequent ones are listed."""

FEW = 3
"""Examples of what is flagged."""

RARE_ARM = 0.01
"""An arm is rare if it has less than this part of an equal share of the rows."""

SAME = 0.1
"""Rewards of one user, arm and time are the same if they vary by less than this part of all."""


@dataclass(frozen=True, slots=True)
class LogProfile:
    """Sizes and ranges of a log's usable rows.

    Attributes
    ----------
    rows_per_pair
        Mean number of rows of the pairs of user and arm that occur.
    pairs_observed
        Share of all pairs that occur.
    reward_range
        Least and largest reward.
    mean_reward
        Their mean.
    binary
        Whether all are 0 or 1.
    period
        First and last time, as text, where the log has time.
    duplicates
        Rows that repeat another one in all columns; None where user, arm and reward are all the
        columns, as equal rows then are nothing special.
    duplicates_by_chance
        Whether chance explains them.
    events_identified
        Whether the further columns tell events apart, so that they are copies for certain.
    mean_without_duplicates
        What the mean reward would be without them.
    single_row_users
        Users with one row, who say nothing about how users differ.
    repeated_times
        Rows that have the user and the time of another row.
    similar_arms
        Names that differ only in case, spaces, accents or the spelling of a number.
    similar_users
        The same of users.
    missing_names
        Texts that mean a missing value but name a user or an arm: the role, the text and its rows.
    arm_rows
        Rows of each arm, by name.
    copies
        How often events seem to be recorded, by numbers of equal rows (user, arm, reward); None
        where chance explains them.
    repeated_events
        Rows with the user, arm and time of another, where these nearly always have its reward.
    close_rows
        Pairs of a user's successive rows that lie close together and agree in arm and reward more
        often than its other pairs; None where chance explains it.
    by_user
        An arm that some users saw more often than others; None where chance explains it.
    by_time
        An arm that was seen more often at some times; None where chance explains it.
    empty_times
        Rounds without anyone that are not counted, since they are far more than all others.
    ambiguous_date
        The name of the time's column and one of its dates, where all of them would be dates with
        day and month exchanged.
    """

    users: int
    arms: int
    rows: int
    rows_per_pair: float
    pairs_observed: float
    reward_range: tuple[float, float]
    mean_reward: float
    binary: bool
    period: tuple[str, str] | None
    single_row_users: int
    repeated_times: int
    similar_arms: tuple[tuple[str, ...], ...]
    duplicates: int | None = None
    repeated_events: int = 0
    close_rows: CloseRows | None = None
    by_user: Uneven | None = None
    by_time: Uneven | None = None
    duplicates_by_chance: bool = False
    events_identified: bool = False
    mean_without_duplicates: float | None = None
    empty_times: tuple[EmptyTime, ...] = ()
    ambiguous_date: tuple[str, str] | None = None
    similar_users: tuple[tuple[str, ...], ...] = ()
    missing_names: tuple[tuple[str, str, int], ...] = ()
    arm_rows: tuple[tuple[str, int], ...] = ()
    copies: Copies | None = None

    def __str__(self) -> str:
        """Return the summary, the arms, then the warnings, a line each."""
        return "\n".join([self.summary, self.arm_list, *self.warnings])

    @property
    def arm_list(self) -> str:
        """The arms with their rows, in one line."""
        listed = self.arm_rows
        if len(listed) > MANY_ARMS:
            listed = tuple(sorted(listed, key=lambda pair: -pair[1])[:MANY_ARMS])
        text = ", ".join(f"{name!r} {n_rows:,}" for name, n_rows in listed)
        others = len(self.arm_rows) - len(listed)
        return f"Rows of each arm: {text}" + (f" and {others:,} rarer arms." if others else ".")

    @property
    def summary(self) -> str:
        """How much there is of what, in one line."""
        low, high = self.reward_range
        kind = "0 or 1" if self.binary else f"{low:.4g} to {high:.4g}"
        text = (
            f"{count(self.users, 'user')}, {count(self.arms, 'arm')}, {count(self.rows, 'row')} "
            f"({short(self.rows / self.users)} a user, {short(self.rows_per_pair)} a pair of user "
            f"and arm, {self.pairs_observed:.0%} of the pairs occur); rewards {kind}, mean "
            f"{self.mean_reward:.4g}"
        )
        return text + (f"; from {self.period[0]} to {self.period[1]}." if self.period else ".")

    @property
    def warnings(self) -> list[str]:
        """What looks wrong, a sentence each."""
        sentences = [
            f"These arms differ only in {_difference(names)} and are taken as different: "
            f"{', '.join(map(repr, names))}."
            for names in self.similar_arms
        ]
        if self.similar_users:
            sentences.append(self._about_similar_users)
        sentences += [
            f"{count(n_rows, 'row')} {'has' if n_rows == 1 else 'have'} the {role} {name!r}, which "
            f"is taken for a name: leave the cell empty if the {role} is missing."
            for role, name, n_rows in self.missing_names[:FEW]
        ]
        if self.ambiguous_date:
            column, example = self.ambiguous_date
            sentences.append(
                f"Dates in column {column!r} such as {example!r} are read as day, month, year, and "
                "all of them could be month, day, year: write year-month-day if that is meant."
            )
        sentences += [
            f"{count(rows, 'row')} {'has' if rows == 1 else 'have'} a time of "
            f"{f'{last} or before' if early else f'{following} or after'}, and nobody came between "
            f"{last} and {following}: the rounds between are not counted. If that is no time, "
            "leave the cell empty."
            for last, following, rows, early in self.empty_times
        ]
        if self.duplicates and not self._repeats_mislead:
            sentences.append(self._about_duplicates(self.duplicates))
        sentences += [
            f"Arm {name!r} has {count(n_rows, 'row')}, too few to say what it earns, and the price "
            "may depend on it. If the name is misspelt, correct it; else leave the arm out."
            for name, n_rows in self.arm_rows
            if n_rows < RARE_ARM * self.rows / self.arms
        ][:FEW]
        if self.single_row_users:
            sentences.append(self._about_single_rows)
        if self.repeated_times:
            have = "rows have" if self.repeated_times > 1 else "row has"
            sentences.append(
                f"{self.repeated_times:,} {have} the user and time of another: fine if a user may "
                "have several events at one time, such as a day."
            )
        return sentences + self.doubts

    @property
    def _about_similar_users(self) -> str:
        n_names = sum(map(len, self.similar_users))
        examples = "; ".join(", ".join(map(repr, names)) for names in self.similar_users[:FEW])
        return (
            f"{n_names:,} users differ from another only in {_difference(self.similar_users[0])} "
            f"and are taken as different, such as {examples}."
        )

    @property
    def _repeats_mislead(self) -> bool:
        """Whether rows repeat others so often beyond chance that the price is too sure."""
        return not self.duplicates_by_chance and (self.duplicates or 0) > MANY_ROWS

    def _about_duplicates(self, n_rows: int) -> str:
        if self.duplicates_by_chance:
            equal = "rows are equal to another" if n_rows > 1 else "row is equal to another"
            return (
                f"{n_rows:,} {equal} in every column, about as many as chance makes: keep them "
                "unless an event was recorded twice."
            )
        repeat, them = ("rows repeat", "them") if n_rows > 1 else ("row repeats", "it")
        if self.events_identified:
            return (
                f"{n_rows:,} {repeat} another one in every column: drop_duplicates=True leaves "
                f"{them} out."
            )
        return (
            f"{n_rows:,} {repeat} another one in every column, more than chance makes: copies, or "
            "events of one visit that are alike, which these columns do not tell apart. "
            f"drop_duplicates=True leaves {them} out and changes the mean reward from "
            f"{self.mean_reward:.4g} to {self.mean_without_duplicates:.4g}: only for copies."
        )

    @property
    def _about_single_rows(self) -> str:
        if self.single_row_users == self.users:
            return "No user has more than one row: such a log says nothing about how users differ."
        have = "has" if self.single_row_users == 1 else "have"
        return (
            f"{self.single_row_users:,} of {count(self.users, 'user')} {have} one row, which says "
            "nothing about how users differ; min_user_rows=2 leaves them out."
        )

    @property
    def doubts(self) -> list[str]:
        """Why a price from this log may be wrong whatever its interval says, a sentence each."""
        sentences = []
        if self.copies is not None:
            sentences.append(
                f"Events seem to be recorded {self.copies.times} times: for "
                f"{self.copies.multiples:,} of {count(self.copies.pairs, 'pair')} of user and arm, "
                f"all numbers of equal rows are multiples of {self.copies.times}, not by chance. "
                "The price takes copies for tastes: leave them out."
            )
        if self.duplicates and self._repeats_mislead:
            what = (
                "copies for tastes."
                if self.events_identified
                else "either for tastes: of a visit, keep one row for each arm, with the mean "
                "reward."
            )
            sentences.append(f"{self._about_duplicates(self.duplicates)} The price takes {what}")
        elif self.repeated_events:
            sentences.append(
                f"{self.repeated_events:,} rows have the user, arm, time and reward of another. If "
                "they are one event that was recorded more than once, the price takes it for a "
                "taste: leave them out."
            )
        elif self.close_rows is not None:
            sentences.append(
                f"Successive rows of a user that lie close together in time have the same arm in "
                f"{self.close_rows.same:.0%} of the cases, others in {self.close_rows.others:.0%}, "
                "and their rewards agree beyond chance too. If they are of one visit, or one event "
                "that was recorded more than once, the price takes them for tastes: keep one row "
                "for each, with the mean reward."
            )
        if self.by_user is not None:
            _, again, share = self.by_user
            digits = 0 if again > MIN_RATIO * share else 1
            sentences.append(
                f"Users did not see all arms alike: where a user saw {self.by_user.arm!r}, "
                f"{again:.{digits}%} of its other rows have it too, of all rows "
                f"{share:.{digits}%}, which chance does not explain. If arms were shown to those "
                "thought to like them, or chosen by them, or events were recorded more than once, "
                "or several rows are of one visit and have its arm, the price is not to be trusted."
            )
        if self.by_time is not None:
            sentences.append(
                f"Arms were shown at different times: when {self.by_time.arm!r} was, "
                f"{self.by_time.again:.0%} of the other rows have it too, of all rows "
                f"{self.by_time.share:.0%}. What changed with time may look like a difference "
                "between arms."
            )
        return sentences


def profile_rows(
    rows: pl.DataFrame, counts: FloatArray, users: Sequence[object], arms: Sequence[object]
) -> LogProfile:
    """Describe usable rows.

    Parameters
    ----------
    rows
        Columns user and arm as places, reward as a number, and time if there is any.
    counts
        Rows of every pair, (n_users, n_arms).
    users, arms
        Their names.
    """
    n_pairs = int(np.count_nonzero(counts))
    arm_rows = counts.sum(axis=0).astype(int).tolist()
    user_rows = counts.sum(axis=1).astype(int).tolist()
    names = [("arm", name, n) for name, n in zip(arms, arm_rows, strict=True)]
    names += [("user", name, n) for name, n in zip(users, user_rows, strict=True)]
    reward = rows["reward"]
    period, repeated, events, close_rows = None, 0, 0, None
    if "time" in rows.columns:
        period = str(rows["time"].min()), str(rows["time"].max())
        repeated = rows.height - rows.select("user", "time").hash_rows().n_unique()
        events, close_rows = _repeated_events(rows), find_close_rows(rows)
    return LogProfile(
        users=len(counts),
        arms=len(arms),
        rows=rows.height,
        rows_per_pair=rows.height / n_pairs,
        pairs_observed=n_pairs / counts.size,
        reward_range=(_number(reward.min()), _number(reward.max())),
        mean_reward=_number(reward.mean()),
        binary=bool(reward.is_in([0.0, 1.0]).all()),
        period=period,
        single_row_users=int((counts.sum(axis=1) == 1).sum()),
        repeated_times=repeated,
        similar_arms=similar_names(arms),
        repeated_events=events,
        close_rows=close_rows,
        by_user=find_uneven(counts, arms, max_deviation=MAX_OF_A_USER),
        similar_users=similar_names(users),
        missing_names=tuple((role, str(name), n) for role, name, n in names if looks_missing(name)),
        arm_rows=tuple(zip(map(str, arms), arm_rows, strict=True)),
        copies=find_copies(rows),
    )


def _repeated_events(rows: pl.DataFrame) -> int:
    """Return how many rows repeat an event; 0 if rewards of one user, arm and time differ."""
    event = ["user", "arm", "time"]
    again = rows.filter(rows.select(event).hash_rows().is_duplicated())
    groups = again.group_by(event).agg(pl.len(), pl.col("reward").var(ddof=0).alias("variance"))
    n_repeated = again.height - groups.height
    within = _number((groups["len"] * groups["variance"]).sum())
    same = within < SAME * n_repeated * _number(rows["reward"].var() or 0.0)
    return n_repeated if same and n_repeated > MANY_ROWS else 0


def _difference(names: Sequence[str]) -> str:
    """Say in what alone similar names differ."""
    numbers = all(map(is_number_text, names))
    return "how a number is written" if numbers else "case, spaces or accents"


def short(number: float) -> str:
    """Write a number with three digits, or whole from 1,000 on.

    >>> short(2.5), short(3_612.3)
    ('2.5', '3,612')
    """
    return f"{number:.3g}" if number < 1_000 else f"{number:,.0f}"


def _number(value: Any) -> float:
    return float(value)
