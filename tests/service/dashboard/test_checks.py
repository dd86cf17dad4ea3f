from __future__ import annotations

import pytest
from tests.support.live import learning, serve
from tests.support.service import close, even, start
from tests.support.stores import Stores
from tests.support.visits import CAMPAIGN, create, play, wait

from shoal.service.aggregator import Aggregator
from shoal.service.dashboard import checks


def test_checks_run_by_themselves_where_a_round_has_ended(sqlite_aggregator: Aggregator) -> None:
    def first() -> checks.CheckedRule:
        return checks.latest(sqlite_aggregator, "news")[0]

    start(sqlite_aggregator, even(12, size=3))
    checks.run_due(sqlite_aggregator)
    assert first().ran_at is None
    checks.run(sqlite_aggregator, "news")
    assert first().rounds == 0  # an open round is not a released one
    close(sqlite_aggregator)
    checks.run_due(sqlite_aggregator, repeat=False)
    assert first().rounds == 0
    checks.run_due(sqlite_aggregator)
    assert (first().rounds, first().fault) == (1, "")


def test_the_first_release_is_checked_soon_and_a_fault_does_not_end_it(
    sqlite_stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[bool] = []
    real = checks.run_due

    def once_broken(aggregator: Aggregator, *, repeat: bool) -> None:
        calls.append(repeat)
        if len(calls) == 1:
            raise OSError
        real(aggregator, repeat=repeat)

    monkeypatch.setattr(checks, "run_due", once_broken)
    with serve(sqlite_stores, tick_seconds=0.05) as running, learning(running):
        create(running)
        play(running, 1)
        wait(lambda: checks.latest(running.aggregator, CAMPAIGN)[0].ran_at is not None)
    assert not any(calls)  # the hour is not over
