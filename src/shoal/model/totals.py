"""From single rewards to totals, in your own program: what a learner may see, and nothing else.

It is what an environment and the service's aggregator do, by the same rule (``merging``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from shoal.arrays import BoolArray, FloatArray
from shoal.errors import InvalidInputError
from shoal.frames import read_frame
from shoal.model.feedback import Feedback
from shoal.model.merging import merge_played
from shoal.model.numbers import plain, shortened
from shoal.model.plan import Plan

if TYPE_CHECKING:
    import polars as pl

Rewards: TypeAlias = Mapping[Any, float] | Iterable[tuple[Any, float]]
"""One round's rewards by user: a mapping, pairs, or a dataframe of the columns ``user`` and
``reward``, in any order; where one has another name it is the other one, and where both have, they
are in this order."""


def add_up(plan: Plan, *rounds: Rewards) -> Feedback:
    """Return the totals of a plan's groups, from the rewards of those who reported in each round.

    A plan that is repeated has one total per group for all its rounds, so that nothing can be
    merged in one of them: there, a short group is withheld in that round.
    """
    if len(rounds) != plan.repeats:
        remedy = (
            " Give each round's as an argument of its own, or plan one round at a time, by "
            "policy.ask(max_repeats=1)."
        )
        raise InvalidInputError(
            f"add_up must have the rewards of each round of the plan, "
            f"{plan.repeats:,} in all; got {len(rounds):,}.{remedy if plan.repeats > 1 else ''}"
        )
    if plan.repeats == 1:
        reports, rewards = _columns(plan, rounds[0])
        merged, released, reported, *_ = merge_played(plan, reports)
        return Feedback(_sums(merged, reported > 0, rewards), released, reported, merged)
    totals = np.zeros(plan.n_groups)
    released = np.zeros(plan.n_groups, np.int32)
    reported = np.zeros(len(plan.groups), np.int32)
    for round_rewards in rounds:
        reports, rewards = _columns(plan, round_rewards)
        reports &= plan.groups >= 0
        reporters = np.bincount(plan.groups[reports], minlength=plan.n_groups)
        enough = reporters >= plan.problem.min_group_size
        reports &= np.append(enough, False)[plan.groups]
        totals += _sums(plan, reports, rewards)
        released += enough
        reported += reports
    return Feedback(totals, released, reported, plan)


def pairs(rewards: Rewards) -> Iterable[tuple[Any, Any]]:
    """Return one round's (user, reward) pairs."""
    frame = read_frame(rewards)
    if frame is not None:
        both = _of_frame(frame)
    elif isinstance(rewards, Mapping):
        return rewards.items()
    else:
        both = _listed(rewards)
    users = set()
    for user, _ in both:
        if user in users:
            raise InvalidInputError(
                f"rewards must name each user once; got {shortened(user)} again."
            )
        users.add(user)
    return both


def _of_frame(frame: pl.DataFrame) -> list[tuple[Any, Any]]:
    """Return the pairs of a frame; decimals, as of a database, are numbers."""
    import polars.selectors as cs

    if {"user", "reward"} <= set(frame.columns):
        frame = frame.select("user", "reward")
    if frame.width != 2:
        raise InvalidInputError(
            f"rewards must have two columns, user and reward; got {frame.columns}."
        )
    if frame.columns[0] == "reward" or frame.columns[1] == "user":
        frame = frame.select(reversed(frame.columns))
    return frame.with_columns(cs.decimal().cast(float)).rows()


def _listed(rewards: Any) -> list[tuple[Any, Any]]:
    """Return what can be looped over as pairs, or refuse it."""
    values = list(rewards) if isinstance(rewards, Iterable) else [rewards]
    if values and all(isinstance(value, Mapping) for value in values):
        raise InvalidInputError(
            "rewards must be those of one round, with each round's as an argument of its own: "
            f"add_up(*rounds) in place of add_up(rounds); got a list of {len(values):,}."
        )
    try:
        return [(user, reward) for user, reward in values]
    except (TypeError, ValueError):
        remedy = " Give a series by user as rewards.to_dict()." if _is_series(rewards) else ""
        raise InvalidInputError(
            f"rewards must be a mapping, pairs or a dataframe of user and reward; "
            f"got {shortened(rewards)}.{remedy}"
        ) from None


def _is_series(rewards: Any) -> bool:
    return hasattr(rewards, "index") and hasattr(rewards, "to_dict")


def _columns(plan: Plan, rewards: Rewards) -> tuple[BoolArray, FloatArray]:
    """Return who reports, (n_users,), and their rewards, (n_users,)."""
    n_users, bounded = len(plan.arms), plan.problem.bounded
    reports, values = np.zeros(n_users, np.bool_), np.zeros(n_users)
    for user, reward in pairs(rewards):
        number, value = plain(user), plain(reward)
        if type(number) is not int or not 0 <= number < n_users:  # True would select everyone
            raise InvalidInputError(
                f"a user must be a number between 0 and n_users-1={n_users - 1}; "
                f"got {shortened(user)}. A Roster takes other ids."
            )
        check_reward(number, reward, bounded=bounded)
        reports[number], values[number] = True, value
    return reports, values


def check_reward(user: Any, reward: Any, *, bounded: bool) -> None:
    """Refuse what is no reward of a user.

    >>> check_reward(3, 1.5, bounded=True)
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: the reward of user 3 must be a number between 0 and 1; got 1.5.
    """
    value = plain(reward)
    if isinstance(value, int | float) and (0 <= value <= 1 if bounded else math.isfinite(value)):
        return
    rule = "a number between 0 and 1" if bounded else "a finite number"
    missing = value is None or value != value
    remedy = " Leave out users who have not reacted." if missing else ""
    raise InvalidInputError(
        f"the reward of user {user} must be {rule}; got {shortened(reward)}.{remedy}"
    )


def _sums(plan: Plan, reports: BoolArray, rewards: FloatArray) -> FloatArray:
    """Add up the rewards of those who report, by group, (n_groups,)."""
    users = np.flatnonzero(reports)
    sums = np.zeros(plan.n_groups)
    np.add.at(sums, plan.groups[users], rewards[users])
    return sums
