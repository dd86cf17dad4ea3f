"""Crowds, the users of one arm: how they are cut into groups, and what is left of them.

Two policies draw their shuffles differently, and their plans must not change: ``regroup`` takes
uniform numbers from the policy's generator; ``cut_crowds`` takes one seed a round, whose draws are
hashes (splitmix64) of the seed and a counter, as a generator's call costs more than a group.

Groups that are short of reporters are merged (``model.merging``), so that a group need not be large
enough alone: smaller groups are finer pieces to merge, larger ones need no merging.
"""

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, CountArray, FloatArray, IntArray, LongArray, WholeArray
from shoal.kernels import kernel
from shoal.model import Feedback, Plan

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


class RoundTotals(NamedTuple):
    """A played plan and its feedback: of all users, or of one shard's with all groups."""

    arms: IntArray  # (n_users,)
    groups: IntArray  # (n_users,) -1 for none
    totals: FloatArray  # (n_groups,)
    released: CountArray  # (n_groups,)
    reported: CountArray  # (n_users,)


def round_totals(plan: Plan, feedback: Feedback) -> RoundTotals:
    """Return the arrays of a plan and its feedback."""
    return RoundTotals(
        plan.arms, plan.groups, feedback.totals, feedback.released, feedback.reported
    )


@kernel()
def of_users(played: RoundTotals, first: int, end: int) -> RoundTotals:
    """Return the part of the users from ``first`` to before ``end``."""
    return RoundTotals(
        played.arms[first:end], played.groups[first:end], played.totals, played.released,
        played.reported[first:end],
    )  # fmt: skip


@kernel()
def group_size(min_group_size: int, report_rate: float, max_size: int) -> int:
    """Return the size, up to ``max_size``, with the most released totals per member.

    With X of n members reporting, X binomial, a group makes one total if X >= C; else it takes
    ceil(C / X) groups like it to make one.

    >>> [group_size(4, 0.7, 50), group_size(20, 0.7, 50), group_size(20, 0.05, 50)]
    [5, 32, 20]
    """
    best, highest = min_group_size, 0.0
    if report_rate >= 1.0:
        return best
    for size in range(min_group_size, max_size + 1):
        chance = (1.0 - report_rate) ** size  # of X = 0
        n_totals, short = 0.0, chance
        for reports in range(1, min_group_size):
            chance *= (size - reports + 1) / reports * report_rate / (1.0 - report_rate)
            n_totals += chance / math.ceil(min_group_size / reports)
            short += chance
        n_totals += 1.0 - short
        if n_totals > highest * size:
            best, highest = size, n_totals / size
    return best


@kernel()
def safe_size(min_group_size: int, report_rate: float, max_size: int) -> int:
    """Return the least size that reaches ``min_group_size`` reporters nine times out of ten."""
    size = min_group_size
    if report_rate < 1.0:
        while size < max_size and (
            size * report_rate - 1.3 * math.sqrt(size * report_rate * (1.0 - report_rate))
            < min_group_size - 0.5
        ):
            size += 1
    return size


@kernel()
def small_crowds(
    arms: IntArray, counted: BoolArray, n_arms: int, min_crowd: int
) -> tuple[LongArray, LongArray]:
    """Return the ``counted`` users of each arm, (n_arms,), and who is in a crowd that is too small.

    A crowd that is large enough stays so, so only these users can need their favourites.
    """
    crowds = np.zeros(n_arms, np.int64)
    for user in range(len(arms)):
        if counted[user]:
            crowds[arms[user]] += 1
    users = np.empty(crowds[crowds < min_crowd].sum(), np.int64)
    if len(users):
        place = 0
        for user in range(len(arms)):
            if counted[user] and crowds[arms[user]] < min_crowd:
                users[place] = user
                place += 1
    return crowds, users


@kernel()
def play_favourites(
    users: LongArray, favourites: WholeArray, arms: IntArray, crowds: LongArray, min_crowd: int
) -> None:
    """Move each of ``users``, while its crowd is too small, to its favourite, one after another."""
    for place in range(len(users)):
        user, favourite = users[place], favourites[place]
        if crowds[arms[user]] < min_crowd:
            crowds[arms[user]] -= 1
            crowds[favourite] += 1
            arms[user] = favourite


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
    arms: IntArray, n_arms: int, min_group_size: int, first_group: int, uniforms: FloatArray,
    groups: IntArray,
) -> None:  # fmt: skip
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


def least_information(crowd: int, min_group_size: int) -> float:
    """Return the smallest eigenvalue of the information that ``regroup`` expects of a round.

    A total over G is a row 1_G of weight 1/|G|. For n users in g = floor(n/C) ≥ 2 groups it is
    (g-1)/(n-1), at least 1/(3C). For C ≤ n < 2C there is one group, of C users, and it is
    (n-C)/(n(n-1)): nothing for n = C.

    >>> [round(1 / least_information(crowd, 4), 6) for crowd in (5, 7, 8, 40)]
    [20.0, 14.0, 7.0, 4.333333]
    """
    n_groups = crowd // min_group_size
    if n_groups >= 2:
        return (n_groups - 1) / (crowd - 1)
    return max(0, crowd - min_group_size) / (crowd * max(1, crowd - 1))


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
