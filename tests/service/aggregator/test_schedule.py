from __future__ import annotations

import pytest
from tests.support.service import KEY, TestClock, even, read, report, users
from tests.support.stores import Stores

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.schedule import tick
from shoal.service.campaign import Campaign, Schedule
from shoal.service.problems import ProblemError
from shoal.service.store import HOUR
from shoal.wire import LearnerProgress


def scheduled(*, all_reported: bool = False, horizon: int | None = None) -> Campaign:
    schedule = Schedule(
        open_every_hours=24.0, close_after_hours=6.0, close_when_all_reported=all_reported
    )
    return Campaign(
        arms=["a", "b"], min_group_size=4, seats=8, policy="random", grouping="learner",
        measure="planned", schedule=schedule, horizon=horizon,
    )  # fmt: skip


def state(aggregator: Aggregator) -> tuple[int, str] | None:
    last = aggregator.rounds.latest("daily")
    return None if last is None else (last.number, last.state)


def test_a_campaign_opens_every_day_and_closes_after_six_hours(stores: Stores) -> None:
    clock = TestClock()
    aggregator = Aggregator(stores.open("aggregator"), key=KEY, clock=clock)
    aggregator.directory.create("daily", scheduled(horizon=3))
    tick(aggregator)
    assert state(aggregator) is None  # nobody there yet
    aggregator.directory.enrol("daily", users(8))
    for number in (1, 2, 3):
        tick(aggregator)
        assert state(aggregator) == (number, "wanted")
        aggregator.epochs.sync_learner({"daily": LearnerProgress(number - 1, number - 1)})
        aggregator.rounds.freeze("daily", number, even(8, size=4))
        report(aggregator, dict.fromkeys(users(8), 0.5), name="daily", number=number)
        clock.now += int(5.99 * HOUR)
        tick(aggregator)
        assert state(aggregator) == (number, "open")
        clock.now += int(0.02 * HOUR)
        tick(aggregator)
        document = read(aggregator.releases.read("daily", number, to_learner=True))
        assert (document.round, len(document.totals)) == (number, 2)
        clock.now += int(17.9 * HOUR)
        tick(aggregator)
        assert state(aggregator) == (number, "released")
        clock.now += int(0.2 * HOUR)
    tick(aggregator)
    assert state(aggregator) == (3, "released")  # the horizon is reached
    aggregator.close()


def test_a_round_may_close_as_soon_as_all_have_reported(sqlite_stores: Stores) -> None:
    aggregator = Aggregator(sqlite_stores.open("aggregator"), key=KEY, clock=TestClock())
    aggregator.directory.create("daily", scheduled(all_reported=True))
    aggregator.directory.enrol("daily", users(8))
    tick(aggregator)
    aggregator.epochs.sync_learner({"daily": LearnerProgress(0, 0)})
    aggregator.rounds.freeze("daily", 1, even(8, size=4))
    report(aggregator, dict.fromkeys(users(7), 0.5), name="daily")
    tick(aggregator)
    assert state(aggregator) == (1, "open")
    report(aggregator, {"user-7": 0.5}, name="daily")
    tick(aggregator)
    assert state(aggregator) == (1, "released")
    aggregator.close()


def test_a_round_that_began_in_the_future_begins_when_the_clock_is_right(stores: Stores) -> None:
    clock = TestClock()
    aggregator = Aggregator(stores.open("aggregator"), key=KEY, clock=clock)
    aggregator.directory.create("daily", scheduled())
    aggregator.directory.enrol("daily", users(8))
    clock.now += 10 * 365 * 24 * HOUR
    tick(aggregator)
    aggregator.epochs.sync_learner({"daily": LearnerProgress(0, 0)})
    aggregator.rounds.freeze("daily", 1, even(8, size=4))
    clock.now -= 10 * 365 * 24 * HOUR
    tick(aggregator)
    assert state(aggregator) == (1, "open")
    assert aggregator.rounds.get("daily", 1).opened_at == clock.now
    clock.now += int(6.01 * HOUR)
    tick(aggregator)
    assert state(aggregator) == (1, "released")
    clock.now += int(18 * HOUR)
    tick(aggregator)
    assert state(aggregator) == (2, "wanted")
    aggregator.close()


def test_a_schedule_waits_for_a_silent_learner(sqlite_stores: Stores) -> None:
    clock = TestClock()
    aggregator = Aggregator(sqlite_stores.open("aggregator"), key=KEY, clock=clock)
    aggregator.directory.create("daily", scheduled())
    aggregator.directory.enrol("daily", users(8))
    tick(aggregator)
    aggregator.rounds.freeze("daily", 1, even(8, size=4))
    clock.now += 30 * HOUR
    tick(aggregator)
    assert state(aggregator) == (1, "open")
    with pytest.raises(ProblemError, match="has not confirmed"):
        aggregator.releases.close_round("daily", 1)
    aggregator.epochs.sync_learner({"daily": LearnerProgress(1, 0)})
    tick(aggregator)
    assert state(aggregator) == (1, "released")
    aggregator.close()
