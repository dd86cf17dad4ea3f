from __future__ import annotations

import httpx
import pytest
from tests.support.live import Live, serve
from tests.support.stores import Stores

from shoal.errors import InvalidInputError
from shoal.service.application import create_app

ALL = {"admin", "operator", "app", "analyst", "learner", "monitor"}
BOUND = {"operator", "app", "analyst", "learner"}
CAMPAIGN = "/v1/campaigns/{name}"
ROUND = "/v1/campaigns/{name}/rounds/{number}"
LEARNER_ROUND = "/v1/learner/campaigns/{name}/rounds/{number}"

WHO_MAY: dict[tuple[str, str], set[str]] = {
    ("GET", "/metrics"): {"operator", "monitor"},
    ("GET", "/v1/tokens"): {"admin", "operator"},
    ("PUT", "/v1/tokens/{token}"): {"admin"},
    ("POST", "/v1/tokens/{token}/rotate"): {"admin"},
    ("DELETE", "/v1/tokens/{token}"): {"admin"},
    ("GET", "/v1/audit"): {"admin", "operator"},
    ("GET", "/v1/campaigns"): {"operator", "analyst"},
    ("PUT", CAMPAIGN): {"operator"},
    ("GET", CAMPAIGN): BOUND,
    ("DELETE", CAMPAIGN): {"operator"},
    ("POST", f"{CAMPAIGN}/archive"): {"operator"},
    ("POST", f"{CAMPAIGN}/users"): {"operator"},
    ("POST", f"{CAMPAIGN}/abandon"): {"operator"},
    ("GET", f"{CAMPAIGN}/capability-key"): {"admin"},
    ("PUT", f"{CAMPAIGN}/arms/{{arm}}"): {"operator"},
    ("DELETE", f"{CAMPAIGN}/arms/{{arm}}"): {"operator"},
    ("GET", f"{CAMPAIGN}/progress"): {"operator", "analyst"},
    ("GET", f"{CAMPAIGN}/assignments"): {"app"},
    ("GET", f"{CAMPAIGN}/assignments/{{user}}"): {"app"},
    ("PUT", ROUND): {"operator"},
    ("GET", ROUND): BOUND,
    ("GET", f"{ROUND}/assignments"): {"app"},
    ("POST", f"{ROUND}/close"): {"operator"},
    ("POST", f"{ROUND}/reports"): {"app"},
    ("GET", f"{ROUND}/eligible"): {"learner"},
    ("GET", f"{ROUND}/release"): {"analyst", "learner"},
    ("POST", "/v1/learner/work"): {"learner"},
    ("GET", f"{LEARNER_ROUND}/release"): {"learner"},
    ("PUT", f"{LEARNER_ROUND}/plan"): {"learner"},
}
PUBLIC = {("GET", "/health"), ("GET", "/ready")}
MAKERS = {
    "/v1/tokens/{token}": {"role": "app", "campaigns": ["nothing"]},
    "/v1/tokens/{token}/rotate": {"grace_hours": 1},
    "/v1/learner/work": {"campaigns": {}},
    f"{CAMPAIGN}/abandon": {"through": 1},
}


