"""An independent verifier of anonymous decompositions (Section 3.2, both conditions).

It shares no code with the methods that it checks, and counts in whole numbers only.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arrays import BoolArray, LongArray
from shoal.decompositions.decomposition import Decomposition
from shoal.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Certificate:
    """The verdict on a decomposition; true exactly if it meets the demand.

    Parameters
    ----------
    valid
        Whether both conditions hold.
    reason
        The first broken rule with user, arm and count; empty if there is none.
    smallest_crowd
        Fewest users on an arm that anyone plays, over all assignments.
    ratio
        Assignments per unit of demand: the paper's R/D.
    """

    valid: bool
    reason: str
    smallest_crowd: int
    ratio: float

    def __bool__(self) -> bool:
        return self.valid


def is_decomposition(
    active: ArrayLike,
    demand: int,
    decomposition: Decomposition | ArrayLike,
    repeats: ArrayLike | None = None,
    *,
    min_crowd: int,
) -> Certificate:
    """Check that a decomposition meets the demand of a batched graph.

    Users play active arms only, and each gets at least ``demand / |active arms|`` informative
    assignments on each active arm. An assignment is informative for a user if at least
    ``min_crowd`` users, itself included, are on its arm: C+1 for the paper's estimator, 2C for
    the pooled one.

    Parameters
    ----------
    active
        Each user's active arms, (n_users, n_arms).
    demand
        Pieces of feedback that each user wants in all.
    decomposition
        A ``Decomposition``, or its assignments (n_assignments, n_users).
    repeats
        How often each assignment is played, (n_assignments,); once each if not given.
    min_crowd
        Users on an arm that make an assignment informative.

    Examples
    --------
    >>> active = [[True, True], [True, True], [False, True]]
    >>> is_decomposition(active, 2, [[0, 0, 1], [1, 1, 1]], [1, 2], min_crowd=2)
    Certificate(valid=True, reason='', smallest_crowd=1, ratio=1.5)
    >>> is_decomposition(active, 2, [[0, 0, 1], [1, 1, 1]], min_crowd=2).reason
    'user 2 needs 2 informative assignments on arm 1; got 1.'
    """
    active_mask = np.asarray(active, bool)  # (n_users, n_arms)
    rows, times = _assignments(decomposition, repeats, len(active_mask))
    n_users, n_arms = active_mask.shape
    informative = np.zeros((n_users, n_arms), np.int64)
    users = np.arange(n_users)
    smallest, reason = n_users, ""
    for row, n_times in zip(rows, times.tolist(), strict=True):
        reason = _broken_row(row, n_times, active_mask)
        if reason:
            break
        crowd = np.bincount(row, minlength=n_arms)
        smallest = min(smallest, int(crowd[crowd > 0].min()))
        informative[users, row] += n_times * (crowd[row] >= min_crowd)
    reason = reason or _shortfall(active_mask, demand, informative)
    return Certificate(not reason, reason, smallest, int(times.sum()) / demand)


def _assignments(
    decomposition: Decomposition | ArrayLike, repeats: ArrayLike | None, n_users: int
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Return the assignments, (n_assignments, n_users), and how often each is played."""
    if isinstance(decomposition, Decomposition):
        if repeats is not None:
            raise InvalidInputError("repeats must not be given with a Decomposition; got both.")
        repeats, decomposition = decomposition.repeats, decomposition.assignments
    rows = np.atleast_2d(np.asarray(decomposition))
    times = np.ones(len(rows), np.int64) if repeats is None else np.asarray(repeats)
    if rows.shape[1:] != (n_users,) or times.shape != (len(rows),):
        raise InvalidInputError(
            f"assignments must have shape (n_assignments, {n_users}) and repeats (n_assignments,); "
            f"got {rows.shape} and {times.shape}."
        )
    return rows, times


def _broken_row(row: NDArray[np.integer], n_times: int, active_mask: BoolArray) -> str:
    n_users, n_arms = active_mask.shape
    if n_times < 0:
        return f"repeats must be at least 0; got {n_times}."
    outside = (row < 0) | (row >= n_arms)
    if outside.any():
        user = int(outside.argmax())
        return f"user {user} must play an arm between 0 and {n_arms - 1}; got {row[user]}."
    unwanted = ~active_mask[np.arange(n_users), row]
    if unwanted.any():
        user = int(unwanted.argmax())
        return f"user {user} must play an active arm; got arm {row[user]}."
    return ""


def _shortfall(active_mask: BoolArray, demand: int, informative: LongArray) -> str:
    n_active = active_mask.sum(axis=1, keepdims=True)
    short = active_mask & (informative * n_active < demand)
    if not short.any():
        return ""
    user, arm = (int(index) for index in np.unravel_index(short.argmax(), short.shape))
    need = -(-demand // int(n_active[user, 0]))
    return (
        f"user {user} needs {need} informative assignments on arm {arm}; "
        f"got {informative[user, arm]}."
    )
