"""The paper's LP decompositions (Section 3.4.2): the demand as a mixture of polytope vertices.

The vertices of P_C([K]), with all arms open, are the assignments with at least C+1 = ``min_crowd``
users on every arm. Take the one, on the smallest face that holds the point, that uses what remains
the most; subtract as much of it as stays in the polytope; repeat. Each step makes one more
inequality tight, so at most NK+1 vertices are needed (Carathéodory).

All arithmetic is in integers: the point is ``shares / total``. Arm loads are kept between floor
and ceiling of their mean, a smaller integral polytope inside P_C([K]) in which the largest step
is an integer.

Corollary 1 opens all arms in every assignment; Corollary 2, by Lemma 6, one block of them at a
time, each as wide as the clusters can fill.
"""

import math
from fractions import Fraction

import numpy as np

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.decompositions.decomposition import Decomposition, arm_dtype, concatenate, first_arms
from shoal.decompositions.demand import checked_crowds, cluster_size
from shoal.decompositions.solver import Columns, LinearProgram
from shoal.errors import DemandError, InvalidInputError


def lp_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None = None
) -> Decomposition:
    """Write the demand as a convex combination of assignments that are informative for all.

    Arms that nobody wants stay closed; every other arm's mean load, the sum of 1/|active arms|
    over the users who want it, must be at least ``min_crowd``.
    """
    checked_crowds(active, min_crowd)
    return _serve_block(active, demand, np.arange(active.shape[1]), min_crowd)


def blocks_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None = None
) -> Decomposition:
    """Serve the arms in blocks of at most floor(U/min_crowd), each by the LP decomposition.

    Fewer assignments than one demand a block where no user wants the whole demand from one block.
    """
    checked_crowds(active, min_crowd)
    wanted_arms = np.flatnonzero(active.any(axis=0))
    width = max(1, cluster_size(active[:, wanted_arms]) // min_crowd)
    blocks = np.array_split(wanted_arms, -(-len(wanted_arms) // width))
    return concatenate([_serve_block(active, demand, block, min_crowd) for block in blocks])


def _serve_block(active: BoolArray, demand: int, block: LongArray, min_crowd: int) -> Decomposition:
    """Let users play their active arms in the block evenly; the others wait on their first arm."""
    inside = np.zeros_like(active)
    inside[:, block] = active[:, block]
    busy = inside.any(axis=1)
    shares, total = _even_shares(inside[busy])
    _checked_loads(shares, total, min_crowd)
    block_assignments, steps = caratheodory(shares, total)
    assignments = np.tile(first_arms(active), (len(block_assignments), 1))
    assignments[:, busy] = block_assignments
    # A user wants demand/|active| of each arm and gets rounds/|inside|: the largest ratio decides.
    pairs = np.unique(np.stack([inside.sum(axis=1), active.sum(axis=1)]), axis=1).T.tolist()
    share = max(Fraction(n_inside, n_active) for n_inside, n_active in pairs)
    repeats = -(-demand * share.numerator * steps // (share.denominator * total))
    return Decomposition(assignments, repeats)


def _even_shares(active: BoolArray) -> tuple[LongArray, int]:
    """Return equal integer shares of each user's active arms, and their sum, the same for all."""
    sizes = active.sum(axis=1)
    total = math.lcm(*set(sizes.tolist()))
    if total * len(active) >= 1 << 62:
        raise InvalidInputError(
            "the least common multiple of the numbers of active arms must be below "
            f"2^62/n_users for the LP decomposition; got {total}."
        )
    return np.where(active, total // sizes[:, None], 0), total


def _checked_loads(shares: LongArray, total: int, min_crowd: int) -> None:
    """Refuse shares outside P_C of the arms that have any: an arm with too small a mean load."""
    loads = shares.sum(axis=0)
    short = (loads > 0) & (loads < min_crowd * total)
    if short.any():
        arm = int(short.argmax())
        raise DemandError(
            f"arm {arm} must have a mean load of at least min_crowd={min_crowd} to be open in "
            f"every assignment; got {loads[arm] / total:.6g}."
        )


def caratheodory(shares: LongArray, total: int) -> tuple[WholeArray, LongArray]:
    """Split ``shares`` (n_users, n_arms), each row of sum ``total``, into weighted assignments.

    Returns the assignments and their weights, which sum to ``total``; weighted, they add up to
    ``shares`` exactly. Every load is the floor or ceiling of the arm's mean.
    """
    n_users, n_arms = shares.shape
    low, high = shares.sum(axis=0) // total, -(-shares.sum(axis=0) // total)
    remaining = shares.copy()
    face = _Face(shares > 0, low, high)
    assignments: list[WholeArray] = []
    steps: list[int] = []
    users = np.arange(n_users)
    while total > 0:
        arms = face.vertex(remaining)
        crowds = np.bincount(arms, minlength=n_arms)
        loads = remaining.sum(axis=0)
        # How far the loads may move before one reaches its floor or ceiling.
        slack = np.where(crowds > low, loads - low * total, high * total - loads)
        step = int(remaining[users, arms].min())
        if (low < high).any():
            step = min(step, int(slack[low < high].min()))
        remaining[users, arms] -= step
        total -= step
        assignments.append(arms.astype(arm_dtype(n_arms)))
        steps.append(step)
        loads -= crowds * step
        face.shrink(remaining, loads == low * total, loads == high * total)
    return np.array(assignments), np.array(steps, np.int64)


class _Face:
    """The smallest face of the polytope that holds what remains, as one warm LP."""

    def __init__(self, support: BoolArray, low: LongArray, high: LongArray) -> None:
        n_arms = support.shape[1]
        # Users with one arm are constants.
        self._free = np.flatnonzero(support.sum(axis=1) > 1)
        self._arms: LongArray = support.argmax(axis=1)
        fixed = np.bincount(np.delete(self._arms, self._free), minlength=n_arms)
        self._low, self._high = low - fixed, high - fixed
        row, self._arm = np.nonzero(support[self._free])
        self._user = self._free[row]
        n_free, n_pairs = len(self._free), len(row)
        self._program = LinearProgram(
            gains=np.zeros(n_pairs),
            upper=np.ones(n_pairs),
            row_lower=np.concatenate([np.ones(n_free), self._low]),
            row_upper=np.concatenate([np.ones(n_free), self._high]),
            matrix=Columns(
                2 * np.arange(n_pairs + 1),
                np.stack([row, n_free + self._arm], axis=1).ravel(),
                np.ones(2 * n_pairs),
            ),
        )
        self._is_open = np.ones(n_pairs, bool)

    def vertex(self, remaining: LongArray) -> LongArray:
        """Return the assignment on the face that uses what remains the most."""
        if len(self._free):
            self._program.set_gains(remaining[self._user, self._arm].astype(float))
            self._program.solve()
            chosen = self._program.values() > 0.5
            self._arms[self._user[chosen]] = self._arm[chosen]
        return self._arms.copy()

    def shrink(self, remaining: LongArray, at_low: BoolArray, at_high: BoolArray) -> None:
        """Close the pairs with nothing remaining, and fix the loads that became tight."""
        closed = np.flatnonzero(self._is_open & (remaining[self._user, self._arm] == 0))
        if len(closed):
            self._is_open[closed] = False
            self._program.set_upper(closed, np.zeros(len(closed)))
        upper = np.where(at_low, self._low, self._high)
        lower = np.where(at_high, self._high, self._low)
        for arm in np.flatnonzero(at_low | at_high):
            self._program.highs.changeRowBounds(
                len(self._free) + int(arm), float(lower[arm]), float(upper[arm])
            )
