from __future__ import annotations

import io
import json
from typing import Any

import httpx
import numpy as np
import polars as pl
import pytest
from tests.support.live import learning, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import ServiceError

DEFINITION: dict[str, Any] = {
    "arms": ["red", "green", "blue"], "min_group_size": 4, "seats": 40, "horizon": 400,
    "policy": "explore-then-commit", "options": {"exploration": 0.1},
}  # fmt: skip


@pytest.mark.slow
def test_a_campaign_runs_over_http_and_learns_each_users_best_arm(stores: Stores) -> None:
    best = np.arange(40) % 3
    with serve(stores) as live, learning(live):
        operator, app = live.client("operator"), live.client("app")
        operator.create_campaign("news", **{**DEFINITION, "horizon": 150})
        assert operator.enrol("news", users(40)) == 40
        hits = []
        for number in range(1, 33):  # it explores in the first 30, each arm once
            assert operator.open_round("news", number).state == "open"
            arms = app.assignments("news")
            assert len(arms) == 40
            rewards = {
                user: float(arms[user] == DEFINITION["arms"][best[i]])
                for i, user in enumerate(users(40))
            }
            assert app.report("news", number, rewards) == []
            hits.append(sum(rewards.values()))
            assert operator.close_round("news", number).state == "released"
        release = live.client("analyst").release("news", 1)
        assert all(total.reporters >= 4 for total in release.totals)
        assert hits[-1] == 40


def test_a_new_campaign_has_the_tuned_options_that_it_does_not_name(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        operator = live.client("operator")
        plain = {**DEFINITION, "options": {}}
        first = operator.create_campaign("tuned", **plain)
        assert first["definition"]["options"] == {"exploration": 0.18}
        assert operator.create_campaign("tuned", **plain) == first
        named = operator.create_campaign("named", **DEFINITION)
        assert named["definition"]["options"] == DEFINITION["options"]


def test_creation_and_opening_are_idempotent_and_campaigns_can_not_change(
    sqlite_stores: Stores,
) -> None:
    with serve(sqlite_stores) as live:
        operator = live.client("operator")
        first = operator.create_campaign("news", **DEFINITION)
        assert operator.create_campaign("news", **DEFINITION) == first
        with pytest.raises(ServiceError) as caught:
            operator.create_campaign("news", **{**DEFINITION, "min_group_size": 3})
        assert (caught.value.name, caught.value.status) == ("campaign-exists", 409)
        operator.enrol("news", users(40))
        assert operator.enrol("news", users(40)) == 0
        with pytest.raises(ServiceError) as caught:
            operator.enrol("news", ["one-too-many"])
        assert caught.value.name == "campaign-full"
        assert operator.open_round("news", 1, wait=0).state == "wanted"
        assert operator.open_round("news", 1, wait=0).state == "wanted"
        with pytest.raises(ServiceError) as caught:
            operator.open_round("news", 2, wait=0)
        assert caught.value.name == "round-order"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"policy": "explore-then-comit"}, "did you mean"),
        ({"policy": "ucb"}, "policy must be anonymous"),
        ({"policy": "best-arm"}, "policy must be anonymous"),
        ({"options": {"speed": 3}}, "must be a known name"),
        ({"options": {"exploration": "much"}}, "exploration must be a positive number"),
        ({"min_group_size": 40}, "n_users must be greater than min_group_size=40"),
        ({"min_group_size": 41}, " must be at most seats; got 41 + 0 and 40 seats"),
        ({"min_group_size": 4.5}, "min_group_size must be a valid integer; got 4.5"),
        ({"min_group_size": "5"}, "min_group_size must be a valid integer; got '5'"),
        ({"seats": 0}, "seats must be greater than or equal to 1; got 0"),
        ({"holdout": 0.01}, "seats inside and outside; got 0 inside and 40 outside"),
        ({"arms": ["a", ".."]}, 'characters in one line, but not "." or ".."; got \'..\''),
        ({"policy": "os:path"}, "policy must be the name of an installed policy; got 'os:path'"),
        ({"horizon": None}, "needs a horizon"),
        ({"arms": ["red", "red"]}, " arms must have different names; got 'red' twice"),
        ({"arms": []}, "arms must have at least 1 item after validation, not 0."),
        ({"C": 4}, "C: Extra inputs are not permitted"),
        ({"schedule": {"open_every_hours": 1, "close_after_hours": 2}}, "at most open_every_hours"),
    ],
)
def test_a_campaign_that_can_not_work_is_refused_with_the_rule(
    sqlite_stores: Stores, change: dict[str, object], rule: str
) -> None:
    with serve(sqlite_stores) as live:
        with pytest.raises(ServiceError) as caught:
            live.client("operator").create_campaign("news", **{**DEFINITION, **change})
        assert (caught.value.name, caught.value.status) == ("invalid-input", 422)
        assert rule in str(caught.value)
        assert "Value error" not in str(caught.value)


