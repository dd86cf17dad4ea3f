"""LP decomposition (Section 3.4.2, Corollary 1): the demand as a mixture of polytope vertices.

P_C([K]) is the polytope of the paper's equation (1) with all arms open; its vertices are the
assignments with at least C+1 = ``min_crowd`` users on every arm. Carathéodory's theorem, made
algorithmic: find a vertex on the smallest face that holds the point, subtract as much of it as
stays in the polytope, repeat. Each step makes one more inequality tight, so at most NK+1
vertices are needed.

All arithmetic is in whole numbers: the point is ``shares / total``. Arm loads are kept between
floor and ceiling of their mean, a smaller integral polytope inside P_C([K]) in which the largest
step is whole.
"""

from __future__ import annotations

import math

import highspy
import numpy as np

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.decompositions.decomposition import Decomposition, arm_dtype
from shoal.decompositions.demand import checked_crowds
from shoal.decompositions.solver import quiet_solver, solve
from shoal.errors import DemandError, InvalidInputError


def lp_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, favour_large: bool = True
) -> Decomposition:
    """Write the demand as a convex combination of assignments that are informative for all.

    At most demand + n_users·n_arms + 1 assignments. Arms that nobody wants stay closed; every
    other arm's mean load, the sum of 1/|active arms| over the users who want it, must be at least
    ``min_crowd``.

    Parameters
    ----------
    active, demand, min_crowd
        As in ``decompose``.
    favour_large
        Take the vertex that uses what is left the most; otherwise any vertex, as in the paper.
        Both reach the same bound, the first with far fewer vertices.
    """
    checked_crowds(active, min_crowd)
    shares, total = even_shares(active)
    checked_loads(shares, total, min_crowd)
    assignments, steps = caratheodory(shares, total, favour_large=favour_large)
    return Decomposition(assignments, -(-demand * steps // total))


def even_shares(active: BoolArray) -> tuple[LongArray, int]:
    """Return equal whole shares of each user's active arms, and their sum, the same for all."""
    sizes = active.sum(axis=1)
    total = math.lcm(*set(sizes.tolist()))
    if total * len(active) >= 1 << 62:
        raise InvalidInputError(
            "the least common multiple of the numbers of active arms must be below "
            f"2^62/n_users for the LP decomposition; got {total}."
        )
    return np.where(active, total // sizes[:, None], 0), total


def checked_loads(shares: LongArray, total: int, min_crowd: int) -> None:
    """Refuse shares outside P_C of the arms that have any: an arm with too small a mean load."""
    loads = shares.sum(axis=0)
    short = (loads > 0) & (loads < min_crowd * total)
    if short.any():
        arm = int(short.argmax())
        raise DemandError(
            f"arm {arm} must have a mean load of at least min_crowd={min_crowd} to be open in "
            f"every assignment; got {loads[arm] / total:.6g}."
        )


def caratheodory(
    shares: LongArray, total: int, *, favour_large: bool = True
) -> tuple[WholeArray, LongArray]:
    """Split ``shares`` (n_users, n_arms), each row of sum ``total``, into weighted assignments.

    Returns the assignments and their weights, which sum to ``total``; weighted, they add up to
    ``shares`` exactly. Every load is the floor or ceiling of the arm's mean.
    """
    n_users, n_arms = shares.shape
    least, most = shares.sum(axis=0) // total, -(-shares.sum(axis=0) // total)
    left = shares.copy()
    face = _Face(shares > 0, least, most)
    assignments: list[WholeArray] = []
    steps: list[int] = []
    everyone = np.arange(n_users)
    while total > 0:
        arms = face.vertex(left, favour_large=favour_large)
        crowd = np.bincount(arms, minlength=n_arms)
        loads = left.sum(axis=0)
        # How far the loads may move before one reaches its floor or ceiling.
        room = np.where(crowd > least, loads - least * total, most * total - loads)
        step = int(left[everyone, arms].min())
        if (least < most).any():
            step = min(step, int(room[least < most].min()))
        left[everyone, arms] -= step
        total -= step
        assignments.append(arms.astype(arm_dtype(n_arms)))
        steps.append(step)
        loads -= crowd * step
        face.shrink(left, loads == least * total, loads == most * total)
    return np.array(assignments), np.array(steps, np.int64)


class _Face:
    """The smallest face of the polytope that holds what is left, as one warm LP."""

    def __init__(self, support: BoolArray, least: LongArray, most: LongArray) -> None:
        n_arms = support.shape[1]
        # Users with one arm are constants.
        self._free = np.flatnonzero(support.sum(axis=1) > 1)
        self._arms: LongArray = support.argmax(axis=1)
        fixed = np.bincount(np.delete(self._arms, self._free), minlength=n_arms)
        self._least, self._most = least - fixed, most - fixed
        row, self._arm = np.nonzero(support[self._free])
        self._user = self._free[row]
        n_free, n_pairs = len(self._free), len(row)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n_pairs, n_free + n_arms
        lp.col_cost_ = np.zeros(n_pairs)
        lp.col_lower_, lp.col_upper_ = np.zeros(n_pairs), np.ones(n_pairs)
        lp.row_lower_ = np.concatenate([np.ones(n_free), self._least])
        lp.row_upper_ = np.concatenate([np.ones(n_free), self._most])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = 2 * np.arange(n_pairs + 1)
        lp.a_matrix_.index_ = np.stack([row, n_free + self._arm], axis=1).ravel()
        lp.a_matrix_.value_ = np.ones(2 * n_pairs)
        lp.sense_ = highspy.ObjSense.kMaximize
        self._solver = quiet_solver()
        self._solver.passModel(lp)
        self._open = np.ones(n_pairs, bool)

    def vertex(self, left: LongArray, *, favour_large: bool) -> LongArray:
        """Return an assignment on the face."""
        if len(self._free):
            if favour_large:
                pairs = np.arange(len(self._user), dtype=np.int32)
                gains = left[self._user, self._arm].astype(float)
                self._solver.changeColsCost(len(pairs), pairs, gains)
            solve(self._solver)
            chosen = np.asarray(self._solver.getSolution().col_value) > 0.5
            self._arms[self._user[chosen]] = self._arm[chosen]
        return self._arms.copy()

    def shrink(self, left: LongArray, at_least: BoolArray, at_most: BoolArray) -> None:
        """Close the pairs with nothing left, and fix the loads that became tight."""
        gone = np.flatnonzero(self._open & (left[self._user, self._arm] == 0))
        if len(gone):
            self._open[gone] = False
            zeros = np.zeros(len(gone))
            self._solver.changeColsBounds(len(gone), gone.astype(np.int32), zeros, zeros)
        upper = np.where(at_least, self._least, self._most)
        lower = np.where(at_most, self._most, self._least)
        for arm in np.flatnonzero(at_least | at_most):
            self._solver.changeRowBounds(
                len(self._free) + int(arm), float(lower[arm]), float(upper[arm])
            )
