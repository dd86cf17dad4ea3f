"""Who reports: in how many rounds each group is released and each user is part of a total.

Every user reports in a round with a probability of its own, independently. A group with fewer than
``min_group_size`` (C) reporters is merged with others of its arm and shard (``model.merging``), or
withheld. A plan that is repeated has one total per group for all its rounds, so that nothing can be
merged in one of them: there, a short group is withheld in that round.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import FloatArray, IntArray
from shoal.errors import InvalidInputError
from shoal.kernels import kernel
from shoal.model import Plan
from shoal.model.merging import Reports, merge_played

DRAWS_AT_ONCE = 2**15
"""Reports drawn in one call: few calls where users are few, little memory where they are many."""


def all_report(plan: Plan) -> tuple[IntArray, IntArray]:
    """Return the rounds of each group, (n_groups,), and user, (n_users,), where all report."""
    released, reported = _zeros(plan)
    _count_all(plan.groups, plan.repeats, released, reported)
    return released, reported


def draw_reports(plan: Plan, chances: FloatArray, *, rng: np.random.Generator) -> Reports:
    """Draw who reports in each round of a plan, with the probabilities ``chances``, (n_users,)."""
    released, reported = _zeros(plan)
    n_users = len(chances)
    n_rounds = max(1, DRAWS_AT_ONCE // n_users)
    smallest, withheld = n_users + 1, 0
    for start in range(0, plan.repeats, n_rounds):
        uniforms = rng.random((min(n_rounds, plan.repeats - start), n_users))
        fewest, n_withheld = _count_reports(
            uniforms, chances, plan.groups, plan.problem.min_group_size, released, reported
        )
        smallest = min(smallest, fewest)
        withheld += n_withheld
    return Reports(plan, released, reported, smallest if smallest <= n_users else 0, withheld)


def draw_and_merge(plan: Plan, chances: FloatArray, *, rng: np.random.Generator) -> Reports:
    """Draw who reports in a plan of one round, and merge the groups that are short of reporters."""
    return merge_played(plan, rng.random(len(chances)) < chances)


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
    uniforms: FloatArray, chances: FloatArray, groups: IntArray, min_group_size: int,
    released: IntArray, reported: IntArray,
) -> tuple[int, int]:  # fmt: skip
    """Count who is in releases; return the fewest reporters of one, and the totals withheld."""
    n_rounds, n_users = uniforms.shape
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
    return smallest, withheld