def test_a_user_that_can_not_be_is_refused_with_the_rule(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        operator = live.client("operator")
        operator.create_campaign("news", **DEFINITION)
        with pytest.raises(ServiceError) as caught:
            operator.enrol("news", ["a b", "ann", *["."] * 5])
        rule = 'must be 1 to 128 ASCII letters, digits or ._~@:+=-, but not "." or ".."'
        assert str(caught.value).endswith(
            f"join.0 {rule}; got 'a b'; join.2 {rule}; got '.'; join.3 {rule}; got '.'; and 3 more."
        )
        with pytest.raises(ServiceError, match=r"ASCII letters, .*; got 'zoé'"):
            operator.enrol("news", ["zoé"])


def test_erased_users_are_in_no_list_of_assignments(stores: Stores) -> None:
    with serve(stores) as live:
        operator, app = live.client("operator"), live.client("app")
        operator.create_campaign("news", **DEFINITION)
        operator.enrol("news", users(30))
        operator.open_round("news", 1, wait=0)
        live.work()
        operator.withdraw("news", ["user-0", "user-7"], erase=True)
        present = set(users(30)) - {"user-0", "user-7"}
        assert set(app.assignments("news")) == present
        headers = {"Authorization": f"Bearer {live.tokens['app']}"}
        with httpx.Client(base_url=live.url, headers=headers) as raw:
            path = "/v1/campaigns/news/assignments"
            first = raw.get(path, params={"limit": 7}).json()
            assert (set(first["assignments"]), first["next"]) == (set(users(9)) & present, 9)
            lines = raw.get(path, headers={"Accept": "application/x-ndjson"}).text.splitlines()
            assert {json.loads(line)["user"] for line in lines} == present
            arrow = raw.get(path, headers={"Accept": "application/vnd.apache.arrow.stream"})
            assert set(pl.read_ipc_stream(arrow.content)["user"]) == present


def test_assignments_come_one_by_one_in_pages_as_ndjson_and_as_arrow(stores: Stores) -> None:
    with serve(stores) as live:
        operator, app = live.client("operator"), live.client("app")
        operator.create_campaign("news", **DEFINITION)
        operator.enrol("news", users(30))
        operator.withdraw("news", ["user-7"])
        operator.open_round("news", 1, wait=0)
        live.work()
        everyone = app.assignments("news")
        assert set(everyone) == set(users(30)) - {"user-7"}
        assert {app.assignment("news", user) for user in users(7)} == {
            (1, everyone[user]) for user in users(7)
        }
        with pytest.raises(ServiceError) as caught:
            app.assignment("news", "user-7")
        assert caught.value.name == "unknown-user"
        headers = {"Authorization": f"Bearer {live.tokens['app']}"}
        with httpx.Client(base_url=live.url, headers=headers) as raw:
            path = "/v1/campaigns/news/assignments"
            page = raw.get(path, params={"limit": 20}).json()
            rest = raw.get(path, params={"limit": 20, "after": page["next"]}).json()
            assert page["assignments"] | rest["assignments"] == everyone
            assert (len(page["assignments"]), rest["next"]) == (20, None)
            lines = raw.get(path, headers={"Accept": "application/x-ndjson"}).text.splitlines()
            assert {line["user"]: line["arm"] for line in map(json.loads, lines)} == everyone
            arrow = "application/vnd.apache.arrow.stream"
            frame = pl.read_ipc_stream(io.BytesIO(raw.get(path, headers={"Accept": arrow}).content))
            assert dict(frame.iter_rows()) == everyone
            assert raw.get(path, headers={"Accept": "image/png"}).status_code == 406


def test_users_join_and_leave_between_rounds_and_keep_their_seats(stores: Stores) -> None:
    with serve(stores) as live:
        operator, app = live.client("operator"), live.client("app")
        operator.create_campaign("news", **{**DEFINITION, "policy": "random", "options": {}})
        operator.enrol("news", users(10))
        operator.open_round("news", 1, wait=0)
        live.work()
        operator.enrol("news", ["late"])
        assert [r.reason for r in app.report("news", 1, {"late": 1.0})] == ["unknown-user"]
        operator.close_round("news", 1)
        operator.withdraw("news", ["user-3"])
        operator.open_round("news", 2, wait=0)
        live.work()
        assert set(app.assignments("news")) == {*users(10), "late"} - {"user-3"}
        operator.close_round("news", 2)
        assert operator.enrol("news", ["user-3"]) == 1
        assert live.aggregator.directory.roster("news").seats["user-3"] == 3
        assert operator.campaign("news")["users"] == 11


def test_a_campaign_ends_with_its_horizon(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live, learning(live):
        operator = live.client("operator")
        operator.create_campaign("brief", **{**DEFINITION, "horizon": 2})
        operator.enrol("brief", users(40))
        for number in (1, 2):
            operator.open_round("brief", number)
            operator.close_round("brief", number)
        with pytest.raises(ServiceError) as caught:
            operator.open_round("brief", 3)
        assert caught.value.name == "campaign-over"
