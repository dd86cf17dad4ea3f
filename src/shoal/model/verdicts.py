"""What can be wrong with a plan or its feedback: the verdicts of the checks, and the errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.arrays import IntArray
from shoal.errors import AnonymityError, InvalidInputError
from shoal.model.problem import Problem

if TYPE_CHECKING:
    from shoal.model.plan import Feedback, Plan

FINE = 0
BAD_ARM, BAD_GROUP, TWO_ARMS, TWO_SHARDS, SMALL_GROUP = range(1, 6)  # of a plan
BAD_TOTAL, BAD_RELEASES, BAD_REPORTS, FEW_REPORTS = range(6, 10)  # of feedback


def plan_error(
    verdict: int, where: int, arms: IntArray, groups: IntArray, problem: Problem
) -> InvalidInputError:
    """Return why there can't be a plan of these arms and groups."""
    if verdict == BAD_ARM:
        return InvalidInputError(
            f"arms[{where}] must be between 0 and n_arms-1={problem.n_arms - 1}; got {arms[where]}."
        )
    if verdict == BAD_GROUP:
        return InvalidInputError(
            f"groups[{where}] must be between -1 and n_users-1={problem.n_users - 1}; "
            f"got {groups[where]}."
        )
    group = where if verdict == SMALL_GROUP else groups[where]
    members = np.flatnonzero(groups == group)
    if verdict == SMALL_GROUP:
        return AnonymityError(
            f"group {group} must have at least min_group_size={problem.min_group_size} users; "
            f"got {len(members)}."
        )
    if verdict == TWO_ARMS:
        group_arms = sorted(set(arms[members].tolist()))
        return AnonymityError(f"group {group} must have one arm; got arms {group_arms}.")
    shards = sorted(set((members // problem.shard_size).tolist()))
    return AnonymityError(f"group {group} must lie in one shard; got shards {shards}.")


def feedback_error(verdict: int, where: int, feedback: Feedback, plan: Plan) -> InvalidInputError:
    """Return why feedback can't be that of a plan."""
    if verdict == BAD_TOTAL:
        rule = "between 0 and its reports" if plan.problem.bounded else "a finite number"
        return InvalidInputError(
            f"the total of group {where} must be {rule}; got {feedback.totals[where]}."
        )
    if verdict == BAD_RELEASES:
        return InvalidInputError(
            f"group {where} must be released between 0 and {plan.repeats} times; "
            f"got {feedback.released[where]}."
        )
    if verdict == BAD_REPORTS:
        return InvalidInputError(
            f"user {where} must report at most {plan.repeats} times, and in a released group; "
            f"got {feedback.reported[where]}."
        )
    size, n_released = plan.problem.min_group_size, int(feedback.released[where])
    return AnonymityError(
        f"group {where} must have at least {size * n_released} reports, min_group_size={size} "
        f"whenever it is released; got {feedback.reported[plan.groups == where].sum()}."
    )
