"""Threat 23: one token reports in a campaign, and what a second one sends is contested."""

from __future__ import annotations

import httpx
import pytest
from sqlalchemy import text
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import Client, ServiceError
from shoal.service.campaign import Campaign
from shoal.wire import report_capability

N = 12


def begin(live: Live, **changes: object) -> None:
    operator = live.client("operator")
    definition = {
        "arms": ["a", "b"],
        "min_group_size": 3,
        "seats": N,
        "reward_steps": 10,
        "policy": "random",
    }
    # Everyone in one crowd, so that all are counted: a campaign of one arm, as an older store has.
    live.aggregator.directory.create("news", Campaign.model_validate(definition | changes))
    operator.enrol("news", users(N))
    operator.open_round("news", 1, wait=0)
    live.work()


def app(live: Live, name: str, *, succeeds: str | None = None) -> Client:
    admin = live.client("admin")
    live.tokens[name] = admin.token(name, "app", campaigns=["news"], succeeds=succeeds)
    return live.client(name)


def finish(live: Live, number: int = 1) -> None:
    live.client("operator").close_round("news", number)
    live.work()


def test_threat_23_forged_reports_isolate_a_user(stores: Stores) -> None:
    """A second app token reports 0 for all but the victim: nothing of it is in any total."""
    with serve(stores) as live:
        begin(live)
        genuine, forger = live.client("app"), app(live, "forger")
        victim = "user-3"
        genuine.report("news", 1, {"user-0": 1.0})
        zeros = {user: 0.0 for user in users(N) if user != victim}
        refused = forger.report("news", 1, zeros)
        assert [item.reason for item in refused] == ["contested-report"] * (N - 1)
        genuine.report("news", 1, dict.fromkeys(users(N), 1.0))
        finish(live)
        release = live.client("analyst").release("news", 1)
        assert release.contested == N - 1
        assert sum(total.total for total in release.totals) == 10 * N  # the genuine rewards
        metrics = live.metrics.text().decode()
        assert f"shoal_contested_reports_total {N - 1}.0" in metrics
        page = live.client("operator").campaign("news")
        assert page["learner"] == "in touch"
        closed = [e for e in live.client("admin").audit() if e.action == "round.close"]
        assert closed[0].details == {"round": 1, "contested": N - 1, "source": "app"}


def test_a_forger_who_is_first_makes_the_genuine_reports_contested_not_read(
    sqlite_stores: Stores,
) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        forger = app(live, "forger")
        forger.report("news", 1, {user: 0.0 for user in users(N) if user != "user-3"})
        refused = live.client("app").report("news", 1, dict.fromkeys(users(N), 1.0))
        assert {item.reason for item in refused} == {"contested-report"}
        finish(live)
        release = live.client("analyst").release("news", 1)
        assert release.contested == N
        assert sum(total.total for total in release.totals) == 0  # user-3's reward is in none


def test_a_token_that_has_reported_nothing_takes_the_reporting_from_nobody(stores: Stores) -> None:
    with serve(stores) as live:
        begin(live)
        second, successor = app(live, "second"), app(live, "third", succeeds="app")
        post = httpx.post(
            f"{live.url}/v1/campaigns/news/rounds/1/reports",
            json={"reports": []},
            headers={"Authorization": f"Bearer {live.tokens['second']}"},
        )
        assert post.json() == {"refused": []}
        for empty in ({"nobody": 1.0}, {"user-0": 1.5}):
            assert len(second.report("news", 1, empty)) == 1
        genuine = live.client("app")
        assert genuine.report("news", 1, {"user-0": 1.0}) == []
        assert len(successor.report("news", 1, {"nobody": 1.0})) == 1
        assert genuine.report("news", 1, dict.fromkeys(users(N), 1.0)) == []
        finish(live)
        release = live.client("analyst").release("news", 1)
        assert (release.contested, sum(t.total for t in release.totals)) == (0, 10 * N)


def test_the_audit_log_names_the_token_that_reports_with_each_release(stores: Stores) -> None:
    with serve(stores) as live:
        begin(live)
        before = live.client("admin").audit()
        live.client("app").report("news", 1, dict.fromkeys(users(N), 1.0))
        assert live.client("admin").audit() == before  # its time would show a reporter
        finish(live)
        live.client("operator").open_round("news", 2, wait=0)
        live.work()
        app(live, "second", succeeds="app").report("news", 2, dict.fromkeys(users(N), 1.0))
        finish(live, 2)
        closed = [e for e in live.client("admin").audit() if e.action == "round.close"]
        assert [entry.details["source"] for entry in closed] == ["app", "second"]


