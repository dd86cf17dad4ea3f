from __future__ import annotations

import re
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import httpx
import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.service.campaign import USER, WORD
from shoal.service.problems import REASONS

REPORTS = "/v1/campaigns/news/rounds/1/reports"


def prepare(live: Live) -> None:
    operator = live.client("operator")
    operator.create_campaign(
        "news", arms=["a", "b"], min_group_size=2, seats=8, policy="explore-then-commit", horizon=99
    )
    operator.enrol("news", users(8))
    operator.open_round("news", 1, wait=0)
    live.work()


def send(live: Live, body: bytes, *, path: str = REPORTS, role: str = "app") -> httpx.Response:
    headers = {"Authorization": f"Bearer {live.tokens[role]}", "Content-Type": "application/json"}
    return httpx.post(live.url + path, content=body, headers=headers, timeout=120)


def name(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    reason = REASONS[body["type"].removeprefix("urn:shoal:problem:")]
    assert (body["status"], body["title"]) == (answer.status_code, reason.title)
    assert "Traceback" not in answer.text
    return reason.name


def one(reward: str) -> bytes:
    return b'{"reports": [{"user": "user-0", "reward": ' + reward.encode() + b"}]}"


@contextmanager
def started(folder: Path) -> Iterator[Live]:
    stores = Stores(f"sqlite:///{folder}/aggregator.db", f"sqlite:///{folder}/learner.db")
    with serve(stores, body_seconds=3.0, max_body_bytes=100_000) as running:
        prepare(running)
        yield running


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A service with an open round, which stays open."""
    with started(tmp_path_factory.mktemp("stores")) as running:
        yield running


@pytest.fixture
def closing(tmp_path: Path) -> Iterator[Live]:
    """A service with an open round that a test may close."""
    with started(tmp_path) as running:
        yield running


def test_threat_12_strict_parser(closing: Live) -> None:
    """NaN, infinities, huge numbers, booleans, strings and null never reach a sum."""
    live = closing
    malformed = [
        "NaN",
        "Infinity",
        "-Infinity",
        "nan",
        "1e999",
        "0x1",
        "01",
        "1.",
        ".5",
        "+1",
        "1_0",
    ]
    wrong = ["true", "false", '"0.5"', "null", "[0.5]", '{"a": 1}', '"NaN"', '""']
    outside = ["1e308", "-1", "2", "1.0000001", "-1e-300", str(10**30)]
    for reward in malformed:
        assert name(send(live, one(reward))) in ("malformed-body", "invalid-input"), reward
    for reward in wrong:
        assert name(send(live, one(reward))) == "invalid-input", reward
    for reward in outside:
        answer = send(live, one(reward)).json()
        assert answer == {
            "refused": [{"index": 0, "type": "urn:shoal:problem:reward-out-of-range"}]
        }, reward
    assert send(live, one("-0")).json() == {"refused": []}  # the first to count
    rest = ",".join(f'{{"user":"user-{i}","reward":0}}' for i in range(1, 8))
    assert send(live, f'{{"reports":[{rest}]}}'.encode()).json() == {"refused": []}
    live.client("operator").close_round("news", 1)
    live.work()
    assert {t.total for t in live.client("analyst").release("news", 1).totals} == {0}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "malformed-body"),
        (b"{", "malformed-body"),
        (b"\xff\xfe", "malformed-body"),
        (b"[]", "invalid-input"),
        (b"{}", "invalid-input"),
        (b'{"reports": {}}', "invalid-input"),
        (b'{"reports": [{"user": "user-0"}]}', "invalid-input"),
        (b'{"reports": [{"user": 5, "reward": 1}]}', "invalid-input"),
        (b'{"reports": [{"user": "user-0", "reward": 1, "arm": 2}]}', "invalid-input"),
        (b'{"reports": [], "more": 1}', "invalid-input"),
        (b"[" * 50_000, "invalid-input"),
    ],
)
def test_a_body_that_is_no_batch_is_a_problem(live: Live, body: bytes, problem: str) -> None:
    assert name(send(live, body)) == problem
    assert send(live, one("1")).status_code == 200  # the service goes on


def test_the_first_report_of_a_wrong_type_is_named_by_its_index(live: Live) -> None:
    right, wrong = '{"user": "user-0", "reward": 1}', '{"user": "user-1", "reward": "secret-1"}'
    answer = send(live, f'{{"reports": [{right}, {wrong}, {wrong}]}}'.encode())
    assert answer.status_code == 422
    assert answer.json()["detail"].endswith("The first that is not has index 1.")
    assert "secret" not in answer.text


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_json_that_is_not_called_json_is_a_problem_of_its_own(live: Live, kind: str | None) -> None:
    headers = {"Authorization": f"Bearer {live.tokens['operator']}"}
    headers |= {"Content-Type": kind} if kind else {}
    for path, method in (("/v1/campaigns/news/users", "POST"), ("/v1/campaigns/new", "PUT")):
        answer = httpx.request(method, live.url + path, content=b"{}", headers=headers)
        assert (name(answer), answer.status_code) == ("not-json", 415)
    assert send(live, b"{}", path="/v1/campaigns/news/users", role="operator").status_code == 200


@pytest.mark.parametrize("dots", [".", ".."])
def test_names_that_would_vanish_from_an_address_are_refused(live: Live, dots: str) -> None:
    join = f'{{"join": ["{dots}"]}}'.encode()
    assert name(send(live, join, path="/v1/campaigns/news/users", role="operator")) == (
        "invalid-input"
    )
    body = {"arms": ["a", dots], "min_group_size": 2, "seats": 8}
    headers = {"Authorization": f"Bearer {live.tokens['operator']}"}
    answer = httpx.put(live.url + "/v1/campaigns/new", json=body, headers=headers)
    assert name(answer) == "invalid-input"


@pytest.mark.parametrize("pattern", [USER, WORD])
def test_any_other_name_may_have_dots(pattern: str) -> None:
    for good in ("a", "a.", ".a", "...", "a.b", "..a", "-", "a" * 64):
        assert re.fullmatch(pattern, good), good
    for bad in ("", ".", "..", "a\n", "\n.", "a" * 129):
        assert not re.fullmatch(pattern, bad), bad


def test_unknown_things_late_reports_and_wrong_roles_are_problems(closing: Live) -> None:
    live = closing
    unknown = b'{"reports": [{"user": "nobody", "reward": 1}, {"user": "user-1", "reward": 1}]}'
    assert send(live, unknown).json()["refused"] == [
        {"index": 0, "type": "urn:shoal:problem:unknown-user"}
    ]
    for path, problem in (
        (REPORTS.replace("news", "none"), "unknown-campaign"),
        (REPORTS.replace("/1/", "/9/"), "unknown-round"),
        (REPORTS.replace("/1/", "/0/"), "invalid-input"),
        (REPORTS.replace("/1/", "/one/"), "invalid-input"),
        (REPORTS.replace("/1/", f"/{2**70}/"), "invalid-input"),
        (REPORTS.replace("news", "%00"), "invalid-input"),
    ):
        assert name(send(live, one("1"), path=path)) == problem, path
    assert name(send(live, one("1"), role="operator")) == "wrong-role"
    assert name(httpx.get(live.url + REPORTS)) == "method-not-allowed"
    live.client("operator").close_round("news", 1)
    late = send(live, one("1")).json()["refused"]
    assert late == [{"index": 0, "type": "urn:shoal:problem:late-report"}]


def test_an_oversized_body_is_refused_whether_its_length_is_declared_or_not(live: Live) -> None:
    big = one("1" + "0" * 200_000)
    assert name(send(live, big)) == "body-too-large"
    headers = {"Authorization": f"Bearer {live.tokens['app']}"}
    pieces = (b"x" * 50_000 for _ in range(4))
    answer = httpx.post(live.url + REPORTS, content=pieces, headers=headers, timeout=120)
    assert name(answer) == "body-too-large"
    operator = {"Authorization": f"Bearer {live.tokens['operator']}"}
    users_path = live.url + "/v1/campaigns/news/users"
    many = {"join": ["u" * 100] * 2000}
    assert name(httpx.post(users_path, json=many, headers=operator)) == "body-too-large"
    assert send(live, one("1")).status_code == 200


@pytest.mark.parametrize(
    "head",
    [
        b"\x16\x03\x01 hello",
        b"GET /health",
        b"GET / HTTP/1.1\r\nbad",
        b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 66_000,
    ],
    ids=["tls", "0.9", "header", "two-lengths", "long"],
)
def test_what_is_not_http_is_a_problem_and_the_service_goes_on(live: Live, head: bytes) -> None:
    with socket.create_connection(("127.0.0.1", int(live.url.rpartition(":")[2])), 20) as line:
        line.sendall(head + b"\r\n\r\n")
        answer = b"".join(iter(lambda: line.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer
    assert b"urn:shoal:problem:not-http" in answer
    assert send(live, one("1")).status_code == 200


@pytest.mark.parametrize("path", ["/v1/campaigns/", "/health/", "/login/"])
def test_no_address_leads_to_another_by_a_slash(live: Live, path: str) -> None:
    headers = {"Authorization": f"Bearer {live.tokens['operator']}"}
    answer = httpx.get(live.url + path, headers=headers)
    assert (name(answer), answer.status_code) == ("not-found", 404)


def test_a_plan_may_be_larger_than_other_bodies(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores, max_body_bytes=1000) as live:
        operator = live.client("operator")
        operator.create_campaign(
            "large", arms=["a", "b"], min_group_size=2, seats=200, policy="random"
        )
        operator.enrol("large", users(20))
        operator.open_round("large", 1, wait=0)
        live.work()
        assert operator.round("large", 1).state == "open"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/campaigns/other"),
        ("POST", "/v1/campaigns/news/users"),
        ("PUT", "/v1/tokens/mine"),
        ("POST", "/v1/learner/work"),
        ("PUT", "/v1/learner/campaigns/news/rounds/1/plan"),
        ("POST", REPORTS),
    ],
)
def test_no_body_is_read_of_whoever_has_no_token(live: Live, method: str, path: str) -> None:
    """The body never comes, and the answer is there long before it would be missed."""
    with socket.create_connection(("127.0.0.1", int(live.url.rpartition(":")[2])), 20) as line:
        line.sendall(
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            "Content-Length: 9999\r\n\r\n".encode()
        )
        assert line.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_a_slow_client_is_cut_off(live: Live) -> None:
    host, port = live.url.removeprefix("http://").split(":")
    head = (
        f"POST {REPORTS} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 500\r\n"
        f"Authorization: Bearer {live.tokens['app']}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        started = time.monotonic()
        connection.sendall(head.encode())
        connection.sendall(b'{"rep')
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
        assert time.monotonic() - started < 18  # it has 3 s; the default is 20
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"urn:shoal:problem:slow-body" in answer
    assert send(live, one("1")).status_code == 200


def test_a_fault_inside_is_a_problem_and_the_service_goes_on(
    live: Live, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(*arguments: object, **options: object) -> None:
        raise RuntimeError("reward 0.737373 of user-0")

    with monkeypatch.context() as patched:
        patched.setattr(live.aggregator.reports, "submit", break_down)
        answer = send(live, one("0.737373"))
    assert name(answer) == "internal-error"
    assert "737373" not in answer.text + caplog.text
    assert "fault RuntimeError at" in caplog.text
    assert send(live, one("1")).status_code == 200


def test_a_fault_of_the_database_names_the_line_of_the_service_that_asked(
    live: Live, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fill_disk(cursor: object, statement: str, parameters: object, context: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(live.aggregator.database.engine.dialect, "do_execute", fill_disk)
        assert name(send(live, one("1"))) == "store-away"
    assert re.search(r"fault OperationalError at report_queue\.py:\d+ < ", caplog.text)
    assert "disk is full" not in caplog.text  # a message may tell too much


@pytest.mark.parametrize("number", ["x", "1.0", "01", "+1", "1_0", "%201", "1e0", "٣"])
def test_a_round_has_one_address(live: Live, number: str) -> None:
    answer = send(live, one("1"), path=f"/v1/campaigns/news/rounds/{number}/reports")
    assert name(answer) == "invalid-input"
    got = repr(unquote(number))
    assert answer.json()["detail"] == f"number must be a whole number in digits; got {got}."


def test_a_refused_part_of_an_address_and_a_refused_choice_are_quoted(live: Live) -> None:
    admin, app = ({"Authorization": f"Bearer {live.tokens[role]}"} for role in ("admin", "app"))
    answer = httpx.get(f"{live.url}/v1/audit?after=zz", headers=admin)
    assert answer.json()["detail"].startswith("after must be a valid integer")
    assert answer.json()["detail"].endswith("; got 'zz'.")
    answer = httpx.get(f"{live.url}/v1/campaigns/news/assignments?after=zz", headers=app)
    assert answer.json()["detail"].endswith("; got 'zz'.")
    answer = httpx.put(f"{live.url}/v1/tokens/x", json={"role": "king"}, headers=admin)
    assert answer.json()["detail"].endswith("; got 'king'.")


def test_sent_values_do_not_come_back_in_a_problem(live: Live) -> None:
    headers = {"Authorization": f"Bearer {live.tokens['operator']}"}
    body = {"arms": ["a"], "min_group_size": "canary-737373", "seats": 8}
    answer = httpx.put(live.url + "/v1/campaigns/new", json=body, headers=headers)
    assert name(answer) == "invalid-input"
    assert "737373" not in answer.text
