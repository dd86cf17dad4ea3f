"""Every page and every form against every role, and against other sites."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from fastapi.routing import APIRoute
from tests.support.live import Live, serve
from tests.support.stores import Stores
from tests.support.visits import CAMPAIGN, FORM, Visitor, create

from shoal.service import application

PLACE = f"/campaigns/{CAMPAIGN}"
PAGES = {
    "/": {"operator", "analyst"},
    PLACE: {"operator", "analyst"},
    f"{PLACE}/anonymity": {"operator", "analyst"},
    f"{PLACE}/charts/reward.csv": {"operator", "analyst"},
    "/guide": {"admin", "operator", "analyst"},
    f"{PLACE}/users": {"operator"},
    f"{PLACE}/arms": {"operator"},
    "/new-campaign": {"operator"},
    "/tokens": {"admin", "operator"},
    "/audit": {"admin", "operator"},
}
FORMS = [
    f"{PLACE}/open", f"{PLACE}/close", f"{PLACE}/check", f"{PLACE}/users", f"{PLACE}/arms",
    f"{PLACE}/arms/retire", f"{PLACE}/users/leave", f"{PLACE}/archive", f"{PLACE}/delete",
    f"{PLACE}/abandon", f"{PLACE}/notes", f"{PLACE}/notes/remove", "/new-campaign",
    "/new-campaign/check",
]  # fmt: skip
ADMIN_FORMS = ["/tokens", "/tokens/revoke", "/tokens/rotate"]
PUBLIC = {"/login", "/logout", "/static/{file}"}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("stores")
    stores = Stores(f"sqlite:///{folder}/aggregator.db", f"sqlite:///{folder}/learner.db")
    with serve(stores) as running:
        create(running)
        yield running


def test_every_page_and_form_is_in_the_tables() -> None:
    paths = {
        route.path
        for part in application.PAGES
        for route in part.router.routes
        if isinstance(route, APIRoute)
    }
    tables = {path.replace(CAMPAIGN, "{name}") for path in (*PAGES, *FORMS, *ADMIN_FORMS)}
    assert {path.replace("{chart}", "reward") for path in paths} == tables | PUBLIC


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_to_its_roles_alone(live: Live, path: str) -> None:
    for role in ("admin", "operator", "analyst"):
        with Visitor(live, role) as visitor:
            answer = visitor.http.get(path)
            if (role, path) == ("admin", "/"):  # begins with the tokens
                assert answer.headers["location"] == "/tokens"
                continue
            assert answer.status_code == (200 if role in PAGES[path] else 403)
            policy = answer.headers["content-security-policy"]
            assert "script-src 'self';" in policy
            assert "unsafe" not in policy
            assert answer.headers["cache-control"] == "no-store"
    with Visitor(live) as nobody:
        assert nobody.http.get(path).headers["location"].startswith("/login")


@pytest.mark.parametrize("path", FORMS + ADMIN_FORMS)
def test_a_form_is_taken_from_its_roles_own_page_alone(live: Live, path: str) -> None:
    may, may_not = ("operator", "admin") if path in FORMS else ("admin", "operator")
    for role in ("analyst", may_not):
        with Visitor(live, role) as visitor:
            assert visitor.send(path, name="mine", role="operator").status_code == 403
    with Visitor(live) as nobody:
        assert nobody.http.post(path, data={"csrf": "x"}).headers["location"] == "/login"
    with Visitor(live, may) as operator:
        right = operator.csrf()
        for headers, csrf in (
            ({}, ""),
            ({}, "x" * 64),
            ({"Origin": "https://evil.example"}, right),
            ({"Origin": "null"}, right),
            ({"Sec-Fetch-Site": "cross-site"}, right),
            ({"Sec-Fetch-Site": "same-site"}, right),
        ):
            answer = operator.http.post(path, data={"csrf": csrf}, headers=headers)
            assert answer.status_code == 403, (headers, csrf)
            assert "must be sent from a page of this site" in answer.text
    assert live.aggregator.rounds.latest(CAMPAIGN) is None
    assert set(live.aggregator.access.roles()) == set(live.tokens)


def test_a_token_of_another_campaign_opens_nothing_of_this_one(live: Live) -> None:
    """Not even its name shows, on any page or in any form."""
    for role in ("operator", "analyst"):
        name = f"other-{role}"
        issued = live.aggregator.access.issue(name, role, campaigns=["other"])
        live.tokens[name] = issued
        with Visitor(live, name) as visitor:
            for path in PAGES:
                answer = visitor.http.get(path)
                inside = role in PAGES[path] and not path.startswith(PLACE)
                assert answer.status_code == (200 if inside else 403), path
                assert CAMPAIGN not in answer.text.replace(path, ""), path
            for path in FORMS if role == "operator" else ():
                answer = visitor.send(path, **FORM | {"name": CAMPAIGN})
                if path == "/new-campaign/check":
                    assert answer.json()["name"].endswith("that your token is bound to")
                else:
                    assert answer.status_code == (403 if path.startswith(PLACE) else 422), path
        live.aggregator.access.revoke(live.tokens.pop(name).split(".")[1])
    assert live.aggregator.directory.names() == [CAMPAIGN]


def test_one_sessions_forms_are_not_anothers(live: Live) -> None:
    with Visitor(live, "admin") as one, Visitor(live, "admin") as other:
        answer = one.http.post("/tokens", data={"csrf": other.csrf(), "name": "a", "role": "app"})
        assert answer.status_code == 403


def test_another_site_can_not_log_anyone_in(live: Live) -> None:
    answer = httpx.post(
        f"{live.url}/login", data={"token": live.tokens["analyst"]},
        headers={"Origin": "https://evil.example"},
    )  # fmt: skip
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_analysts_see_no_actions(live: Live) -> None:
    with Visitor(live, "analyst") as analyst:
        for path in ("/", PLACE, f"{PLACE}/anonymity"):
            page = analyst.http.get(path).text
            assert page.count("<form") == 1, path  # to log out
            assert 'action="/logout"' in page


def test_pages_that_are_not_there_are_pages(live: Live) -> None:
    with Visitor(live, "operator") as operator:
        for path in ("/campaigns/none", "/campaigns/none/anonymity", "/campaigns/.bad"):
            answer = operator.http.get(path)
            assert answer.status_code == 404
            assert answer.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("path", ["/campaigns", "/foo", "/v2/campaigns"])
def test_a_wrong_address_is_a_page_for_browsers_and_a_problem_for_programs(
    live: Live, path: str
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = httpx.get(live.url + path, headers=browser)
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "Back to the campaigns" in page.text
    problem = httpx.get(live.url + path)
    assert problem.status_code == 404
    assert problem.headers["content-type"] == "application/problem+json"


def test_files_are_compressed_and_kept_by_their_content(live: Live) -> None:
    for name in ("shoal.css", "shoal.js", "forms.js", "charts.js", "favicon.svg"):
        answer = httpx.get(f"{live.url}/static/{name}")
        assert answer.headers["content-encoding"] == "gzip"
        assert "immutable" in answer.headers["cache-control"]
        tag = {"If-None-Match": answer.headers["etag"]}
        assert httpx.get(f"{live.url}/static/{name}", headers=tag).status_code == 304
    assert httpx.get(f"{live.url}/static/../pages.py").status_code == 404
