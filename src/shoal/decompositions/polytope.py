"""Membership in the anonymity polytopes P_C and P_C(S) (Section 3.4.2), proven either way.

A point is ``shares / total``, whole numbers (n_users, n_arms). Inside, the proof is a
decomposition: for P_C(S) assignments that add up to the point, for P_C a mixture of points of
P_C(S), each checked by the inequalities of equation (1). Outside, it is an inequality: prices p
and a bound with p·v at most the bound for every v in the polytope, and p·x above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.decompositions.decomposition import Decomposition
from shoal.decompositions.lp import caratheodory
from shoal.decompositions.open_sets import OpenSetProgram
from shoal.decompositions.pricing import pricing
from shoal.errors import InvalidInputError
from shoal.model.numbers import whole_number

TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """Whether a point is in a polytope, and why.

    Parameters
    ----------
    inside
        The answer; the object is true exactly if it is.
    vertices
        For P_C(S), inside: assignments whose repeats sum to ``total`` and which, so weighted,
        add up to the shares; -1 for a user who plays nothing.
    open_sets, weights, points
        For P_C, inside: points (n_sets, n_users, n_arms) of the P_C(S), with weights that sum to
        at most 1 (the rest is the point 0), that add up to the point.
    prices, bound
        Outside: the separating inequality, prices (n_users, n_arms).
    """

    inside: bool
    vertices: Decomposition | None = None
    open_sets: BoolArray | None = None
    weights: FloatArray | None = None
    points: FloatArray | None = None
    prices: FloatArray | None = None
    bound: float | None = None

    def __bool__(self) -> bool:
        return self.inside


def in_open_polytope(
    shares: ArrayLike, total: int, open_arms: ArrayLike, *, min_crowd: int
) -> Membership:
    """Tell whether ``shares / total`` is in P_C(S), S the ``open_arms`` (n_arms,); exact.

    >>> bool(in_open_polytope([[1, 1], [1, 1]], 2, [True, True], min_crowd=1))
    True
    >>> in_open_polytope([[1, 1], [1, 0]], 2, [True, True], min_crowd=1).prices
    array([[ 0., -1.],
           [ 0., -1.]])
    """
    point, total = _checked_point(shares, total)
    opened = np.asarray(open_arms, np.bool_)
    if opened.shape != point.shape[1:]:
        raise InvalidInputError(
            f"open_arms must have shape ({point.shape[1]},); got {opened.shape}."
        )
    prices = np.zeros(point.shape)
    rows, columns = point.sum(axis=1), point.sum(axis=0)
    if (point < 0).any():
        prices[np.unravel_index(point.argmin(), point.shape)] = -1.0
        return Membership(False, prices=prices, bound=0.0)
    if (rows > total).any():
        prices[rows.argmax()] = 1.0
        return Membership(False, prices=prices, bound=1.0)
    if columns[~opened].any():
        prices[:, np.argmax(columns * ~opened)] = 1.0
        return Membership(False, prices=prices, bound=0.0)
    if (columns[opened] < min_crowd * total).any():
        prices[:, np.argmin(np.where(opened, columns, columns.max() + 1))] = -1.0
        return Membership(False, prices=prices, bound=-float(min_crowd))
    n_arms = point.shape[1]
    # Playing nothing is one more arm, without a crowd to reach.
    assignments, repeats = caratheodory(np.column_stack([point, total - rows]), total)
    assignments[assignments == n_arms] = -1
    return Membership(True, vertices=Decomposition(assignments, repeats))


def in_polytope(
    shares: ArrayLike, total: int, *, min_crowd: int, seconds: float = 60.0
) -> Membership:
    """Tell whether ``shares / total`` is in P_C, up to the LP solver's tolerance.

    The point of P_C that is nearest (in the sum of absolute differences) is found by adding open
    sets as prices ask for them; the prices of the last ones separate.

    >>> bool(in_polytope([[1, 1], [1, 1]], 2, min_crowd=2))
    True
    >>> bool(in_polytope([[1, 1], [1, 0]], 2, min_crowd=2))
    False
    """
    point, total = _checked_point(shares, total)
    if (point < 0).any() or (point.sum(axis=1) > total).any():
        return in_open_polytope(point, total, np.ones(point.shape[1], np.bool_), min_crowd=1)
    kinds, of_user, counts = np.unique(point, axis=0, return_inverse=True, return_counts=True)
    of_user = of_user.ravel()
    everything = np.ones(kinds.shape, np.bool_)
    target = (kinds / total).ravel()
    unit = np.eye(kinds.size)
    cost = -np.repeat(counts, kinds.shape[1]).astype(float)
    program = OpenSetProgram(
        everything,
        counts,
        min_crowd=min_crowd,
        extra=np.hstack([unit, -unit]),
        gains=np.concatenate([cost, cost]),
        lower=target,
        upper=target,
    )
    oracle = pricing(everything, counts, min_crowd=min_crowd)
    end = monotonic() + seconds
    while True:
        distance = -program.solve(vertex=True)
        weight_price, prices = program.prices()
        if distance <= TOLERANCE:
            weights, plays = program.solution()
            used = weights > 0
            points = plays[used] / weights[used, None, None]
            return Membership(
                True,
                open_sets=np.array(program.sets)[used],
                weights=weights[used],
                points=points[:, of_user],
            )
        better, bound = oracle.best(
            prices, above=max(0.0, weight_price) + TOLERANCE, seconds=end - monotonic()
        )
        per_user = (prices / counts[:, None])[of_user]
        if (per_user * point).sum() / total > bound + TOLERANCE:
            return Membership(False, prices=per_user, bound=bound)
        if not better:
            raise InvalidInputError(
                f"membership in P_C must be settled within seconds={seconds:g} and "
                f"{TOLERANCE:g}; got distance {distance:.3g}."
            )
        for opened in better:
            program.add(opened)


def _checked_point(shares: ArrayLike, total: int) -> tuple[LongArray, int]:
    point = np.asarray(shares)
    if point.ndim != 2 or 0 in point.shape:
        raise InvalidInputError(f"shares must have shape (n_users, n_arms); got {point.shape}.")
    if point.dtype.kind not in "iu":
        raise InvalidInputError(f"shares must hold whole numbers; got dtype {point.dtype}.")
    return point.astype(np.int64), whole_number("total", total)
