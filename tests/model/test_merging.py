"""Short groups are merged before release: who is with whom, by numbers of reporters alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.model import Plan, Problem
from shoal.model.merging import merge_plan, merge_played, merge_short

groups = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=25)


def merged(drawn: list[tuple[int, int]], least: int) -> list[int]:
    reporters, arms = np.array(drawn, np.int64).reshape(-1, 2).T.copy()
    found: list[int] = merge_short(reporters, arms, least).tolist()
    return found


@given(groups, st.integers(1, 10))
@settings(deadline=None, derandomize=True, max_examples=300)
def test_every_reporter_is_in_one_large_enough_total_of_the_arm_wherever_one_can_be(
    drawn: list[tuple[int, int]], least: int
) -> None:
    into = merged(drawn, least)
    for total in set(into) - {-1}:
        parts = [group for group, place in enumerate(into) if place == total]
        assert parts[0] == total  # it has the number of its first group
        assert sum(drawn[part][0] for part in parts) >= least
        assert {drawn[part][1] for part in parts} == {drawn[total][1]}
        assert all(drawn[part][0] > 0 for part in parts)
        assert sum(drawn[part][0] >= least for part in parts) <= 1  # who needs no help stays apart
    for arm in range(4):
        here = [group for group, (_, at) in enumerate(drawn) if at == arm]
        present = sum(drawn[group][0] for group in here)
        told = sum(drawn[group][0] for group in here if into[group] >= 0)
        assert told == (present if present >= least else 0)


@given(groups, st.integers(1, 10), st.randoms(use_true_random=False))
@settings(deadline=None, derandomize=True)
def test_only_the_numbers_of_reporters_decide(
    drawn: list[tuple[int, int]], least: int, random: np.random.Generator
) -> None:
    """In another order, the same numbers of reporters are together."""

    def sizes(given: list[tuple[int, int]]) -> list[tuple[int, list[int]]]:
        into = merged(given, least)
        totals: dict[int, list[int]] = {}
        for (n, _), place in zip(given, into, strict=True):
            totals.setdefault(place, []).append(n)
        arms = {place: given[place][1] if place >= 0 else -1 for place in totals}
        return sorted((arms[place], sorted(parts)) for place, parts in totals.items())

    shuffled = drawn.copy()
    random.shuffle(shuffled)
    assert sizes(shuffled) == sizes(drawn)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=7), st.integers(2, 6))
@settings(deadline=None, derandomize=True, max_examples=200)
def test_there_are_nearly_as_many_totals_as_there_can_be(shorts: list[int], least: int) -> None:
    shorts = [min(n, least - 1) for n in shorts]
    into = merged([(n, 0) for n in shorts], least)
    most = max(sum(sum(part) >= least for part in way) for way in partitions(shorts))
    assert len(set(into) - {-1}) >= most - (len(shorts) > 5)


def test_short_groups_make_just_the_size_where_they_can() -> None:
    drawn = [(n, 0) for n in (3, 2, 1, 3, 2, 1)]
    assert merged(drawn, 4) == [0, 1, 2, 2, 1, 0] or merged(drawn, 4) == [0, 1, 0, 3, 1, 3]
    assert sorted(np.unique(merged(drawn, 4), return_counts=True)[1].tolist()) == [2, 2, 2]


def test_what_is_left_over_goes_to_the_smallest_totals_one_by_one() -> None:
    into = merged([(4, 0), (5, 0), (4, 0), (1, 0), (1, 0)], 4)
    assert sorted([into[3], into[4]]) == [0, 2]


def test_a_played_plan_is_merged_by_the_rule_inside_each_arm_and_shard() -> None:
    problem = Problem(n_users=16, n_arms=2, min_group_size=2, n_shards=2)
    arms = np.array([0, 0, 0, 0, 1, 1, 1, 1] * 2)
    groups = np.where(np.arange(16) == 7, -1, np.arange(16) // 2)
    groups[6] = -1
    plan = Plan(arms, groups, problem=problem)
    reports = np.array([1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1], bool)
    merged = merge_played(plan, reports)
    # The first shard's arm 0 has two groups of one reporter each, its arm 1 one of one reporter.
    assert merged.plan.groups.tolist() == [0, 0, 0, 0, 2, 2, -1, -1, 4, 4, 5, 5, 6, 6, 6, 6]
    assert merged.released.tolist() == [1, 0, 0, 0, 1, 0, 1]
    assert np.flatnonzero(merged.reported).tolist() == [0, 2, 8, 9, 12, 13, 15]
    assert (merged.smallest, merged.withheld) == (2, 2)
    assert merge_plan(plan, np.arange(8)) is plan


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """Yield every way to put the items into parts."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for way in partitions(rest):
        yield [[first], *way]
        for place in range(len(way)):
            yield [*way[:place], [first, *way[place]], *way[place + 1 :]]
