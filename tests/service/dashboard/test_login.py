from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from tests.support.live import Live, serve
from tests.support.service import TestClock
from tests.support.stores import Stores
from tests.support.visits import CAMPAIGN, Visitor

from shoal.service.dashboard import login
from shoal.service.dashboard.sessions import LIFETIME, MAX_FAILURES, MINUTE


@pytest.fixture
def clock() -> TestClock:
    return TestClock()


@pytest.fixture
def live(
    sqlite_stores: Stores, clock: TestClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Live]:
    monkeypatch.setattr(login, "PAUSE", 0.0)
    with serve(sqlite_stores, clock=clock) as running:
        yield running


def test_a_session_is_a_cookie_that_scripts_and_other_sites_can_not_use(live: Live) -> None:
    answer = httpx.post(f"{live.url}/login", data={"token": live.tokens["analyst"]})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie  # plain HTTP
    assert live.tokens["analyst"].lower() not in cookie
    proxied = httpx.post(
        f"{live.url}/login", data={"token": live.tokens["analyst"]},
        headers={"X-Forwarded-Proto": "https"},
    )  # fmt: skip
    assert "secure" in proxied.headers["set-cookie"].lower()


@pytest.mark.parametrize("token", ["", "x", "shoal.operator.aaaa", f"shoal.operator.{'a' * 43}"])
def test_a_wrong_token_is_refused(live: Live, token: str) -> None:
    with Visitor(live) as nobody:
        answer = nobody.http.post("/login", data={"token": token})
        assert answer.status_code == 401
        assert login.WRONG in answer.text
        assert not nobody.http.cookies
        assert nobody.http.get("/").headers["location"] == "/login"


def test_a_form_that_no_login_needs_is_not_read(live: Live) -> None:
    for body in (b"token=" + b"x" * login.MAX_FORM_BYTES, iter([b"token=x"])):
        answer = httpx.post(f"{live.url}/login", content=body)
        assert answer.status_code == 413


@pytest.mark.parametrize("role", ["app", "learner"])
def test_roles_without_pages_can_not_log_in(live: Live, role: str) -> None:
    answer = httpx.post(f"{live.url}/login", data={"token": live.tokens[role]})
    assert answer.status_code == 401


def test_guessing_is_slowed_down_by_address_and_for_a_minute(live: Live, clock: TestClock) -> None:
    with Visitor(live) as nobody:
        for _ in range(MAX_FAILURES):
            assert nobody.http.post("/login", data={"token": "x"}).status_code == 401
        right = {"token": live.tokens["operator"]}
        refused = nobody.http.post("/login", data=right)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
        elsewhere = nobody.http.post("/login", data=right, headers={"X-Forwarded-For": "192.0.2.7"})
        assert elsewhere.status_code == 303
        clock.now += MINUTE
        assert nobody.http.post("/login", data=right).status_code == 303


def test_logging_out_ends_the_session_not_only_the_cookie(live: Live) -> None:
    with Visitor(live, "analyst") as analyst:
        cookies = dict(analyst.http.cookies)
        assert analyst.send("/logout").headers["location"] == "/login"
        assert httpx.get(live.url, cookies=cookies).headers["location"] == "/login"


def test_a_session_expires(live: Live, clock: TestClock) -> None:
    with Visitor(live, "analyst") as analyst:
        clock.now += LIFETIME - 1
        assert analyst.http.get("/").status_code == 200
        clock.now += 1
        assert analyst.http.get("/").headers["location"] == "/login"


@pytest.mark.parametrize("again", [False, True])
def test_a_revoked_or_replaced_token_ends_its_sessions_at_once(live: Live, again: bool) -> None:
    with Visitor(live, "analyst") as analyst:
        assert analyst.http.get("/").status_code == 200
        if again:
            live.aggregator.access.issue("analyst", "analyst")
        else:
            live.aggregator.access.revoke("analyst")
        assert analyst.http.get("/").headers["location"] == "/login"
        assert analyst.http.get(f"/v1/campaigns/{CAMPAIGN}/progress").status_code == 401


def test_the_store_has_no_session_that_could_be_used(live: Live) -> None:
    with Visitor(live, "operator") as operator:
        (secret,) = operator.http.cookies.values()
    with live.aggregator.database.read() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM sessions").all()
    assert len(rows) == 1
    assert secret not in repr(rows)


def test_who_is_logged_in_already_goes_on_at_once(live: Live) -> None:
    with Visitor(live, "analyst") as analyst:
        answer = analyst.http.get("/login?next=/campaigns/news")
        assert answer.headers["location"] == "/campaigns/news"


def test_after_a_form_that_came_too_late_one_is_back_at_its_page(live: Live) -> None:
    with Visitor(live) as nobody:
        sent = nobody.http.post("/tokens", headers={"Referer": f"{live.url}/tokens"})
        assert sent.headers["location"] == "/login?next=/tokens"


def test_after_logging_in_one_is_where_one_wanted_to_be(live: Live) -> None:
    with Visitor(live) as nobody:
        asked = nobody.http.get("/campaigns/news")
        assert asked.headers["location"] == "/login?next=/campaigns/news"
        assert 'value="/campaigns/news"' in nobody.http.get(asked.headers["location"]).text
        token = live.tokens["analyst"]
        for following, place in (
            ("/campaigns/news", "/campaigns/news"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
        ):
            answer = nobody.http.post("/login", data={"token": token, "next": following})
            assert answer.headers["location"] == place
