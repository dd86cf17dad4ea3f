"""Who reports: in how many rounds each group is released and each user is part of a total.

Every user reports in a round with its own probability, independently. A group with fewer than
``min_group_size`` (C) reporters is merged with others of its arm and shard (``model.merging``), or
withheld. A plan that is repeated has one total per group for all its rounds, so that nothing can be
merged in one of them: there, a short group is withheld in that round.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import FloatArray, IntArray, LongArray
from shoal.errors import InvalidInputError
from shoal.kernels import kernel
from shoal.model import Plan
from shoal.model.feedback import merge_plan
from shoal.model.merging import merge_short

_DRAWS = 2**15
"""Chances drawn at once: few calls where users are few, little memory where they are many."""


def everyone(plan: Plan) -> tuple[IntArray, IntArray]:
    """Return the rounds of each group, (n_groups,), and user, (n_users,), where all report."""
    released, reported = _none(plan)
    _count_all(plan.groups, plan.repeats, released, reported)
    return released, reported


def some(
    plan: Plan, chances: FloatArray, *, rng: np.random.Generator
) -> tuple[Plan, IntArray, IntArray, int, int]:
    """Return the plan and the same, where each user reports with the probability in ``chances``.

    Then come the least number of reporters behind a released total, 0 if nothing was released,
    and the number of totals that were withheld.
    """
    released, reported = _none(plan)
    n_users = len(chances)
    uniforms = np.empty((min(plan.repeats, max(1, _DRAWS // n_users)), n_users))
    left, smallest, withheld = plan.repeats, 0, 0
    while left:
        rounds = uniforms[: min(left, len(uniforms))]
        rng.random(out=rounds)
        least, kept_back = _count_reporters(
            rounds, chances, plan.groups, plan.problem.min_group_size, released, reported
        )
        if least and not 0 < smallest <= least:
            smallest = least
        withheld += kept_back
        left -= len(rounds)
    return plan, released, reported, smallest, withheld


def some_merged(
    plan: Plan, chances: FloatArray, *, rng: np.random.Generator
) -> tuple[Plan, IntArray, IntArray, int, int]:
    """Return what ``some`` does for a plan of one round, and the plan with its groups merged."""
    _, reported = _none(plan)
    problem = plan.problem
    reporters, crowds = np.zeros(plan.n_groups, np.int64), np.full(plan.n_groups, -1)
    _count_once(
        rng.random(len(chances)), chances, plan.arms, plan.groups, problem.n_arms,
        problem.shard_size, reporters, crowds, reported,
    )  # fmt: skip
    into = merge_short(reporters, crowds, problem.min_group_size)
    told = into >= 0
    withheld = int((crowds[~told] >= 0).sum())
    reported *= np.append(told, False)[plan.groups]
    plan = merge_plan(plan, into)
    sums = np.bincount(into[told], weights=reporters[told], minlength=plan.n_groups)
    released = (sums > 0).astype(np.int32)
    smallest = int(sums[released > 0].min()) if told.any() else 0
    return plan, released, reported, smallest, withheld


def _none(plan: Plan) -> tuple[IntArray, IntArray]:
    if plan.repeats >= 2**31:
        raise InvalidInputError(
            f"repeats must be less than 2**31 to be played; got {plan.repeats}."
        )
    return np.zeros(plan.n_groups, np.int32), np.zeros(len(plan.groups), np.int32)


@kernel()
def _count_all(groups: IntArray, repeats: int, released: IntArray, reported: IntArray) -> None:
    for user in range(len(groups)):
        if groups[user] >= 0:
            released[groups[user]] = repeats
            reported[user] = repeats


@kernel()
def _count_reporters(
    uniforms: FloatArray,  # (n_rounds, n_users)
    chances: FloatArray,
    groups: IntArray,
    min_group_size: int,
    released: IntArray,
    reported: IntArray,
) -> tuple[int, int]:
    n_rounds, n_users = uniforms.shape
    reporters = np.empty(len(released), np.int32)
    has_users = np.zeros(len(released), np.bool_)
    for user in range(n_users):
        if groups[user] >= 0:
            has_users[groups[user]] = True
    smallest = n_users + 1
    withheld = 0
    for t in range(n_rounds):
        reporters[:] = 0
        for user in range(n_users):
            if groups[user] >= 0:
                reporters[groups[user]] += uniforms[t, user] < chances[user]
        for group in range(len(reporters)):
            if reporters[group] >= min_group_size:
                released[group] += 1
                smallest = min(smallest, reporters[group])
            else:
                withheld += has_users[group]
        for user in range(n_users):
            if groups[user] >= 0 and reporters[groups[user]] >= min_group_size:
                reported[user] += uniforms[t, user] < chances[user]
    return smallest if smallest <= n_users else 0, withheld


@kernel()
def _count_once(
    uniforms: FloatArray,
    chances: FloatArray,
    arms: IntArray,
    groups: IntArray,
    n_arms: int,
    shard_size: int,
    reporters: LongArray,
    crowds: LongArray,
    reported: IntArray,
) -> None:
    """Count each group's reporters, and number the arms of each shard as its crowds."""
    for user in range(len(groups)):
        group = groups[user]
        if group >= 0:
            reported[user] = uniforms[user] < chances[user]
            reporters[group] += reported[user]
            crowds[group] = user // shard_size * n_arms + arms[user]
