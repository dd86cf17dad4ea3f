"""Equitable splitting of integer shares into assignments, by Euler tours on the arms.

``rows`` (n_slots, n_users) holds one arm per slot and user. Entries are only ever exchanged
within a user's column, so that what a user plays in all never changes; what changes is when.

The slots are halved until each is alone, with every arm's load split evenly at each step (an Euler
split). Pair each slot of the left half with one of the right: a user's two arms in a pair are an
edge between those arms, which the user reverses by exchanging them. Loads are even where every arm
has as many tails as heads, up to one. Of parallel edges, half go each way; the rest is a simple
graph on the arms, and Euler trails orient it. So a step counts edges in one pass over the users
and reverses a few. An odd number of slots first gives up one, with floor or ceiling loads, by
``exchanges`` (it exists because the transport polytope is integral).
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import LongArray, WholeArray
from shoal.decompositions.decomposition import arm_dtype
from shoal.decompositions.exchanges import fit_loads, n_moves
from shoal.kernels import kernel


def equitable(shares: LongArray, n_slots: int) -> WholeArray:
    """Spread ``shares`` (n_users, n_arms), each row of sum ``n_slots``, evenly over the slots."""
    rows = np.empty((n_slots, len(shares)), arm_dtype(shares.shape[1]))
    _lay_out(rows, shares)
    _balance(rows, shares.shape[1])
    return rows


@kernel()
def _lay_out(rows: WholeArray, shares: LongArray) -> None:
    n_slots = len(rows)
    for user in range(len(shares)):
        # Users start at different slots, for loads that are roughly even from the start.
        slot = user % n_slots
        for arm in range(shares.shape[1]):
            for _ in range(shares[user, arm]):
                rows[slot, user] = arm
                slot = slot + 1 if slot + 1 < n_slots else 0


@kernel()
def _balance(rows: WholeArray, n_arms: int) -> None:
    """Exchange entries within columns until every load is floor or ceiling of its arm's mean."""
    stack = [(0, len(rows))]
    while len(stack):
        start, stop = stack.pop()
        if (stop - start) % 2 == 1 and stop - start > 1:
            _balance_first_slot(rows[start:stop], n_arms)
            start += 1
        if stop - start > 1:
            middle = (start + stop) // 2
            _balance_halves(rows[start:middle], rows[middle:stop], n_arms)
            stack.append((middle, stop))
            stack.append((start, middle))


@kernel()
def _balance_halves(left: WholeArray, right: WholeArray, n_arms: int) -> None:
    """Exchange entries between the halves until every arm's loads differ by at most one."""
    n_to_reverse = _edges_to_reverse(_joint_counts(left, right, n_arms))
    n_left = n_to_reverse.sum()
    for slot in range(len(left)):
        if n_left == 0:
            break
        for user in range(left.shape[1]):
            one, other = left[slot, user], right[slot, user]
            if n_to_reverse[one, other] > 0:
                n_to_reverse[one, other] -= 1
                n_left -= 1
                left[slot, user], right[slot, user] = other, one


@kernel()
def _joint_counts(left: WholeArray, right: WholeArray, n_arms: int) -> LongArray:
    """Return how often each arm on the left is paired with each on the right."""
    counts = np.zeros((n_arms, n_arms), np.int64)
    for slot in range(len(left)):
        for user in range(left.shape[1]):
            counts[left[slot, user], right[slot, user]] += 1
    return counts


@kernel()
def _edges_to_reverse(counts: LongArray) -> LongArray:
    """Return how many edges of each direction, left to right, to turn around."""
    n_arms = len(counts)
    n_to_reverse = np.zeros((n_arms, n_arms), np.int64)
    odd = np.zeros((n_arms, n_arms), np.bool_)
    for one in range(n_arms):
        for other in range(n_arms):
            if counts[one, other] > counts[other, one]:
                n_to_reverse[one, other] = (counts[one, other] - counts[other, one]) // 2
            odd[one, other] = (counts[one, other] + counts[other, one]) % 2 == 1
    # What is left is one edge for each odd pair, in the direction that is more frequent. Trails
    # first from arms of odd degree, where they must end; then only closed ones are left.
    degree = odd.sum(axis=1)
    for parity in (1, 0):
        for first in range(n_arms):
            if degree[first] % 2 == parity:
                arm = first
                while degree[arm] > 0:
                    following = np.flatnonzero(odd[arm])[0]
                    odd[arm, following] = odd[following, arm] = False
                    degree[arm] -= 1
                    degree[following] -= 1
                    if counts[following, arm] > counts[arm, following]:
                        n_to_reverse[following, arm] += 1
                    arm = following
    return n_to_reverse


@kernel()
def _balance_first_slot(rows: WholeArray, n_arms: int) -> None:
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
