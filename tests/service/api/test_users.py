"""Users who join, leave and are forgotten; tokens and batches at their edges."""

from __future__ import annotations

import logging

import httpx
import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import Client, ServiceError
from shoal.errors import InvalidInputError

DEFINITION = {"arms": ["a", "b"], "min_group_size": 3, "seats": 6, "policy": "random"}


def begin(live: Live) -> Client:
    operator = live.client("operator")
    operator.create_campaign("news", **DEFINITION)
    operator.enrol("news", users(6))
    return operator


def move(live: Live, **body: object) -> httpx.Response:
    headers = {"Authorization": f"Bearer {live.tokens['operator']}"}
    return httpx.post(f"{live.url}/v1/campaigns/news/users", json=body, headers=headers)


def counts(**changed: object) -> dict[str, object]:
    return {"joined": 0, "left": 0, "erased": 0, "unknown": []} | changed


def test_an_answer_counts_erased_names_and_names_who_is_unknown(stores: Stores) -> None:
    with serve(stores) as live:
        begin(live)
        move(live, leave=["user-0"])
        gone = move(live, leave=["user-0", "user-1", "nobody"], erase=True).json()
        assert gone == counts(left=1, erased=2, unknown=["nobody"])
        again = move(live, leave=["user-0"], erase=True).json()
        assert again == counts(unknown=["user-0"])


def test_users_move_together_or_not_at_all(stores: Stores) -> None:
    with serve(stores) as live:
        operator = begin(live)
        refused = move(live, leave=["user-0", "user-1"], join=["one-too-many"])
        assert refused.json()["type"] == "urn:shoal:problem:campaign-full"
        assert operator.campaign("news")["users"] == 6
        assert move(live, leave=["user-0", "user-1"]).json() == counts(left=2)
        moved = move(live, leave=["user-0", "user-2", "user-3"], join=["user-0", "user-2"])
        assert moved.json() == counts(joined=1, left=1)
        live.aggregator.directory._rosters.drop("news")  # what is stored says the same
        active = live.aggregator.directory.roster("news").active
        assert active == [True, False, True, False, True, True]


def test_a_user_who_is_erased_leaves_a_seat_and_no_name(stores: Stores) -> None:
    with serve(stores) as live:
        operator, app = begin(live), live.client("app")
        operator.open_round("news", 1, wait=0)
        live.work()
        assert app.report("news", 1, {"user-2": 1.0}) == []
        assert operator.withdraw("news", ["user-1"]) == 1
        # One left before, which leaves a name to forget; the next time there is none.
        assert operator.withdraw("news", ["user-1", "user-2", "nobody"], erase=True) == 2
        assert operator.withdraw("news", ["user-1", "user-2", "nobody"], erase=True) == 0
        for reload in (False, True):
            if reload:
                live.aggregator.directory._rosters.drop("news")
            reports = {"user-1": 1.0, "user-2": 1.0, "(erased 1)": 1.0}
            assert {r.reason for r in app.report("news", 1, reports)} == {"unknown-user"}
            with pytest.raises(ServiceError, match="no part in this round"):
                app.assignment("news", "user-2")
            shown = app.assignments("news")
            assert set(shown) == {"user-0", "user-3", "user-4", "user-5"}
        with pytest.raises(ServiceError, match="too few free seats"):
            operator.enrol("news", ["user-1"])  # as a new user
        operator.close_round("news", 1)
        with live.aggregator.database.read() as connection:
            rows = connection.exec_driver_sql("SELECT user_id FROM seats ORDER BY seat").all()
        assert [row[0] for row in rows[:4]] == ["user-0", "(erased 1)", "(erased 2)", "user-3"]


def test_revoking_a_token_again_changes_nothing(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        admin = live.client("admin")
        admin.token("phone", "app", campaigns=["news"])
        admin.revoke("phone")
        admin.revoke("phone")
        assert "phone" not in live.aggregator.access.roles()


@pytest.mark.parametrize("size", [0, -1, 10_001])
def test_a_batch_has_at_least_one_report_and_at_most_what_the_service_takes(size: int) -> None:
    with (
        Client("http://127.0.0.1:9", "token") as client,
        pytest.raises(
            InvalidInputError, match=f"batch_size must be between 1 and 10000; got {size}"
        ),
    ):
        client.report("news", 1, {"user-0": 1.0}, batch_size=size)


def test_threat_21_no_metric_and_no_log_line_moves_with_a_report(
    sqlite_stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="shoal.service"), serve(sqlite_stores) as live:
        operator, app = begin(live), live.client("app")
        operator.open_round("news", 1, wait=0)
        live.work()
        distinct_traces = {traces(live, caplog)}
        for user in (*users(4), "nobody"):
            app.report("news", 1, {user: 1.0})
            distinct_traces.add(traces(live, caplog))
        assert len(distinct_traces) == 1
        operator.close_round("news", 1)
        distinct_traces.add(traces(live, caplog))  # not before the learner has it on record
        assert len(distinct_traces) == 1
        live.work()
        after_release = traces(live, caplog)
        assert "shoal_report_requests_total 5.0" in after_release
        assert 'shoal_refused_reports_total{reason="unknown-user"} 1.0' in after_release
        app.report("news", 1, {"user-5": 1.0})  # late, and held back as well
        assert traces(live, caplog) == after_release


def traces(live: Live, caplog: pytest.LogCaptureFixture) -> tuple[str, ...]:
    """What the metrics and the log say about reports."""
    logged = [record.message for record in caplog.records if record.name == "shoal.service"]
    return tuple(x for x in [*live.metrics.text().decode().splitlines(), *logged] if "report" in x)
