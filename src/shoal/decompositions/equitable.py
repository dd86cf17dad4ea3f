"""Equitable splitting of integer shares into assignments, by Euler tours on the arms.

``rows`` (n_slots, n_users) holds one arm per slot and user. Entries are only ever exchanged
within a user's column, so that what a user plays in all never changes; what changes is when.

Halving: pair each slot of the left half with one of the right. A user's two arms in a pair of
slots are an edge between those arms, and the user may exchange them. An orientation of the edges
in which every arm has as many tails as heads, up to one, splits every arm's load evenly. Half of
the parallel edges go each way; what is left over is a simple graph on the arms, and Euler trails
orient it. So a halving counts edges in one sequential pass and turns a few of them; no trail ever
visits a user. Halved down to single slots, every arm has floor or ceiling of its mean load in
every slot.

An odd number of slots first gives up one: an assignment with floor or ceiling loads, found by
``exchanges`` (it exists because the transport polytope is integral).
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.decompositions.decomposition import arm_dtype
from shoal.decompositions.exchanges import fit_loads, n_moves
from shoal.kernels import kernel


def equitable(shares: LongArray, n_slots: int) -> WholeArray:
    """Spread ``shares`` (n_users, n_arms), each row of sum ``n_slots``, evenly over the slots."""
    rows = np.empty((n_slots, len(shares)), arm_dtype(shares.shape[1]))
    _deal(rows, shares)
    balance(rows, shares.shape[1])
    return rows


@kernel()
def _deal(rows: WholeArray, shares: LongArray) -> None:
    n_slots = len(rows)
    for user in range(len(shares)):
        # Users start at different slots, for loads that are roughly even from the start.
        slot = user % n_slots
        for arm in range(shares.shape[1]):
            for _ in range(shares[user, arm]):
                rows[slot, user] = arm
                slot = slot + 1 if slot + 1 < n_slots else 0


@kernel()
def balance(rows: WholeArray, n_arms: int) -> None:
    """Exchange entries within columns until every load is floor or ceiling of its arm's mean."""
    stack = [(0, len(rows))]
    while len(stack):
        start, stop = stack.pop()
        if (stop - start) % 2 == 1 and stop - start > 1:
            _peel(rows[start:stop], n_arms)
            start += 1
        if stop - start > 1:
            middle = (start + stop) // 2
            _halve(rows[start:middle], rows[middle:stop], n_arms)
            stack.append((middle, stop))
            stack.append((start, middle))


@kernel()
def _halve(left: WholeArray, right: WholeArray, n_arms: int) -> None:
    """Exchange entries between the halves until every arm's loads differ by at most one."""
    turns = _turns(_joint_counts(left, right, n_arms))
    n_turns = turns.sum()
    for slot in range(len(left)):
        if n_turns == 0:
            break
        for user in range(left.shape[1]):
            one, other = left[slot, user], right[slot, user]
            if turns[one, other] > 0:
                turns[one, other] -= 1
                n_turns -= 1
                left[slot, user], right[slot, user] = other, one


@kernel()
def _joint_counts(left: WholeArray, right: WholeArray, n_arms: int) -> LongArray:
    """Return how often each arm on the left is paired with each on the right."""
    # Four tables in turn: a counter that was just written is slow to read again.
    tables: LongArray = np.zeros((4, n_arms * n_arms), np.int64)
    n_users = left.shape[1]
    even = n_users - n_users % 4
    for slot in range(len(left)):
        one, other = left[slot], right[slot]
        for user in range(0, even, 4):
            tables[0, one[user] * n_arms + other[user]] += 1
            tables[1, one[user + 1] * n_arms + other[user + 1]] += 1
            tables[2, one[user + 2] * n_arms + other[user + 2]] += 1
            tables[3, one[user + 3] * n_arms + other[user + 3]] += 1
        for user in range(even, n_users):
            tables[0, one[user] * n_arms + other[user]] += 1
    counts: LongArray = tables.sum(axis=0)
    return counts.reshape((n_arms, n_arms))


@kernel()
def _turns(counts: LongArray) -> LongArray:
    """Return how many edges of each direction, left to right, to turn around."""
    n_arms = len(counts)
    turns = np.zeros((n_arms, n_arms), np.int64)
    odd = np.zeros((n_arms, n_arms), np.bool_)
    for one in range(n_arms):
        for other in range(n_arms):
            if counts[one, other] > counts[other, one]:
                turns[one, other] = (counts[one, other] - counts[other, one]) // 2
            odd[one, other] = (counts[one, other] + counts[other, one]) % 2 == 1
    # What is left is one edge for each odd pair, in the direction that is more frequent. Trails
    # first from arms of odd degree, where they must end; then only closed ones are left.
    degree = odd.sum(axis=1)
    for parity in (1, 0):
        for first in range(n_arms):
            if degree[first] % 2 == parity:
                arm, following = first, _next(odd[first])
                while following >= 0:
                    odd[arm, following] = odd[following, arm] = False
                    degree[arm] -= 1
                    degree[following] -= 1
                    if counts[following, arm] > counts[arm, following]:
                        turns[following, arm] += 1
                    arm, following = following, _next(odd[following])
    return turns


@kernel()
def _next(joined: BoolArray) -> int:
    for arm in range(len(joined)):
        if joined[arm]:
            return arm
    return -1


@kernel()
def _peel(rows: WholeArray, n_arms: int) -> None:
    """Exchange entries until the first slot has floor or ceiling of every arm's mean load."""
    n_slots, n_users = rows.shape
    total = np.zeros(n_arms, np.int64)
    for slot in range(n_slots):
        for user in range(n_users):
            total[rows[slot, user]] += 1
    load = np.zeros(n_arms, np.int64)
    for user in range(n_users):
        load[rows[0, user]] += 1
    low, high = total // n_slots, -(-total // n_slots)
    _swap_directly(rows, load, high)
    _swap_directly(rows, load, low)
    if ((load >= low) & (load <= high)).all():
        return
    chosen = np.zeros((n_users, n_arms), np.bool_)
    held = np.zeros((n_users, n_arms), np.bool_)
    for user in range(n_users):
        chosen[user, rows[0, user]] = True
    for slot in range(n_slots):
        for user in range(n_users):
            held[user, rows[slot, user]] = True
    fit_loads(chosen, held, low, high)
    for user in range(n_users):
        if not chosen[user, rows[0, user]]:
            for slot in range(1, n_slots):
                if chosen[user, rows[slot, user]]:
                    rows[0, user], rows[slot, user] = rows[slot, user], rows[0, user]
                    break


@kernel()
def _swap_directly(rows: WholeArray, load: LongArray, bound: LongArray) -> None:
    """Swap arms above their bound in the first slot for the user's arm that lacks most."""
    n_slots, n_users = rows.shape
    n_left = n_moves(load, bound)
    for user in range(n_users):
        if n_left == 0:
            break
        arm = rows[0, user]
        if load[arm] > bound[arm]:
            best, lack = 0, 0
            for slot in range(1, n_slots):
                other = rows[slot, user]
                if bound[other] - load[other] > lack:
                    best, lack = slot, bound[other] - load[other]
            if best > 0:
                load[arm] -= 1
                load[rows[best, user]] += 1
                rows[0, user], rows[best, user] = rows[best, user], arm
                n_left -= 1
