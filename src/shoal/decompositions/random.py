"""Random decomposition (Section 3.4.2's intuition and Appendix B): active arms by chance.

Each user goes to a uniformly random active arm, again and again, until all demand is met.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.decompositions.decomposition import Decomposition, arm_dtype
from shoal.decompositions.demand import checked_crowds, required_samples
from shoal.errors import DemandError
from shoal.kernels import kernel

_CHUNK = 1 << 21  # user-rounds drawn at once: bounds the memory for random bits


class ActiveArms(NamedTuple):
    """Each user's active arms, first in each row, and their number."""

    lists: WholeArray  # (n_users, most active arms)
    sizes: LongArray  # (n_users,)


def random_decomposition(
    active: BoolArray,
    demand: int,
    *,
    min_crowd: int,
    rng: np.random.Generator | None = None,
    limit: int | None = None,
    partial: bool = False,
) -> Decomposition:
    """Assign users to random active arms until all demand is met.

    ``rng`` draws the arms, a fixed stream if not given, at most ``limit`` assignments; where
    chance can meet the demand at all, the default suffices but for a negligible probability.
    ``partial`` returns what they reach, instead of refusing, if the demand is not met.
    """
    if not partial:
        checked_crowds(active, min_crowd)
    rng = np.random.default_rng(0) if rng is None else rng
    n_users, n_arms = active.shape
    limit = n_arms * (4 * demand + 64) if limit is None else limit
    arms = _active_arms(active)
    need = required_samples(active, demand)
    counts = np.zeros(active.shape, np.int64)
    n_unmet = int(arms.sizes.sum())
    chunks: list[WholeArray] = []
    n_drawn = 0
    while n_unmet and n_drawn < limit:
        bits = _bits(min(limit - n_drawn, max(1, _CHUNK // n_users)), n_users, rng)
        rows = np.empty(bits.shape, arms.lists.dtype)
        n_rows, n_unmet = _draw_until_met(rows, bits, arms, need, counts, n_unmet, min_crowd)
        chunks.append(rows[:n_rows])
        n_drawn += n_rows
    if n_unmet and not partial:
        user, arm = np.argwhere(active & (counts < need[:, None]))[0]
        raise DemandError(
            f"arm {arm} must be informative for user {user} in {need[user]} of limit={limit} "
            f"random assignments; got {counts[user, arm]}."
        )
    return Decomposition(np.concatenate(chunks), np.ones(n_drawn, np.int64))


def draw(active: BoolArray, n_assignments: int, *, rng: np.random.Generator) -> WholeArray:
    """Draw a uniformly random active arm for each user, (n_assignments, n_users)."""
    arms = _active_arms(active)
    rows = np.empty((n_assignments, len(active)), arms.lists.dtype)
    step = max(1, _CHUNK // len(active))
    for start in range(0, n_assignments, step):
        chunk = rows[start : start + step]
        _pick(chunk, _bits(len(chunk), len(active), rng), arms)
    return rows


def _bits(n_rows: int, n_users: int, rng: np.random.Generator) -> NDArray[np.uint32]:
    return rng.integers(0, 1 << 32, (n_rows, n_users), np.uint32)


def _active_arms(active: BoolArray) -> ActiveArms:
    sizes = active.sum(axis=1)
    order = np.argsort(~active, axis=1, kind="stable")[:, : sizes.max()]
    return ActiveArms(np.ascontiguousarray(order, arm_dtype(active.shape[1])), sizes)


@kernel()
def _pick(rows: WholeArray, bits: NDArray[np.uint32], arms: ActiveArms) -> None:
    for row in range(len(rows)):
        for user in range(rows.shape[1]):
            # Multiply and shift: uniform up to 2^-32, and no division.
            pick = (np.uint64(bits[row, user]) * np.uint64(arms.sizes[user])) >> np.uint64(32)
            rows[row, user] = arms.lists[user, pick]


@kernel()
def _draw_until_met(
    rows: WholeArray,
    bits: NDArray[np.uint32],
    arms: ActiveArms,
    need: LongArray,
    counts: LongArray,
    n_unmet: int,
    min_crowd: int,
) -> tuple[int, int]:
    """Fill ``rows`` until no pair is unmet; return the rows filled and the pairs still unmet."""
    n_users, n_arms = counts.shape
    for row in range(len(rows)):
        _pick(rows[row : row + 1], bits[row : row + 1], arms)
        crowds = np.bincount(rows[row], minlength=n_arms)
        for user in range(n_users):
            arm = rows[row, user]
            counts[user, arm] += crowds[arm] >= min_crowd
            n_unmet -= crowds[arm] >= min_crowd and counts[user, arm] == need[user]
        if n_unmet == 0:
            return row + 1, 0
    return len(rows), n_unmet