def call(live: Live, method: str, path: str, token: str | None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    address = path.format(name="nothing", token="new", number=1, user="nobody", arm="none")
    body = MAKERS.get(path) if method in ("PUT", "POST") else None
    return httpx.request(method, live.url + address, headers=headers, json=body, timeout=120)


def test_threat_20_token_confusion(sqlite_stores: Stores) -> None:
    """Every route, every role: only the roles in the table get past the door."""
    with serve(sqlite_stores) as live:
        for (method, path), allowed in WHO_MAY.items():
            for role in sorted(ALL):
                answer = call(live, method, path, live.tokens[role])
                where = f"{role} {method} {path}: {answer.status_code}"
                if role in allowed:
                    assert answer.status_code not in (401, 403, 500), where
                else:
                    assert answer.status_code == 403, where
                    assert answer.json()["type"] == "urn:shoal:problem:wrong-role"
            for token in (None, "x", "shoal.app.", f"shoal.operator.{'a' * 43}",
                          live.tokens["app"].replace(".app.", ".operator."),
                          live.tokens["operator"][:-1], live.tokens["operator"] + "a"):  # fmt: skip
                answer = call(live, method, path, token)
                assert answer.status_code == 401, f"{token} {method} {path}"
                assert answer.json()["type"] == "urn:shoal:problem:unauthenticated"
                assert answer.headers["www-authenticate"] == "Bearer"


def test_threat_23_a_token_of_another_campaign_is_refused_everywhere(stores: Stores) -> None:
    """Every route of a campaign, every role: a token of another one learns not even its name."""
    with serve(stores) as live:
        live.client("operator").create_campaign("there", arms=["a", "b"], min_group_size=2, seats=4)
        admin, tokens = live.client("admin"), {}
        for role in sorted(BOUND):
            tokens[role] = admin.token(f"other-{role}", role, campaigns=["other"])
            live.tokens[f"other-{role}"] = tokens[role]
        for (method, path), allowed in WHO_MAY.items():
            if "{name}" not in path:
                continue
            for role in sorted(allowed & BOUND):
                for name in ("there", "not-there"):
                    answer = call(live, method, path.replace("{name}", name), tokens[role])
                    where = f"{role} {method} {path}: {answer.status_code}"
                    assert answer.status_code == 403, where
                    assert answer.json()["type"] == "urn:shoal:problem:wrong-campaign", where
        assert live.client("other-analyst").campaigns() == []
        work = httpx.post(
            f"{live.url}/v1/learner/work", headers={"Authorization": f"Bearer {tokens['learner']}"},
            json={"campaigns": {"there": {"planned": 0, "learnt": 0}}},
        )  # fmt: skip
        assert work.json()["type"] == "urn:shoal:problem:wrong-campaign"


def test_every_route_is_in_the_table(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        schema = create_app(live.aggregator).openapi()
        routes = {(m.upper(), path) for path, item in schema["paths"].items() for m in item}
    assert routes == set(WHO_MAY) | PUBLIC


def test_tokens_are_stored_as_hashes_replaced_and_revoked_at_once(stores: Stores) -> None:
    with serve(stores) as live:
        admin = live.client("admin")
        first = admin.token("phone", "app", campaigns=["*"])
        second = admin.token("phone", "app", campaigns=["*"])
        path = "/v1/campaigns/{name}/assignments"
        assert call(live, "GET", path, first).status_code == 401
        assert call(live, "GET", path, second).status_code == 404
        admin.revoke("phone")
        assert call(live, "GET", path, second).status_code == 401
        with live.aggregator.database.read() as connection:
            rows = connection.exec_driver_sql("SELECT name, role, digest FROM tokens").all()
        text = repr(rows)
        assert not any(token.rsplit(".", 1)[1] in text for token in live.tokens.values())


def test_a_token_without_a_secret_is_never_let_in(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        for token in ("", "shoal.learner.", "shoal.learner.short", f"shoal.app.{'a' * 43}"):
            with pytest.raises(InvalidInputError, match="token must be"):
                live.aggregator.access.adopt("learner", "learner", token)


def test_health_and_readiness_need_no_token(stores: Stores) -> None:
    with serve(stores) as live:
        assert call(live, "GET", "/health", None).json() == {"ok": True}
        ready = call(live, "GET", "/ready", None).json()
        assert ready == {"ok": True, "store": True, "schedules": True, "learner": True}


@pytest.mark.parametrize("path", ["/docs", "/v2/campaigns", "/v1/campaigns/a/b/c/d"])
def test_unknown_addresses_are_problems(sqlite_stores: Stores, path: str) -> None:
    with serve(sqlite_stores) as live:
        answer = call(live, "GET", path, live.tokens["operator"])
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:shoal:problem:not-found")
