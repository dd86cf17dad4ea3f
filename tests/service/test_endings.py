"""Archiving and deleting campaigns, withdrawing users, and how long it is known who reported."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from sqlalchemy import inspect, select
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores
from tests.support.visits import Visitor

from shoal.client import ServiceError
from shoal.service.audit import audit
from shoal.service.learner.run import Records
from shoal.service.store import aggregator as store


def play(live: Live, number: int) -> None:
    operator, app = live.client("operator"), live.client("app")
    if number == 1:
        operator.create_campaign(
            "news", arms=["a", "b"], min_group_size=4, seats=12, policy="random"
        )
        operator.enrol("news", users(12))
    operator.open_round("news", number, wait=0)
    live.work()
    assert app.report("news", number, dict.fromkeys(users(12), 0.5)) == []
    operator.close_round("news", number)
    live.work()


def masks(live: Live) -> list[tuple[int, bool, bool]]:
    """Each round's number, and whether it is known who reported and who is behind a total."""
    table, of = store.releases, store.rounds
    query = select(of.c.number, table.c.reporters, table.c.counted).join(of).order_by(of.c.number)
    with live.aggregator.database.read() as connection:
        return [(n, bool(a), bool(b)) for n, a, b in connection.execute(query)]


def test_who_reported_is_forgotten_with_the_next_release(stores: Stores) -> None:
    with serve(stores) as live:
        for number in (1, 2, 3):
            play(live, number)
        assert masks(live) == [(1, False, True), (2, False, True), (3, True, True)]
        app = live.client("app")
        assert app.report("news", 3, {"user-0": 1.0}) == []  # a repeat
        late = app.report("news", 2, {"user-0": 1.0})
        assert [refused.reason for refused in late] == ["late-report"]
        faults = audit(live.aggregator.database, "news").faults
        assert not any(faults.values())


def test_an_archived_campaign_keeps_its_totals_and_forgets_its_people(stores: Stores) -> None:
    with serve(stores) as live:
        play(live, 1)
        operator, analyst = live.client("operator"), live.client("analyst", patience=0)
        before = analyst.release("news", 1)
        operator.open_round("news", 2, wait=0)
        live.work()
        with pytest.raises(ServiceError) as running:
            operator.archive_campaign("news")
        assert running.value.name == "campaign-running"
        assert "Close or abandon round 2 first." in str(running.value)
        operator.close_round("news", 2)
        with pytest.raises(ServiceError) as unheard:
            live.client("operator", patience=0).archive_campaign("news")
        assert unheard.value.name == "learner-silent"  # the learner has not learnt round 2
        live.work()
        assert operator.archive_campaign("news")["state"] == "archived"
        assert operator.archive_campaign("news")["users"] == 0
        assert analyst.release("news", 1) == before
        assert masks(live) == [(1, False, False), (2, False, False)]
        with live.aggregator.database.read() as connection:
            names = set(connection.scalars(select(store.seats.c.user_id)))
        assert names == {f"(erased {seat})" for seat in range(12)}
        for refused in (
            lambda: operator.open_round("news", 3, wait=0),
            lambda: operator.withdraw("news", ["user-1"]),
            lambda: operator.add_arm("news", "c"),
            lambda: operator.retire_arm("news", "a"),
        ):
            with pytest.raises(ServiceError) as ended:
                refused()
            assert ended.value.name == "campaign-archived"
        faults = audit(live.aggregator.database, "news").faults
        assert not any(faults.values())
        assert "campaign.archive" in [entry.action for entry in live.client("admin").audit()]


def test_a_deleted_campaign_leaves_nothing_but_its_name(stores: Stores) -> None:
    with serve(stores) as live:
        play(live, 1)
        operator = live.client("operator")
        with pytest.raises(ServiceError) as running:
            operator.delete_campaign("news")
        assert running.value.name == "campaign-running"
        assert "Archive it first." in str(running.value)
        operator.archive_campaign("news")
        operator.delete_campaign("news")
        operator.delete_campaign("news")
        assert operator.campaigns() == []
        with pytest.raises(ServiceError) as gone:
            operator.campaign("news")
        assert gone.value.name == "unknown-campaign"
        with pytest.raises(ServiceError) as taken:
            operator.create_campaign(
                "news", arms=["a", "b"], min_group_size=4, seats=12, policy="random"
            )
        assert taken.value.name == "campaign-deleted"
        with live.aggregator.database.read() as connection:
            for table in store.metadata.sorted_tables:
                rows = connection.execute(select(table)).all()
                if table.name not in ("tokens", "sessions", "keys", "audit", "campaigns"):
                    assert rows == [], table.name
            assert set(inspect(connection).get_table_names()) >= {"audit", "campaigns"}
        live.work()
        assert Records(live.learner.database).names() == []
        assert "news" not in live.learner.runs
        acts = [(entry.action, entry.campaign) for entry in live.client("admin").audit()]
        assert ("campaign.delete", "news") in acts


def test_a_campaign_without_a_round_is_deleted_at_once(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        operator = live.client("operator")
        operator.create_campaign("typo", arms=["a", "b"], min_group_size=4, seats=12)
        operator.delete_campaign("typo")
        assert operator.campaigns() == []


def test_operators_do_the_same_on_pages(sqlite_stores: Stores, tmp_path: Path) -> None:
    with serve(sqlite_stores) as live:
        play(live, 1)
        with Visitor(live, "operator") as operator:

            def send(file: str, **fields: str) -> str:
                answer = operator.http.post(
                    "/campaigns/news/users/leave",
                    data={"csrf": operator.csrf(), **fields},
                    files={"file": ("leave.csv", io.BytesIO(file.encode()))},
                )
                return answer.text

            assert "Tick the box" in send("user\nuser-0\n")
            assert "Nobody left" in send("name\nuser-0\n", sure="yes")
            left = send("user\nuser-0\nstranger\n", sure="yes")
            assert "1 user leaves from the next round on. Not in the campaign: stranger." in left
            many = send("user\n" + "\n".join(f"x{i}" for i in range(7)), sure="yes")
            assert "0 users leave" in many
            assert "Not in the campaign: x0, x1, x2, x3, x4 and 2 more." in many
            assert "Names erased: 1." in send("user\nuser-1\n", sure="yes", erase="yes")
            roster = live.aggregator.directory.roster("news")
            assert (roster.active[0], "user-0" in roster.seats) == (False, True)
            assert "user-1" not in roster.seats
            asked = operator.send("/campaigns/news/archive")
            assert "forgotten" in asked.text
            assert not live.aggregator.directory.is_archived("news")
            assert operator.send("/campaigns/news/archive", sure="yes").status_code == 303
            assert "Delete the campaign" in operator.http.get("/campaigns/news/users").text
            assert operator.send("/campaigns/news/delete", sure="yes").headers["location"] == (
                "/?done=deleted"
            )
            assert operator.http.get("/campaigns/news").status_code == 404
