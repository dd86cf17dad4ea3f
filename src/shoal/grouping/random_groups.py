"""Cutting the crowd of each arm into random groups: how large, and who with whom.

Where not everyone reports, groups that are short of reporters are merged (``model.merging``), so
that a group need not be large enough on its own. Smaller ones make finer pieces to merge; larger
ones need no merging. ``group_size`` counts what each size comes to.

A generator costs more per call than a group is worth, so each round draws one seed from the
policy's generator, and the draws of a round are hashes (splitmix64) of the seed and a counter.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.arrays import IntArray
from shoal.kernels import kernel

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@kernel()
def group_size(min_group_size: int, share: float, most: int) -> int:
    """Return the size, up to ``most``, with the most released totals per member.

    With X of n members reporting, X binomial, a group makes one total if X >= C; else it takes
    ceil(C / X) groups like it to make one.

    >>> [group_size(4, 0.7, 50), group_size(20, 0.7, 50), group_size(20, 0.05, 50)]
    [5, 32, 20]
    """
    best, highest = min_group_size, 0.0
    if share >= 1.0:
        return best
    for size in range(min_group_size, most + 1):
        chance = (1.0 - share) ** size  # of X = 0
        made, short = 0.0, chance
        for reports in range(1, min_group_size):
            chance *= (size - reports + 1) / reports * share / (1.0 - share)
            made += chance / math.ceil(min_group_size / reports)
            short += chance
        made += 1.0 - short
        if made > highest * size:
            best, highest = size, made / size
    return best


@kernel()
def safe_size(min_group_size: int, share: float, most: int) -> int:
    """Return the least size that reaches ``min_group_size`` reporters nine times out of ten."""
    size = min_group_size
    if share < 1.0:
        while size < most and (
            size * share - 1.3 * math.sqrt(size * share * (1.0 - share)) < min_group_size - 0.5
        ):
            size += 1
    return size


@kernel()
def draw(seed: np.uint64, counter: int, n: int) -> int:
    """Return a random number below ``n`` < 2**32, the one of this seed and counter."""
    x = seed + np.uint64(counter + 1) * _STEP
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    x = x ^ (x >> np.uint64(31))
    return int(((x >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@kernel()
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


@kernel()
def _shuffle(crowd: IntArray, seed: np.uint64, counter: int) -> None:
    for last in range(len(crowd) - 1, 0, -1):
        other = draw(seed, counter + last, last + 1)
        crowd[last], crowd[other] = crowd[other], crowd[last]
