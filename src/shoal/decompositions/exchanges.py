"""Exchanges of chosen arms until all loads are within bounds, by augmenting paths on the arms.

Users exchange directly where they can; what is left goes along shortest paths of exchanges,
each by another user. A path is found on the arms alone: no search visits a user.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray, LongArray
from shoal.kernels import kernel


@kernel()
def n_moves(load: LongArray, bound: LongArray) -> int:
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
    load = np.zeros(n_arms, np.int64)
    for user in range(n_users):
        for arm in range(n_arms):
            load[arm] += chosen[user, arm]
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
    n_left = n_moves(load, bound)
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
    queue = np.empty(n_arms, np.int64)
    queue[0], head, tail = source, 0, 1
    while head < tail:
        arm = queue[head]
        head += 1
        if ends[arm] and arm != source:
            path = [arm]
            while path[-1] != source:
                path.append(parent[path[-1]])
            return np.array(path[::-1])
        for other in range(n_arms):
            if parent[other] < 0 and movable[arm, other] > 0:
                parent[other] = arm
                queue[tail] = other
                tail += 1
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
