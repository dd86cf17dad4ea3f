"""What the app asks for all the time must not wait for what the operator does now and then."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection
from tests.support.service import even, report, start, users
from tests.support.stores import Stores

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.cache import Cache
from shoal.service.aggregator.rounds import FrozenPlan
from shoal.service.store import Database


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
            other.submit(sqlite_aggregator.rounds.cached_round, "news", None).result(timeout=120)
            == 1
        )
        refused = other.submit(report, sqlite_aggregator, dict.fromkeys(users(12), 1.0))
        assert refused.result(timeout=120) == []


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


def plan_cache(database: Database, *, n_seats: int) -> Cache[int, FrozenPlan]:
    """A cache of plans of ``n_seats`` that keeps 120 seats."""
    return Cache(
        database,
        lambda connection, number: even(n_seats, size=2),
        size_of=lambda plan: plan.arms.size,
        max_size=120,
    )


def test_few_plans_are_kept_where_they_are_large_and_many_where_they_are_small(
    sqlite_stores: Stores,
) -> None:
    database = sqlite_stores.open("aggregator")
    small, large = plan_cache(database, n_seats=4), plan_cache(database, n_seats=40)
    for number in range(1, 13):
        small.get(number)
        large.get(number)
    assert [number in small for number in range(1, 13)] == [True] * 12
    assert [number for number in range(1, 13) if number in large] == [5, 6, 7, 8, 9, 10, 11, 12]
    database.close()


def test_a_value_that_is_loaded_beside_a_write_is_not_kept(sqlite_stores: Stores) -> None:
    """It may be older than what the write has stored."""
    database = sqlite_stores.open("aggregator")
    values = iter(["old", "new"])
    loading, written = threading.Event(), threading.Event()

    def load(connection: Connection, key: str) -> str:
        value = next(values)
        loading.set()
        assert written.wait(120)
        return value

    cache: Cache[str, str] = Cache(database, load)
    with ThreadPoolExecutor(1) as other:
        before = other.submit(cache.get, "key")
        assert loading.wait(120)
        with cache.write("key"):
            pass
        written.set()
        assert before.result(timeout=120) == "old"
    assert [cache.get("key") for _ in range(2)] == ["new", "new"]
    database.close()


@pytest.mark.parametrize("keep", [False, True])
def test_a_write_drops_a_value_unless_it_is_committed_and_replaced(
    sqlite_stores: Stores, keep: bool
) -> None:
    database = sqlite_stores.open("aggregator")
    cache: Cache[str, str] = Cache(database, lambda connection, key: "stored")
    cache.put("key", "old")
    with cache.write("key", keep=keep):
        pass
    assert ("key" in cache) == keep
    cache.put("key", "old")
    with pytest.raises(ZeroDivisionError), cache.write("key", keep=keep):
        raise ZeroDivisionError
    assert cache.get("key") == "stored"
    database.close()
