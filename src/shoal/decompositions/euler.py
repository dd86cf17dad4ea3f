"""Euler decomposition: every arm's load is floor or ceiling of its mean in every assignment.

The paper's demand w/D gives user i a share 1/|A_i| of each active arm. Where every mean load, the
sum of those shares on an arm, is at least ``min_crowd``, an even spread of the shares over R
assignments (``equitable``) is informative for everyone in all of them: R = D up to rounding, where
the LP decomposition pays up to NK more. Time and memory are near-linear in n_users·n_slots.

A rota of s users with the same s active arms, each one arm further than the one before, has one
user on each arm in every slot. So whole rotas need no work but writing them down; only the users
left over, fewer than s of each type, are spread by Euler tours.

Where some mean loads are smaller, the arms are served in blocks (Lemma 6), and a block is open
only for the largest share of the assignments that a user wants from it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.decompositions.decomposition import Decomposition, arm_dtype, concatenate
from shoal.decompositions.demand import BatchedGraph, batched_graph, checked_crowds
from shoal.decompositions.equitable import equitable, fit_loads
from shoal.kernels import kernel


def euler_decomposition(
    active: BoolArray,
    demand: int,
    *,
    min_crowd: int,
    rng: np.random.Generator | None = None,
    levels: int = 8,
) -> Decomposition:
    """Spread every user's demand evenly over assignments that are informative for all.

    At most 2^levels + n_arms different assignments a block: rounding to integer shares costs a
    block at most n_arms·ceil(demand/2^levels) assignments. Where 2^levels ≥ demand and one block
    suffices, no decomposition has fewer assignments.
    """
    checked_crowds(active, min_crowd)
    graph, of_user = batched_graph(active, min_crowd)
    blocks = [
        _spread_block(graph.patterns, of_user, demand, b, 1 << levels) for b in open_blocks(graph)
    ]
    return concatenate(blocks)


def open_blocks(graph: BatchedGraph) -> list[LongArray]:
    """Return blocks of arms that can be open together in every assignment: one, if possible.

    First fit, popular arms first. As any floor(U/min_crowd) arms of a U-batched graph fit
    together, there are never more blocks than in the paper.
    """
    n_wanting = graph.counts @ graph.patterns
    wanted_arms = np.flatnonzero(n_wanting)
    if fit_together(graph, wanted_arms):
        return [wanted_arms]
    blocks: list[LongArray] = []
    for arm in wanted_arms[np.argsort(-n_wanting[wanted_arms], kind="stable")]:
        for place, block in enumerate(blocks):
            larger = np.append(block, arm)
            if fit_together(graph, larger):
                blocks[place] = larger
                break
        else:
            blocks.append(np.array([arm]))
    return blocks


def fit_together(graph: BatchedGraph, arms: LongArray) -> bool:
    """Tell whether every one of these arms has a mean load of at least a crowd."""
    loads, unit = _mean_loads(graph.patterns[:, arms], graph.counts)
    return all(load >= graph.min_crowd * unit for load in loads)


def _mean_loads(patterns: BoolArray, counts: LongArray) -> tuple[list[int], int]:
    """Return the exact sum of 1/|active arms| over the users who want each arm, and its unit."""
    sizes = patterns.sum(axis=1)
    different = np.unique(sizes[sizes > 0])
    unit = math.lcm(*different.tolist())
    loads = [0] * patterns.shape[1]
    for size in different:
        of_size = sizes == size
        for arm, n_users in enumerate((counts[of_size] @ patterns[of_size]).tolist()):
            loads[arm] += n_users * (unit // int(size))
    return loads, unit


def _spread_block(
    patterns: BoolArray, of_user: LongArray, demand: int, block: LongArray, max_slots: int
) -> Decomposition:
    inside = np.zeros_like(patterns)
    inside[:, block] = patterns[:, block]
    pairs = np.stack([inside.sum(axis=1), patterns.sum(axis=1)])
    n_slots, repeats = _slots(np.unique(pairs[:, pairs[0] > 0], axis=1), demand, max_slots)
    # Users with nothing in the block wait on any active arm.
    idle = np.flatnonzero(~inside.any(axis=1))
    inside[idle, patterns[idle].argmax(axis=1)] = True
    (kinds, _, _), kind = batched_graph(inside, 1)
    rows = _spread(kinds, kind[of_user], n_slots)
    return Decomposition(rows, np.full(n_slots, repeats, np.int64))


def _slots(pairs: LongArray, demand: int, max_slots: int) -> tuple[int, int]:
    """Return the number of different assignments and of their repeats with the least product.

    A user with a arms, b of them in the block (a column of ``pairs``: b, a), wants demand/a of
    each and gets at least repeats·floor(n_slots/b).
    """
    n_inside, n_active = pairs[:, :, None]
    n_slots = np.arange(int(n_inside.max()), max_slots + int(n_inside.max()) + 1)
    slots_per_arm = n_slots // n_inside  # (n_pairs, n_choices)
    repeats = (-(-demand // (n_active * slots_per_arm))).max(axis=0)
    best = int((n_slots * repeats).argmin())
    return int(n_slots[best]), int(repeats[best])


def _spread(patterns: BoolArray, of_user: LongArray, n_slots: int) -> WholeArray:
    """Return slots in which every user plays each active arm evenly and all loads are even."""
    sizes = patterns.sum(axis=1)
    places, counts = _places(of_user, len(patterns))
    leftover = np.flatnonzero(places >= (counts // sizes * sizes)[of_user])
    if 2 * len(leftover) > len(of_user):
        # Too few rotas to be worth writing.
        return equitable(_integer_shares(patterns[of_user], n_slots), n_slots)
    rows = rotas(patterns, of_user, places % sizes[of_user], n_slots=n_slots)
    if len(leftover):
        shares = _integer_shares(patterns[of_user[leftover]], n_slots)
        rows[:, leftover] = equitable(shares, n_slots)
    return rows


@kernel()
def _places(of_user: LongArray, n_types: int) -> tuple[LongArray, LongArray]:
    """Return each user's number among those of its type, and the users of each type."""
    counts = np.zeros(n_types, np.int64)
    places = np.empty_like(of_user)
    for user, kind in enumerate(of_user):
        places[user] = counts[kind]
        counts[kind] += 1
    return places, counts


