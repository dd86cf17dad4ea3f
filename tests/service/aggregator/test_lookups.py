"""What the app asks for all the time must not wait for what the operator does now and then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.service.helpers import even, report, start, users

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.plans import Plans


def test_look_ups_and_reports_do_not_wait_for_a_change_that_is_being_stored(
    sqlite_aggregator: Aggregator,
) -> None:
    start(sqlite_aggregator, even(12, size=4))
    assert sqlite_aggregator.latest("news") is not None
    with ThreadPoolExecutor(1) as other, sqlite_aggregator._lock, sqlite_aggregator.directory.lock:
        assert other.submit(sqlite_aggregator.cached_round, "news", None).result(timeout=30) == 1
        refused = other.submit(report, sqlite_aggregator, dict.fromkeys(users(12), 1.0))
        assert refused.result(timeout=30) == []


def test_a_round_is_cached_once_its_plan_and_the_roster_have_been_read(
    sqlite_aggregator: Aggregator,
) -> None:
    start(sqlite_aggregator, even(12, size=4))
    again = Aggregator(sqlite_aggregator.database, key=bytes(32))
    assert again.cached_round("news", 1) is None
    assert again.fetch("news", None) == 1
    assert again.cached_round("news", 1) == again.cached_round("news", None) == 1
    assert again.cached_round("news", 2) is None
    again._queue.close()


def test_few_plans_are_kept_where_they_are_large_and_many_where_they_are_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shoal.service.aggregator.plans.MOST_SEATS", 120)
    small, large = Plans(), Plans()
    for number in range(1, 13):
        small.keep("news", number, (number, even(4, size=2)))
        large.keep("news", number, (number, even(40, size=4)))
    assert [small.find("news", number) is not None for number in range(1, 13)] == [True] * 12
    kept = [number for number in range(1, 13) if large.find("news", number)]
    assert kept == [5, 6, 7, 8, 9, 10, 11, 12]
