"""Who reports: in how many rounds each group is released and each user is part of a total.

Every user reports in a round with its own probability, independently. A group with fewer than
``min_group_size`` (C) reporters in a round is withheld in that round.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.errors import InvalidInputError
from shoal.model import Plan

Counts = NDArray[np.int32]

_DRAWS = 2**15
"""Chances drawn at once: few calls where users are few, little memory where they are many."""


def everyone(plan: Plan) -> tuple[Counts, Counts]:
    """Return the rounds of each group, (n_groups,), and user, (n_users,), where all report."""
    released, reported = _none(plan)
    _count_all(plan.groups, plan.repeats, released, reported)
    return released, reported


def some(
    plan: Plan, chances: NDArray[np.float64], *, rng: np.random.Generator
) -> tuple[Counts, Counts, int, int]:
    """Return the same, where each user reports with the probability in ``chances``, (n_users,).

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
    return released, reported, smallest, withheld


def _none(plan: Plan) -> tuple[Counts, Counts]:
    if plan.repeats >= 2**31:
        raise InvalidInputError(
            f"repeats must be less than 2**31 to be played; got {plan.repeats}."
        )
    return np.zeros(plan.n_groups, np.int32), np.zeros(len(plan.groups), np.int32)


@njit(cache=True)
def _count_all(groups: Counts, repeats: int, released: Counts, reported: Counts) -> None:
    for user in range(len(groups)):
        if groups[user] >= 0:
            released[groups[user]] = repeats
            reported[user] = repeats


@njit(cache=True)
def _count_reporters(
    uniforms: NDArray[np.float64],  # (n_rounds, n_users)
    chances: NDArray[np.float64],
    groups: Counts,
    min_group_size: int,
    released: Counts,
    reported: Counts,
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
