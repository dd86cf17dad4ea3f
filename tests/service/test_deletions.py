"""What is left of a deleted campaign: nothing that a restored backup or a counter falls over."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.support.live import Live, serve
from tests.support.service import close, even, report, start, users
from tests.support.stores import Stores

from shoal.client import ServiceError
from shoal.service.aggregator import Aggregator
from shoal.service.campaign import Campaign
from shoal.service.store import Database
from shoal.service.store.backup import back_up, restore
from shoal.wire import LearnerProgress


def begin(live: Live, name: str) -> None:
    operator = live.client("operator")
    operator.create_campaign(name, arms=["a", "b"], min_group_size=5, seats=12, policy="random")
    operator.enrol(name, users(11))


def play(live: Live, name: str, number: int, *, n_users: int = 11) -> None:
    operator = live.client("operator", patience=0)
    operator.open_round(name, number, wait=0)
    live.work()
    assert live.client("app").report(name, number, dict.fromkeys(users(n_users), 0.5)) == []
    operator.close_round(name, number)
    live.work()


def delete(live: Live, name: str) -> None:
    operator = live.client("operator")
    operator.archive_campaign(name)
    operator.delete_campaign(name)
    live.work()


def scrape(live: Live) -> str:
    headers = {"Authorization": f"Bearer {live.tokens['monitor']}"}
    answer = httpx.get(f"{live.url}/metrics", headers=headers)
    assert answer.status_code == 200
    return answer.text


def lose_aggregator(stores: Stores, emptied: Path, backup: Path) -> Stores:
    """An aggregator's store from the backup, beside the learner's store as it is."""
    restored = Stores(f"sqlite:///{emptied}", stores.learner)
    database = Database(restored.aggregator)
    restore(database, "aggregator", backup)
    database.close()
    return restored


def test_threat_17_a_backup_from_before_a_deletion_reopens_rounds(
    stores: Stores, tmp_path: Path
) -> None:
    backup = tmp_path / "aggregator.backup"
    with serve(stores) as live:
        begin(live, "news")
        play(live, "news", 1)
        back_up(live.aggregator.database, "aggregator", backup)
        play(live, "news", 2)
        delete(live, "news")
    restored = lose_aggregator(stores, tmp_path / "restored.db", backup)
    with serve(restored) as live:
        operator = live.client("operator", patience=0)
        live.work()
        with pytest.raises(ServiceError) as caught:
            play(live, "news", 2, n_users=10)
        assert caught.value.name == "learner-ahead"
        assert operator.campaign("news")["ahead"] == 2
        operator.abandon("news", through=2)
        live.work()
        assert operator.round("news", 2).state == "abandoned"
        play(live, "news", 3)  # it may go on
        delete(live, "news")
    restored = lose_aggregator(stores, tmp_path / "again.db", backup)
    with serve(restored) as live:
        live.work()
        assert live.client("operator").campaign("news")["ahead"] == 3


def test_a_campaign_that_is_back_at_its_last_round_can_be_deleted_again(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    backup = tmp_path / "aggregator.backup"
    with serve(sqlite_stores) as live:
        begin(live, "news")
        play(live, "news", 1)
        back_up(live.aggregator.database, "aggregator", backup)
        delete(live, "news")
    with serve(lose_aggregator(sqlite_stores, tmp_path / "restored.db", backup)) as live:
        live.work()
        delete(live, "news")
        assert live.client("operator").campaigns() == []


def test_a_learner_of_other_campaigns_may_remember_a_deleted_one(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live, "news")
        play(live, "news", 1)
        delete(live, "news")
        live.tokens["learner"] = live.aggregator.access.issue(
            "other", "learner", campaigns=["sport"]
        )
        live.learner._client = live.client("learner")
        assert live.learner.work(wait=0) == 0


def test_a_deleted_campaign_waits_for_no_operator(aggregator: Aggregator) -> None:
    campaign = Campaign(arms=["a", "b"], min_group_size=3, seats=6, policy="random")
    aggregator.directory.create("news", campaign)
    aggregator.epochs.sync_learner({}, deleted={"news": 2})
    assert aggregator.epochs.n_ahead() == 1
    aggregator.endings.delete("news")
    aggregator.epochs.sync_learner({}, deleted={"news": 2})
    assert aggregator.epochs.n_ahead() == 0


def test_after_a_deletion_rounds_are_closed_and_counted(stores: Stores) -> None:
    with serve(stores) as live:
        operator = live.client("operator", patience=0)
        for name in ("front-page", "sport"):
            begin(live, name)
        play(live, "front-page", 1)
        operator.open_round("front-page", 2, wait=0)
        live.work()
        operator.abandon("front-page", through=2)
        live.work()
        delete(live, "front-page")
        assert "shoal_released_rounds_total 1.0" in scrape(live)
        play(live, "sport", 1)
        assert "shoal_released_rounds_total 2.0" in scrape(live)


def test_a_release_that_can_not_be_counted_is_one(
    sqlite_aggregator: Aggregator,
) -> None:
    def fail(document: object) -> None:
        raise RuntimeError

    start(sqlite_aggregator, even(6, size=3))
    report(sqlite_aggregator, dict.fromkeys(users(6), 0.5))
    sqlite_aggregator.releases.on_release = fail
    assert close(sqlite_aggregator).totals
    assert sqlite_aggregator.epochs.progress("news") == LearnerProgress(1, 1)
