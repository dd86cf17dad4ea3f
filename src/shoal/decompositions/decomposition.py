"""The result of every method: assignments of users to arms, with repeat counts (Section 3.2).

An assignment is the paper's M_r; one that is repeated n times stands for n equal ones, so that
R, the number of assignments, is ``total``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.arrays import BoolArray, LongArray, WholeArray


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """Assignments that together meet a demand.

    Parameters
    ----------
    assignments
        The arm of each user in each assignment, (n_assignments, n_users).
    repeats
        How often each assignment is played, (n_assignments,).

    Examples
    --------
    >>> Decomposition(np.array([[0, 0], [1, 1]]), np.array([3, 2])).total
    5
    """

    assignments: WholeArray
    repeats: LongArray

    @property
    def total(self) -> int:
        """Assignments to play, counted with repeats: the paper's R."""
        return int(self.repeats.sum())


def arm_dtype(n_arms: int) -> type[np.signedinteger]:
    """Return the type that assignments keep arms in: narrow, for they are the bulk of the data."""
    return np.int16 if n_arms <= np.iinfo(np.int16).max else np.int32


def gather_users(active: BoolArray, repeats: LongArray, others: WholeArray) -> Decomposition:
    """Return an assignment for each arm with ``repeats`` (n_arms,), with everyone who wants it.

    Whoever does not want the arm plays the one in ``others``, (n_users,) or (n_arms, n_users).
    """
    arms = np.flatnonzero(repeats > 0)
    rows = np.where(active[:, arms].T, arms[:, None].astype(others.dtype), others)
    return Decomposition(rows, repeats[arms])


def first_arms(active: BoolArray) -> WholeArray:
    """Return each user's first active arm, (n_users,)."""
    arms: WholeArray = active.argmax(axis=1).astype(arm_dtype(active.shape[1]))
    return arms


def concatenate(parts: Sequence[Decomposition]) -> Decomposition:
    """Return one decomposition that plays all of ``parts``; a single one is not copied."""
    if len(parts) == 1:
        return parts[0]
    return Decomposition(
        np.concatenate([part.assignments for part in parts]),
        np.concatenate([part.repeats for part in parts]),
    )
