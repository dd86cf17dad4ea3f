"""Groups with too few reporters are merged inside their arm *before* anything is released.

``merge_short`` is the rule, a function of the numbers of reporters alone, never of a reward: the
aggregator, environments and tests all merge by it. Groups that are large enough stay apart, every
reporter is in at most one total, and nothing is withheld that can be merged. Where there is a
choice, many small totals teach a learner more than few large ones.
"""

from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, IntArray, LongArray, WholeArray
from shoal.kernels import kernel
from shoal.model.plan import Plan

WITHHELD = -1


class Reports(NamedTuple):
    """Who is part of the totals of a played plan."""

    plan: Plan  # as it was played, or with its short groups merged
    released: IntArray  # (n_groups,) rounds in which each group's total is released
    reported: IntArray  # (n_users,) rounds in which each user is part of a released total
    smallest: int  # least reporters behind a released total, 0 if there is none
    withheld: int  # totals that are never released


def merge_played(plan: Plan, reports: BoolArray) -> Reports:
    """Merge the short groups of a plan of one round, where these users report, (n_users,)."""
    problem = plan.problem
    reporters, crowds = _count_reporters(
        plan.arms, plan.groups, plan.n_groups, reports, problem.n_arms, problem.shard_size
    )
    into = merge_short(reporters, crowds, problem.min_group_size)
    merged = merge_plan(plan, into)
    return Reports(
        merged, *_count_released(plan.groups, reports, reporters, crowds, into, merged.n_groups)
    )


def merge_plan(plan: Plan, into: WholeArray) -> Plan:
    """Return ``plan`` with the groups that are released: group g is part of ``into[g]``.

    A group that is withheld, where ``into`` is negative, keeps its number. Where nothing was
    merged, it is ``plan`` itself.
    """
    numbers = np.arange(len(into))
    merged = np.where(into < 0, numbers, into)
    if np.array_equal(merged, numbers):
        return plan
    groups = np.append(merged, -1)[plan.groups].astype(np.int32)
    return Plan(plan.arms, groups, plan.repeats, problem=plan.problem)


@kernel()
def _count_reporters(
    arms: IntArray, groups: IntArray, n_groups: int, reports: BoolArray, n_arms: int,
    shard_size: int,
) -> tuple[LongArray, LongArray]:  # fmt: skip
    """Return each group's reporters, and its crowd: the number of its arm and shard, or -1."""
    reporters, crowds = np.zeros(n_groups, np.int64), np.full(n_groups, -1, np.int64)
    for user in range(len(groups)):
        group = groups[user]
        if group >= 0:
            reporters[group] += reports[user]
            crowds[group] = user // shard_size * n_arms + arms[user]
    return reporters, crowds


@kernel()
def _count_released(
    groups: IntArray, reports: BoolArray, reporters: LongArray, crowds: LongArray, into: LongArray,
    n_groups: int,
) -> tuple[IntArray, IntArray, int, int]:  # fmt: skip
    """Return the releases, the reports, the smallest and the number withheld, as ``Reports``."""
    sums = np.zeros(n_groups, np.int64)
    withheld = 0
    for group in range(len(into)):
        if into[group] >= 0:
            sums[into[group]] += reporters[group]
        elif crowds[group] >= 0:
            withheld += 1
    released = np.zeros(n_groups, np.int32)
    smallest = 0
    for group in range(n_groups):
        if sums[group] > 0:
            released[group] = 1
            if smallest == 0 or sums[group] < smallest:
                smallest = sums[group]
    reported = np.zeros(len(groups), np.int32)
    for user in range(len(groups)):
        if groups[user] >= 0 and into[groups[user]] >= 0:
            reported[user] = reports[user]
    return released, reported, smallest, withheld


@kernel()
def _take(crowd: LongArray, size: int, n_left: LongArray, places: LongArray) -> int:
    """Remove and return the first group left of this size."""
    n_left[size] -= 1
    places[size] += 1
    return int(crowd[places[size] - 1])


