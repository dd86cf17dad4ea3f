"""Archiving and deleting campaigns, withdrawing users, and how long it is known who reported."""

from __future__ import annotations

import io
from pathlib import Path

import httpx
import msgspec
import pytest
from sqlalchemy import inspect, select, update
from tests.support.live import Live, serve
from tests.support.service import read, users
from tests.support.stores import Stores
from tests.support.visits import Visitor

from shoal.client import ServiceError
from shoal.service.audit import RULES, audit
from shoal.service.dashboard import checks
from shoal.service.learner.run import CampaignRun, Records
from shoal.service.store import Database
from shoal.service.store import aggregator as store
from shoal.service.store import learner as learner_store
from shoal.service.store.backup import back_up, restore


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
            lambda: operator.enrol("news", ["user-1"]),  # all seats are taken
            lambda: operator.add_arm("news", "c"),
            lambda: operator.retire_arm("news", "a"),
        ):
            with pytest.raises(ServiceError) as ended:
                refused()
            assert ended.value.name == "campaign-archived"
        faults = audit(live.aggregator.database, "news").faults
        assert not any(faults.values())
        assert "campaign.archive" in [entry.action for entry in live.client("admin").audit()]


def test_an_archived_campaign_has_no_plans_and_the_learner_no_beliefs(stores: Stores) -> None:
    with serve(stores) as live:
        definition = {"min_group_size": 4, "seats": 40, "holdout": 0.3, "reward_steps": 10}
        operator, app = live.client("operator"), live.client("app")
        operator.create_campaign("news", arms=["a", "b"], **definition)
        operator.enrol("news", users(40))
        rewards = {user: float(number % 2) for number, user in enumerate(users(40))}
        for number in (1, 2):
            operator.open_round("news", number, wait=0)
            live.work()
            app.report("news", number, rewards)
            operator.close_round("news", number)
            live.work()
        progress = read_progress(live)
        believed = live.learner.runs["news"].policy.beliefs()
        assert believed is not None
        first = CampaignRun(live.aggregator.directory.campaign("news")).policy_state()
        before = live.client("analyst").release("news", 2)
        operator.archive_campaign("news")
        live.work()
        with live.aggregator.database.read() as connection:
            columns = store.rounds.c.arms, store.rounds.c.groups, store.campaigns.c.holdout
            rows = connection.execute(select(*columns).join(store.campaigns)).all()
        assert rows == [(None, None, None)] * 2
        with live.learner.database.read() as connection:
            assert connection.execute(select(learner_store.policies)).all() == []
        run = live.learner.runs["news"]
        assert (run.policy_state(), run.planned, run.reading) == (first, 2, 2)
        assert live.learner.work(wait=0) == 0  # nothing to do, and nothing to learn again
        with pytest.raises(ServiceError) as ended:
            app.report("news", 2, {"user-0": 1.0})
        assert ended.value.name == "campaign-archived"
        assert live.client("analyst").release("news", 2) == before
        assert read_progress(live) == progress
    with serve(stores, tokens=live.tokens) as again:  # totals are shown before a learner is heard
        assert again.client("analyst", patience=0).release("news", 2) == before


def read_progress(live: Live) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {live.tokens['analyst']}"}
    answer = httpx.get(f"{live.url}/v1/campaigns/news/progress", headers=headers).json()
    return {key: answer[key] for key in ("points", "estimates", "lift", "shown", "heard")}


def test_the_verdict_names_plans_that_were_deleted_unchecked(stores: Stores) -> None:
    with serve(stores) as live:
        play(live, 1)
        checks.run(live.aggregator, "news")
        play(live, 2)
        live.client("operator").archive_campaign("news")
        checks.run(live.aggregator, "news")
        verdict = checks.verdict(checks.latest(live.aggregator, "news"), exact=True)
    assert verdict.startswith("1 released round checked")
    assert "hold; the plans of 1 more were deleted before they were checked" in verdict


@pytest.mark.parametrize("rule", ["kept", "least", "contested"])
def test_what_is_left_of_an_archived_campaign_is_checked(stores: Stores, rule: str) -> None:
    with serve(stores) as live:
        play(live, 1)
        live.client("operator").archive_campaign("news")
        database = live.aggregator.database
        result = audit(database, "news")
        assert (result.rounds, set(result.faults)) == (1, RULES.keys() - {"groups", "frozen"})
        assert not any(result.faults.values())
        checks.run(live.aggregator, "news")
        assert checks.verdict(checks.latest(live.aggregator, "news"), exact=True).endswith(
            f"all {len(RULES) - 2} rules hold."
        )
        with database.write() as connection:
            if rule == "contested":
                connection.execute(update(store.rounds).values(contested=1))
            else:
                document = read(bytes(connection.scalars(select(store.releases.c.document)).one()))
                fewer = 3 if rule == "least" else 4
                changed = [
                    msgspec.structs.replace(total, reporters=fewer, total=total.total - 1)
                    for total in document.totals
                ]
                document = msgspec.structs.replace(document, totals=changed)
                values = {"document": msgspec.json.encode(document)}
                connection.execute(update(store.releases).values(values))
        assert audit(database, "news").faults[rule]


def test_an_aggregator_from_before_the_archiving_is_learnt_again(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    backup = tmp_path / "aggregator.backup"
    with serve(sqlite_stores) as live:
        play(live, 1)
        play(live, 2)
        back_up(live.aggregator.database, "aggregator", backup)
        state = live.learner.runs["news"].policy_state()
        live.client("operator").archive_campaign("news")
        live.work()
        assert live.learner.runs["news"].policy_state() != state
    restored = Stores(f"sqlite:///{tmp_path}/restored.db", sqlite_stores.learner)
    database = Database(restored.aggregator)
    restore(database, "aggregator", backup)
    database.close()
    with serve(restored) as live:
        live.work()
        assert live.learner.runs["news"].policy_state() == state
        play(live, 3)


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
