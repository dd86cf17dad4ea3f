"""Threat 26: one damaged state stops its own campaign, until it is learnt again."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest
from sqlalchemy import Table, update
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.service.doctor import examine
from shoal.service.learner.application import create_app
from shoal.service.learner.run import STATE_VERSION, Records
from shoal.service.learner.service import Learner
from shoal.service.settings import LearnerSettings, Settings
from shoal.service.store.learner import policies, runs

DAMAGES: dict[str, tuple[Table, dict[str, Any]]] = {
    "a flipped bit": (policies, {"state": b"\x01"}),
    "another release's state": (policies, {"version": STATE_VERSION + 1}),
    "damaged feedback": (runs, {"feedback": b"\xc1"}),
    "a damaged definition": (runs, {"definition": "{"}),
}


def begin(live: Live, name: str) -> None:
    operator = live.client("operator")
    operator.create_campaign(name, arms=["a", "b"], min_group_size=3, seats=12, seed=4)
    operator.enrol(name, users(12))
    for number in range(1, 4):
        play(live, name, number)


def play(live: Live, name: str, number: int) -> None:
    operator, app = live.client("operator"), live.client("app")
    operator.open_round(name, number, wait=0)
    live.work()
    arms = app.assignments(name)
    app.report(name, number, {user: float(arms[user] == "a") for user in users(12)})
    operator.close_round(name, number)
    live.work()


@pytest.mark.parametrize("damage", DAMAGES)
def test_threat_26_one_damaged_state_stops_all(stores: Stores, damage: str) -> None:
    with serve(stores) as live:
        begin(live, "broken")
        begin(live, "whole")
        before = live.learner.runs["broken"].policy_state()
        table, values = DAMAGES[damage]
        with live.learner.database.write() as connection:
            connection.execute(update(table).where(table.c.campaign == "broken").values(values))
        live.learner = Learner(live.learner.database, live.learner._client)
        assert set(live.learner.quarantined) == {"broken"}
        play(live, "whole", 4)  # the other campaign goes on
        operator = live.client("operator")
        operator.open_round("broken", 4, wait=0)
        live.work()
        assert operator.round("broken", 4).state == "wanted"
        assert operator.campaign("broken")["learner"] == "quarantined"
        settings = Settings(learner=LearnerSettings(database=stores.learner))
        faults = [finding.fault for finding in examine(settings, "learner") if finding.fault]
        assert len(faults) == 1
        assert faults[0].endswith("shoal relearn broken")
        records = Records(live.learner.database)
        assert records.ask_to_relearn("broken")
        assert not records.ask_to_relearn("unknown")
        live.work()
        assert operator.round("broken", 4).state == "open"
        assert live.learner.quarantined == {}
        again = Learner(live.learner.database, live.learner._client)
        assert again.runs["broken"].policy_state() == before
        assert again.runs["broken"].learnt == 3


def test_a_campaign_is_learnt_again_at_once_also_while_a_round_is_open(
    sqlite_stores: Stores,
) -> None:
    """Until it is learnt, nobody is shown a release."""
    with serve(sqlite_stores) as live:
        begin(live, "news")
        before = live.learner.runs["news"].policy_state()
        live.client("operator").open_round("news", 4, wait=0)
        live.work()
        Records(live.learner.database).ask_to_relearn("news")
        live.work()
        assert live.client("analyst").release("news", 3).round == 3
        assert live.learner.runs["news"].policy_state() == before
        assert live.client("operator").round("news", 4).state == "open"


def test_a_learner_whose_progress_is_wrong_can_forget_it(sqlite_stores: Stores) -> None:
    """The way on where the learner claims rounds that nobody has played."""
    with serve(sqlite_stores) as live:
        begin(live, "news")
        with live.learner.database.write() as connection:
            connection.execute(update(runs).values(planned=10**6, learnt=10**6, reading=10**6))
        live.learner = Learner(live.learner.database, live.learner._client)
        live.work()
        operator = live.client("operator")
        assert operator.campaign("news")["ahead"] == 10**6
        records = Records(live.learner.database)
        records.ask_to_relearn("news", forget_rounds=True)
        records.forget_requested()
        # Killed before it could tell the aggregator, whose claim holds until it is told.
        live.learner = Learner(live.learner.database, live.learner._client)
        live.work()
        assert records.forgotten() == []
        state = operator.campaign("news")
        assert (state["learner"], state["ahead"], state["abandoned"]) == ("in touch", None, 0)
        play(live, "news", 4)
        assert live.client("analyst").release("news", 4).round == 4


def test_the_learners_pages_count_quarantined_campaigns(
    sqlite_stores: Stores,
) -> None:
    with serve(sqlite_stores) as live:
        begin(live, "news")
        with live.learner.database.write() as connection:
            connection.execute(update(policies).values(state=b"\x01"))
        learner = Learner(live.learner.database, live.learner._client)
        transport = httpx.ASGITransport(create_app(learner, threading.Event()))

        async def metrics() -> str:
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return (await client.get("/metrics")).text

        assert "shoal_quarantined_campaigns 1.0" in asyncio.run(metrics())
