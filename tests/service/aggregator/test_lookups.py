"""What the app asks for all the time must not wait for what the operator does now and then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.service.helpers import even, report, start, users

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.cache import Cache
from shoal.service.aggregator.plans import FrozenPlan


def test_look_ups_and_reports_do_not_wait_for_a_change_that_is_being_stored(
    sqlite_aggregator: Aggregator,
) -> None:
    start(sqlite_aggregator, even(12, size=4))
    assert sqlite_aggregator.rounds.latest("news") is not None
    with (
        ThreadPoolExecutor(1) as other,
        sqlite_aggregator.rounds.lock,
        sqlite_aggregator.directory.lock,
    ):
        assert (
            other.submit(sqlite_aggregator.rounds.cached_round, "news", None).result(timeout=30)
            == 1
        )
        refused = other.submit(report, sqlite_aggregator, dict.fromkeys(users(12), 1.0))
        assert refused.result(timeout=30) == []


def test_a_round_is_cached_once_its_plan_and_the_roster_have_been_read(
    sqlite_aggregator: Aggregator,
) -> None:
    start(sqlite_aggregator, even(12, size=4))
    again = Aggregator(sqlite_aggregator.database, key=bytes(32))
    assert again.rounds.cached_round("news", 1) is None
    assert again.rounds.fetch("news", None) == 1
    assert again.rounds.cached_round("news", 1) == again.rounds.cached_round("news", None) == 1
    assert again.rounds.cached_round("news", 2) is None
    again.reports.close()


def plan_cache(*, max_seats: int) -> Cache[int, FrozenPlan]:
    return Cache(size_of=lambda plan: plan.arms.size, max_size=max_seats)


def test_few_plans_are_kept_where_they_are_large_and_many_where_they_are_small() -> None:
    small, large = plan_cache(max_seats=120), plan_cache(max_seats=120)
    for number in range(1, 13):
        small.put(number, even(4, size=2))
        large.put(number, even(40, size=4))
    assert [number in small for number in range(1, 13)] == [True] * 12
    assert [number for number in range(1, 13) if number in large] == [5, 6, 7, 8, 9, 10, 11, 12]