def rotas(
    patterns: BoolArray, of_user: LongArray, starts: LongArray, *, n_slots: int
) -> WholeArray:
    """Return the arm of each user in each slot, (n_slots, n_users): its active arms in turn.

    ``starts`` says where in the list of its active arms each user starts, (n_users,).
    """
    rows = np.empty((n_slots, len(of_user)), arm_dtype(patterns.shape[1]))
    sizes = patterns.sum(axis=1)
    width = sizes.max()
    lists = np.argsort(~patterns, axis=1, kind="stable")[:, :width]  # active arms come first
    if patterns.shape[1] > 16:
        _write(rows, lists.astype(rows.dtype), sizes, of_user, starts.copy())
        return rows
    place = np.arange(width)
    turned = (place[:, None] + place) % sizes[:, None, None]  # (n_types, start, place)
    arms = np.take_along_axis(lists[:, None, :], turned, axis=2)
    words = (arms.astype(np.uint64) << (4 * place).astype(np.uint64)).sum(axis=2, dtype=np.uint64)
    shifts = (4 * (sizes - 1)).astype(np.uint64)
    _write_packed(rows, words[of_user, starts], shifts[of_user])
    return rows


@kernel()
def _write_packed(rows: WholeArray, words: NDArray[np.uint64], shifts: NDArray[np.uint64]) -> None:
    """Write rotas of at most 16 arms: four bits an arm, the whole list in one word that turns."""
    n_slots, n_users = rows.shape
    width = 1024  # users whose words stay in the fastest cache from slot to slot
    for start in range(0, n_users, width):
        word, shift = words[start : start + width], shifts[start : start + width]
        for slot in range(n_slots):
            row = rows[slot, start : start + width]
            for user in range(len(row)):
                arm = word[user] & np.uint64(15)
                row[user] = arm
                word[user] = (word[user] >> np.uint64(4)) | (arm << shift[user])


@kernel()
def _write(
    rows: WholeArray, lists: WholeArray, sizes: LongArray, of_user: LongArray, places: LongArray
) -> None:
    for slot in range(len(rows)):
        for user, kind in enumerate(of_user):
            place = places[user]
            rows[slot, user] = lists[kind, place]
            places[user] = place + 1 if place + 1 < sizes[kind] else 0


def _integer_shares(active: BoolArray, n_slots: int) -> LongArray:
    """Return integer shares of sum ``n_slots`` a user, floor or ceiling of even ones.

    Every arm's total, too, is floor or ceiling of what it would be for even shares, so that
    rounding never takes a mean load below an integer.
    """
    n_users = len(active)
    sizes: LongArray = active.sum(axis=1)
    slots_per_arm, extra = n_slots // sizes, n_slots % sizes
    rank = active.cumsum(axis=1) - 1
    chosen = active & ((rank - np.arange(n_users)[:, None]) % sizes[:, None] < extra[:, None])
    loads, unit = _mean_loads(active, np.ones(n_users, np.int64))
    floors = slots_per_arm @ active
    low = np.array([n_slots * load // unit for load in loads]) - floors
    high = np.array([-(-n_slots * load // unit) for load in loads]) - floors
    if not fit_loads(chosen, active, low, high):
        raise RuntimeError("a transport polytope with integer bounds must have an integer point")
    shares: LongArray = np.where(active, slots_per_arm[:, None], 0) + chosen
    return shares