def test_a_contested_round_is_withheld_where_the_campaign_refuses_them(stores: Stores) -> None:
    with serve(stores) as live:
        begin(live, contested="refuse")
        live.client("app").report("news", 1, dict.fromkeys(users(N), 1.0))
        app(live, "forger").report("news", 1, {"user-0": 0.0})
        finish(live)
        release = live.client("analyst").release("news", 1)
        assert (release.totals, release.contested) == ([], 1)
        assert release.withheld > 0
        live.client("operator").open_round("news", 2, wait=0)
        live.work()
        live.client("app").report("news", 2, dict.fromkeys(users(N), 1.0))
        finish(live, 2)
        assert live.client("analyst").release("news", 2).totals  # the campaign goes on


def test_a_named_successor_takes_over_and_the_one_before_is_contested(stores: Stores) -> None:
    with serve(stores) as live:
        begin(live)
        former = live.client("app")
        assert former.report("news", 1, dict.fromkeys(users(4), 1.0)) == []
        successor = app(live, "second", succeeds="app")
        rest = dict.fromkeys(users(N)[4:], 1.0)
        assert successor.report("news", 1, rest) == []
        refused = former.report("news", 1, {"user-5": 0.0})
        assert [item.reason for item in refused] == ["contested-report"]
        rotated = live.client("admin").rotate("second")
        with Client(live.url, rotated) as again:  # a rotated token is the same source
            assert again.report("news", 1, rest) == []
        finish(live)
        release = live.client("analyst").release("news", 1)
        assert (release.contested, sum(t.total for t in release.totals)) == (1, 10 * N)


def test_nothing_shows_a_contested_report_before_the_release(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        live.client("app").report("news", 1, {"user-0": 1.0})
        live.client("admin").token("forger", "app", campaigns=["news"])
        forger = app(live, "forger")
        before = live.client("admin").audit(), live.client("operator").campaign("news")
        metrics = live.metrics.text()
        forger.report("news", 1, {"user-0": 1.0})
        assert (live.client("admin").audit(), live.client("operator").campaign("news")) == before
        assert _counters(live.metrics.text()) == _counters(metrics)


def _counters(text: bytes) -> list[str]:
    return [line for line in text.decode().splitlines() if line.startswith("shoal_contested")]


def test_with_capabilities_a_device_reports_for_its_own_user_alone(stores: Stores) -> None:
    with serve(stores) as live:
        begin(live, capabilities=True)
        key = live.client("admin").capability_key("news")
        with pytest.raises(ServiceError) as caught:
            live.client("app").capability_key("news")
        assert caught.value.name == "wrong-role"
        entry = live.client("admin").audit()[-1]  # one for each reading
        read = (entry.actor, entry.action, entry.campaign)
        assert read == ("admin", "capability-key.read", "news")
        own = {user: report_capability(key, "news", 1, user) for user in users(N)}
        client = live.client("app")
        stolen = {"user-1": own["user-2"], "user-3": report_capability(key, "news", 2, "user-3")}
        refused = client.report("news", 1, dict.fromkeys(("user-0", *stolen), 0.0),
                                capabilities=stolen)  # fmt: skip
        assert [item.reason for item in refused] == ["bad-capability"] * 3
        strange = own | {"user-1": "é", "user-2": "😀", "user-3": own["user-3"] + "\0"}
        refused = client.report("news", 1, dict.fromkeys(users(N), 1.0), capabilities=strange)
        refusals = [(item.user, item.reason) for item in refused]  # of these alone
        assert refusals == [(f"user-{i}", "bad-capability") for i in (1, 2, 3)]
        assert client.report("news", 1, dict.fromkeys(users(N), 1.0), capabilities=own) == []
        finish(live)
        assert sum(t.total for t in live.client("analyst").release("news", 1).totals) == 10 * N


def test_the_source_of_a_store_of_0_1_is_the_first_that_reports(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        with live.aggregator.database.read() as connection:
            assert connection.scalar(text("SELECT source FROM campaigns")) is None
        live.client("app").report("news", 1, {"user-0": 1.0})
        with live.aggregator.database.read() as connection:
            assert connection.scalar(text("SELECT source FROM campaigns")) == "app"
