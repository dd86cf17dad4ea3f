"""Euler decomposition: every arm's load is floor or ceiling of its mean in every assignment.

The paper's demand w/D gives user i a share 1/|A_i| of each active arm. Where every mean load, the
sum of those shares on an arm, is at least ``min_crowd``, an even spread of the shares over R
assignments (``equitable``) is informative for everyone in all of them: R = D up to rounding, where
the LP decomposition pays up to NK more. Time and memory are near-linear in n_users·n_slots.

A rota of s users with the same s active arms, each one arm further than the one before, has one
user on each arm in every slot. So whole rotas need no work but writing them down; only the users
left over, fewer than s of each type, are spread by Euler tours.

Where some mean loads are smaller, the arms are served in blocks (Lemma 6), and a block is open
only for the share of the assignments that its hungriest user wants from it.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.decompositions.decomposition import Decomposition, joined
from shoal.decompositions.demand import checked_crowds, types
from shoal.decompositions.equitable import equitable, settle
from shoal.decompositions.rotas import rotas
from shoal.kernels import kernel


def euler_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, levels: int = 8
) -> Decomposition:
    """Spread every user's demand evenly over assignments that are informative for all.

    Parameters
    ----------
    active, demand, min_crowd
        As in ``decompose``.
    levels
        At most 2^levels + n_arms different assignments a block, L: the rounding to whole shares
        costs a block at most n_arms·ceil(demand/2^L) assignments. Where 2^L ≥ demand and one
        block suffices, no decomposition has fewer assignments.
    """
    checked_crowds(active, min_crowd)
    patterns, counts, of_user = types(active)
    blocks = open_blocks(patterns, counts, min_crowd)
    return joined([_serve(patterns, of_user, demand, block, 1 << levels) for block in blocks])


def open_blocks(patterns: BoolArray, counts: LongArray, min_crowd: int) -> list[LongArray]:
    """Return blocks of arms that can be open together in every assignment: one, if possible.

    First fit, popular arms first. As any floor(U/min_crowd) arms of a U-batched graph fit
    together, there are never more blocks than in the paper.
    """
    wanting = counts @ patterns
    wanted = np.flatnonzero(wanting)
    if _fit(patterns, counts, wanted, min_crowd):
        return [wanted]
    blocks: list[LongArray] = []
    for arm in wanted[np.argsort(-wanting[wanted], kind="stable")]:
        for place, block in enumerate(blocks):
            larger = np.append(block, arm)
            if _fit(patterns, counts, larger, min_crowd):
                blocks[place] = larger
                break
        else:
            blocks.append(np.array([arm]))
    return blocks


def _fit(patterns: BoolArray, counts: LongArray, arms: LongArray, min_crowd: int) -> bool:
    loads, unit = _mean_loads(patterns[:, arms], counts)
    return all(load >= min_crowd * unit for load in loads)


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


def _serve(
    patterns: BoolArray,
    of_user: LongArray,
    demand: int,
    block: LongArray,
    max_slots: int,
) -> Decomposition:
    inside = np.zeros_like(patterns)
    inside[:, block] = patterns[:, block]
    pairs = np.stack([inside.sum(axis=1), patterns.sum(axis=1)])
    n_slots, repeats = _slots(np.unique(pairs[:, pairs[0] > 0], axis=1), demand, max_slots)
    # Users with nothing in the block wait on any active arm.
    idle = np.flatnonzero(~inside.any(axis=1))
    inside[idle, patterns[idle].argmax(axis=1)] = True
    kinds, _, kind = types(inside)
    rows = _spread(kinds, kind[of_user], n_slots)
    return Decomposition(rows, np.full(n_slots, repeats, np.int64))


def _slots(pairs: LongArray, demand: int, max_slots: int) -> tuple[int, int]:
    """Return the number of different assignments and of their repeats with the least product.

    A user with a arms, b of them in the block (a column of ``pairs``: b, a), wants demand/a of
    each and gets at least repeats·floor(n_slots/b).
    """
    n_inside, n_active = pairs[:, :, None]
    n_slots = np.arange(int(n_inside.max()), max_slots + int(n_inside.max()) + 1)
    each = n_slots // n_inside  # (n_pairs, n_choices)
    repeats = (-(-demand // (n_active * each))).max(axis=0)
    best = int((n_slots * repeats).argmin())
    return int(n_slots[best]), int(repeats[best])


def _spread(patterns: BoolArray, of_user: LongArray, n_slots: int) -> WholeArray:
    """Return slots in which every user plays each active arm evenly and all loads are even."""
    sizes = patterns.sum(axis=1)
    places, counts = _places(of_user, len(patterns))
    left = np.flatnonzero(places >= (counts // sizes * sizes)[of_user])
    if 2 * len(left) > len(of_user):
        # Too few rotas to be worth writing.
        return equitable(_whole_shares(patterns[of_user], n_slots), n_slots)
    rows = rotas(patterns, of_user, places % sizes[of_user], n_slots=n_slots)
    if len(left):
        rows[:, left] = equitable(_whole_shares(patterns[of_user[left]], n_slots), n_slots)
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


def _whole_shares(active: BoolArray, n_slots: int) -> LongArray:
    """Return whole shares of sum ``n_slots`` a user, floor or ceiling of even ones.

    Every arm's total, too, is floor or ceiling of what it would be for even shares, so that
    rounding never takes a mean load below a whole number.
    """
    n_users = len(active)
    sizes: LongArray = active.sum(axis=1)
    each, extra = n_slots // sizes, n_slots % sizes
    rank = active.cumsum(axis=1) - 1
    chosen = active & ((rank - np.arange(n_users)[:, None]) % sizes[:, None] < extra[:, None])
    loads, unit = _mean_loads(active, np.ones(n_users, np.int64))
    given = each @ active
    low = np.array([n_slots * load // unit for load in loads]) - given
    high = np.array([-(-n_slots * load // unit) for load in loads]) - given
    if not settle(chosen, active, low, high):
        raise RuntimeError("a transport polytope with whole bounds must have a whole point")
    shares: LongArray = np.where(active, each[:, None], 0) + chosen
    return shares
