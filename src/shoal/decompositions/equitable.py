"""Equitable splitting of integer shares into assignments, by Euler tours on the arms.

``rows`` (n_slots, n_users) holds one arm per slot and user. Entries are only ever exchanged
within a user's column, so that what a user plays in all never changes; what changes is when.

The slots are halved until each is alone, with every arm's load split evenly at each step (an Euler
split). Pair each slot of the left half with one of the right: a user's two arms in a pair are an
edge between those arms, which the user reverses by exchanging them. Loads are even where every arm
has as many tails as heads, up to one. Of parallel edges, half go each way; the rest is a simple
graph on the arms, and Euler trails orient it. So a step counts edges in one pass over the users
and reverses a few. An odd number of slots first gives up one, with floor or ceiling loads, by
``fit_loads`` (it exists because the transport polytope is integral): users exchange arms directly
where they can, then along shortest paths of exchanges, found on the arms alone.
"""

import numpy as np

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.decompositions.decomposition import arm_dtype
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
    total = np.bincount(rows.ravel(), minlength=n_arms)
    load = np.bincount(rows[0], minlength=n_arms)
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
    n_left = _n_moves(load, bound)
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


@kernel()
def _n_moves(load: LongArray, bound: LongArray) -> int:
    """Return the most users that can move from arms above to arms below a bound."""
    n_above: int = np.maximum(load - bound, 0).sum()
    n_below: int = np.maximum(bound - load, 0).sum()
    return min(n_above, n_below)


@kernel()
def fit_loads(chosen: BoolArray, allowed: BoolArray, low: LongArray, high: LongArray) -> bool:
    """Exchange chosen arms for other allowed ones until all loads are between low and high.

    Each user keeps its number of chosen arms. False if no such choice exists.
    """
    n_users, n_arms = chosen.shape
    load = chosen.sum(axis=0)
    _exchange_directly(chosen, allowed, load, high)
    _exchange_directly(chosen, allowed, load, low)
    if ((load >= low) & (load <= high)).all():
        return True
    # movable[a, b]: users who could exchange a for b.
    movable = np.zeros((n_arms, n_arms), np.int64)
    for user in range(n_users):
        _count(movable, chosen[user], allowed[user], 1)
    for arm in range(n_arms):
        while load[arm] > high[arm]:
            path = _path(movable, arm, load < high)
            if len(path) == 0:
                return False
            _follow(path, chosen, allowed, load, movable)
    for arm in range(n_arms):
        while load[arm] < low[arm]:
            path = _path(movable.T, arm, load > low)[::-1]
            if len(path) == 0:
                return False
            _follow(path, chosen, allowed, load, movable)
    return True


@kernel()
def _exchange_directly(
    chosen: BoolArray, allowed: BoolArray, load: LongArray, bound: LongArray
) -> None:
    """Let users exchange an arm above its bound for the one that is furthest below its own."""
    n_users, n_arms = chosen.shape
    n_left = _n_moves(load, bound)
    for user in range(n_users):
        if n_left == 0:
            break
        for arm in range(n_arms):
            if chosen[user, arm] and load[arm] > bound[arm]:
                best = -1
                for other in range(n_arms):
                    if allowed[user, other] and not chosen[user, other]:
                        lack = bound[other] - load[other]
                        if lack > 0 and (best < 0 or lack > bound[best] - load[best]):
                            best = other
                if best >= 0:
                    chosen[user, arm], chosen[user, best] = False, True
                    load[arm] -= 1
                    load[best] += 1
                    n_left -= 1


@kernel()
def _count(movable: LongArray, chosen: BoolArray, allowed: BoolArray, sign: int) -> None:
    for arm in range(len(chosen)):
        if chosen[arm]:
            for other in range(len(chosen)):
                if allowed[other] and not chosen[other]:
                    movable[arm, other] += sign


@kernel()
def _path(movable: LongArray, source: int, ends: BoolArray) -> LongArray:
    """Return a shortest path of possible exchanges from ``source`` to one of ``ends``."""
    n_arms = len(movable)
    parent = np.full(n_arms, -1, np.int64)
    parent[source] = source
    queue = [source]
    while len(queue):
        arm = queue.pop(0)
        if ends[arm] and arm != source:
            path = [arm]
            while path[-1] != source:
                path.append(parent[path[-1]])
            return np.array(path[::-1])
        for other in range(n_arms):
            if parent[other] < 0 and movable[arm, other] > 0:
                parent[other] = arm
                queue.append(other)
    return np.empty(0, np.int64)


@kernel()
def _follow(
    path: LongArray, chosen: BoolArray, allowed: BoolArray, load: LongArray, movable: LongArray
) -> None:
    # From the far end, so that an exchange never takes away the next one's user.
    for place in range(len(path) - 2, -1, -1):
        arm, other = path[place], path[place + 1]
        for user in range(len(chosen)):
            if chosen[user, arm] and allowed[user, other] and not chosen[user, other]:
                _count(movable, chosen[user], allowed[user], -1)
                chosen[user, arm], chosen[user, other] = False, True
                _count(movable, chosen[user], allowed[user], 1)
                break
    load[path[0]] -= 1
    load[path[-1]] += 1
