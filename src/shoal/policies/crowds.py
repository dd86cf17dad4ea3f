"""Cutting the crowd of each arm into random groups, with random numbers made by hashing.

A generator costs more per call than a group is worth, so each round draws one seed from the
policy's generator, and the draws of a round are hashes (splitmix64) of the seed and a counter.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from shoal.estimators.elicitor import IntArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@njit(cache=True)
def draw(seed: np.uint64, counter: int, n: int) -> int:
    """Return a random number below ``n`` < 2**32, the one of this seed and counter."""
    x = seed + np.uint64(counter + 1) * _STEP
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    x = x ^ (x >> np.uint64(31))
    return int(((x >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit(cache=True)
def cut_crowds(
    arms: IntArray,
    n_arms: int,
    min_group_size: int,
    size: int,
    seed: np.uint64,
    first: int,
    groups: IntArray,
) -> int:
    """Fill the groups of a shard, numbered from ``first``; return the next number.

    Each crowd is shuffled and cut evenly into groups of at least ``size``, or is one group if it
    is smaller. Crowds below ``min_group_size``, and users of arm -1, are in no group.
    """
    ends = np.zeros(n_arms + 1, np.int64)  # of arm -1 and all others, in order of users by arm
    for user in range(len(arms)):
        ends[arms[user] + 1] += 1
    for arm in range(n_arms):
        ends[arm + 1] += ends[arm]
    order = np.empty(len(arms), np.int32)
    places = ends[:-1].copy()
    for user in range(len(arms)):
        if arms[user] >= 0:
            order[places[arms[user]]] = user
            places[arms[user]] += 1
    groups[:] = -1
    number = first
    for arm in range(n_arms):
        start = ends[arm]
        crowd = order[start : ends[arm + 1]]
        n = len(crowd)
        if n < min_group_size:
            continue
        _shuffle(crowd, seed, start)
        n_groups = max(n // size, 1)
        for place in range(n):
            groups[crowd[place]] = number + place * n_groups // n
        number += n_groups
    return number


@njit(cache=True)
def _shuffle(crowd: NDArray[np.int32], seed: np.uint64, counter: int) -> None:
    for last in range(len(crowd) - 1, 0, -1):
        other = draw(seed, counter + last, last + 1)
        crowd[last], crowd[other] = crowd[other], crowd[last]
