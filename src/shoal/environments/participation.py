"""Who reports: in how many rounds each group is released and each user is part of a total.

Every user reports in a round with a probability of its own, independently. A group with fewer than
``min_group_size`` (C) reporters is merged with others of its arm and shard (``model.merging``), or
withheld. A plan that is repeated has one total per group for all its rounds, so that nothing can be
merged in one of them: there, a short group is withheld in that round.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, FloatArray, IntArray
from shoal.errors import InvalidInputError
from shoal.kernels import kernel
from shoal.model import Plan
from shoal.model.merging import merge_played

DRAWS_AT_ONCE = 2**15
"""Reports drawn in one call: few calls where users are few, little memory where they are many."""


class Reports(NamedTuple):
    """Who is part of the totals of a plan."""

    plan: Plan  # as it was played, or with its short groups merged
    released: IntArray  # (n_groups,) rounds in which each group's total is released
    reported: IntArray  # (n_users,) rounds in which each user is part of a released total
    smallest: int  # least reporters behind a released total, 0 if there is none
    withheld: int  # totals that are not released


def all_report(plan: Plan) -> Reports:
    """Return the reports where every user reports in every round."""
    released, reported = _zeros(plan)
    _count_all(plan.groups, plan.repeats, released, reported)
    return Reports(plan, released, reported, plan.smallest_group, 0)


def draw_reports(plan: Plan, chances: FloatArray, *, rng: np.random.Generator) -> Reports:
    """Draw who reports in each round of a plan, with the probabilities ``chances``, (n_users,)."""
    released, reported = _zeros(plan)
    n_users = len(chances)
    n_rounds = max(1, DRAWS_AT_ONCE // n_users)
    smallest, withheld = n_users + 1, 0
    for start in range(0, plan.repeats, n_rounds):
        reports = rng.random((min(n_rounds, plan.repeats - start), n_users)) < chances
        fewest, n_withheld = _count_reports(
            reports, plan.groups, plan.problem.min_group_size, released, reported
        )
        smallest = min(smallest, fewest)
        withheld += n_withheld
    return Reports(plan, released, reported, smallest if smallest <= n_users else 0, withheld)


def draw_and_merge(plan: Plan, chances: FloatArray, *, rng: np.random.Generator) -> Reports:
    """Draw who reports in a plan of one round, and merge the groups that are short of reporters."""
    merged = merge_played(plan, rng.random(len(chances)) < chances)
    released = merged.reporters > 0
    smallest = int(merged.reporters[released].min()) if released.any() else 0
    return Reports(
        merged.plan,
        released.astype(np.int32),
        merged.counted.astype(np.int32),
        smallest,
        merged.withheld,
    )


def _zeros(plan: Plan) -> tuple[IntArray, IntArray]:
    """Return no releases, (n_groups,), and no reports, (n_users,)."""
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
def _count_reports(
    reports: BoolArray,  # (n_rounds, n_users)
    groups: IntArray,
    min_group_size: int,
    released: IntArray,
    reported: IntArray,
) -> tuple[int, int]:
    """Count who is in releases; return the fewest reporters of one, and the totals withheld."""
    n_rounds, n_users = reports.shape
    reporters = np.empty(len(released), np.int32)
    has_users = np.zeros(len(released), np.bool_)
    for user in range(n_users):
        if groups[user] >= 0:
            has_users[groups[user]] = True
    smallest, withheld = n_users + 1, 0
    for t in range(n_rounds):
        reporters[:] = 0
        for user in range(n_users):
            if groups[user] >= 0:
                reporters[groups[user]] += reports[t, user]
        for group in range(len(reporters)):
            if reporters[group] >= min_group_size:
                released[group] += 1
                smallest = min(smallest, reporters[group])
            else:
                withheld += has_users[group]
        for user in range(n_users):
            if groups[user] >= 0 and reporters[groups[user]] >= min_group_size:
                reported[user] += reports[t, user]
    return smallest, withheld
