"""What the app asks for all the time must not wait for what the operator does now and then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.service.helpers import even, report, start, users

from shoal.service.aggregator import Aggregator


def test_look_ups_and_reports_do_not_wait_for_a_change_that_is_being_stored(
    sqlite_aggregator: Aggregator,
) -> None:
    start(sqlite_aggregator, even(12, size=4))
    assert sqlite_aggregator.latest("news") is not None
    with ThreadPoolExecutor(1) as other, sqlite_aggregator._lock, sqlite_aggregator.directory.lock:
        assert other.submit(sqlite_aggregator.at_hand, "news", None).result(timeout=30) == 1
        refused = other.submit(report, sqlite_aggregator, dict.fromkeys(users(12), 1.0))
        assert refused.result(timeout=30) == []


def test_a_round_is_at_hand_once_its_plan_and_the_roster_have_been_read(
    sqlite_aggregator: Aggregator,
) -> None:
    start(sqlite_aggregator, even(12, size=4))
    again = Aggregator(sqlite_aggregator.database, key=bytes(32))
    assert again.at_hand("news", 1) is None
    assert again.fetch("news", None) == 1
    assert again.at_hand("news", 1) == again.at_hand("news", None) == 1
    assert again.at_hand("news", 2) is None
    again._intake.close()