@kernel()
def _share_out(
    crowd: LongArray, short: int, reporters: LongArray, into: LongArray, sums: LongArray
) -> None:
    """Add each part of a total that stays short to the smallest total, or withhold it."""
    for is_leader in (False, True):  # the group that leads the short total comes last
        for part in crowd:
            if into[part] != short or (part == short) != is_leader:
                continue
            smallest = WITHHELD
            for group in crowd:
                leads = group != short and into[group] == group
                if leads and (smallest < 0 or sums[group] < sums[smallest]):
                    smallest = group
            into[part] = smallest
            if smallest >= 0:
                sums[smallest] += reporters[part]


@kernel()
def _merge_crowd(
    crowd: LongArray, reporters: LongArray, min_group_size: int, into: LongArray, sums: LongArray
) -> None:
    """Assign every group of a crowd, most reporters first, ``into`` the total of a leader."""
    n_left = np.zeros(min_group_size, np.int64)  # short groups by their reporters
    places = np.zeros(min_group_size, np.int64)  # where the first of them stands
    for place in range(len(crowd) - 1, -1, -1):
        group = crowd[place]
        if reporters[group] >= min_group_size:
            into[group] = group
            sums[group] = reporters[group]
        elif reporters[group] > 0:
            n_left[reporters[group]] += 1
            places[reporters[group]] = place
    leader = -1
    largest = min_group_size - 1
    while True:
        while largest > 0 and n_left[largest] == 0:
            largest -= 1
        if largest <= 0:
            break
        leader = _take(crowd, largest, n_left, places)
        into[leader] = leader
        sums[leader] = largest
        while sums[leader] < min_group_size:
            need = min_group_size - sums[leader]
            size = min(need, largest)
            while size > 0 and n_left[size] == 0:
                size -= 1
            if size == 0:
                size = need + 1
                while size <= largest and n_left[size] == 0:
                    size += 1
                if size > largest:
                    break
            into[_take(crowd, size, n_left, places)] = leader
            sums[leader] += size
    if leader >= 0 and sums[leader] < min_group_size:
        _share_out(crowd, leader, reporters, into, sums)


@kernel()
def merge_short(reporters: LongArray, crowds: LongArray, min_group_size: int) -> LongArray:
    """Return with which group each group is released, or -1 where it is never released.

    A merged total has the number of its first group. The largest short group of a crowd takes in
    the largest others that do not make it exceed ``min_group_size``, then the smallest that make
    it reach it. Each of those left over joins the smallest total of the crowd; where there is
    none, it is withheld, as is a group in which nobody reported. ``crowds`` are numbers, an arm's
    for example; groups of the same number may be merged.

    >>> reporters, arms = np.array([5, 2, 2, 3, 1, 3]), np.array([0, 0, 0, 0, 0, 1])
    >>> merge_short(reporters, arms, 4)
    array([ 0,  1,  1,  3,  3, -1])
    """
    n_groups = len(reporters)
    into = np.full(n_groups, WITHHELD, np.int64)
    if n_groups == 0:
        return into
    # Crowd by crowd, most reporters first; a stable order, so that numbers decide between equals.
    largest = reporters.max()
    order = np.argsort(crowds * (largest + 1) + (largest - reporters), kind="mergesort")
    sums = np.zeros(n_groups, np.int64)  # reporters behind the total that a group leads
    start = 0
    while start < n_groups:
        end = start
        while end < n_groups and crowds[order[end]] == crowds[order[start]]:
            end += 1
        _merge_crowd(order[start:end], reporters, min_group_size, into, sums)
        start = end
    first = np.full(n_groups, n_groups, np.int64)
    for group in range(n_groups):
        if into[group] >= 0:
            first[into[group]] = min(first[into[group]], group)
    for group in range(n_groups):
        if into[group] >= 0:
            into[group] = first[into[group]]
    return into
