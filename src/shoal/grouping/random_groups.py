"""Random groups: every crowd is shuffled and split, so that its members can be told apart.

Two policies draw their shuffles differently, and their plans must not change: ``regroup`` takes
uniform numbers from the policy's generator; ``cut_crowds`` takes one seed a round, whose draws are
hashes (splitmix64) of the seed and a counter, as a generator's call costs more than a group.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import FloatArray, IntArray, LongArray
from shoal.kernels import kernel

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@kernel()
def order_by(labels: IntArray, n_labels: int) -> tuple[IntArray, LongArray]:
    """Return the users ordered by label, and where each label starts and the last ends.

    Users of label -1 come first.
    """
    starts = np.zeros(n_labels + 1, np.int64)
    for label in labels:
        starts[label + 1] += 1
    starts = np.cumsum(starts)
    order = np.empty(len(labels), np.int32)
    places = np.zeros(n_labels + 1, np.int64)
    places[1:] = starts[:-1]
    for user in range(len(labels)):
        place = labels[user] + 1
        order[places[place]] = user
        places[place] += 1
    return order, starts


@kernel()
def regroup(
    arms: IntArray,
    n_arms: int,
    min_group_size: int,
    first_group: int,
    uniforms: FloatArray,
    groups: IntArray,
) -> None:
    """Split every crowd at random into as many groups as fit; fills ``groups``, -1 for none.

    A crowd of less than twice ``min_group_size`` has one group, of that size exactly: leaving the
    others out at random is what tells its users apart.
    """
    order, starts = order_by(arms, n_arms)
    number = first_group
    for arm in range(n_arms):
        first, end = starts[arm], starts[arm + 1]
        for last in range(end - 1, first, -1):  # Fisher and Yates
            other = first + np.int64(uniforms[last] * (last - first + 1))
            order[last], order[other] = order[other], order[last]
        crowd = end - first
        n_groups = crowd // min_group_size
        members = min_group_size if n_groups == 1 else crowd
        for index in range(crowd):
            joins = index < members and n_groups > 0
            groups[order[first + index]] = number + index % n_groups if joins else -1
        number += n_groups


@kernel()
def cut_crowds(
    arms: IntArray,
    n_arms: int,
    min_group_size: int,
    size: int,
    seed: np.uint64,
    first_group: int,
    groups: IntArray,
) -> int:
    """Fill the groups of a shard, numbered from ``first_group``; return the next number.

    Each crowd is shuffled and cut evenly into groups of at least ``size``, or is one group if it
    is smaller. Crowds below ``min_group_size``, and users of arm -1, are in no group.
    """
    order, starts = order_by(arms, n_arms)
    groups[:] = -1
    number = first_group
    for arm in range(n_arms):
        start = starts[arm]
        crowd = order[start : starts[arm + 1]]
        n = len(crowd)
        if n < min_group_size:
            continue
        for last in range(n - 1, 0, -1):  # Fisher and Yates
            other = draw(seed, start + last, last + 1)
            crowd[last], crowd[other] = crowd[other], crowd[last]
        n_groups = max(n // size, 1)
        for place in range(n):
            groups[crowd[place]] = number + place * n_groups // n
        number += n_groups
    return number


@kernel()
def draw(seed: np.uint64, counter: int, n: int) -> int:
    """Return a random number below ``n`` < 2**32, the one of this seed and counter."""
    x = seed + np.uint64(counter + 1) * _STEP
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    x = x ^ (x >> np.uint64(31))
    return int(((x >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
