"""Recordings of the service: a script over HTTP, with what each route answers.

Everyone's reward follows from who they are, so that both stores give the same. The clock stands
still, tokens are masked, and texts for people (titles and details of problems, descriptions, pages)
are not recorded. Both stores are compared with one file; on PostgreSQL, every policy plays only the
first two rounds of its campaign, as what it plans later depends on no store.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import msgspec
import polars as pl
from tests.recordings.documents import short_hash, tidy
from tests.recordings.pinned import Recording
from tests.recordings.surface import POLICIES, Client, Live, Stores, TestClock, serve

ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"
WORDS = frozenset({"title", "detail", "description", "summary", "operationId"})
PAGES = (
    "/", "/campaigns/news", "/campaigns/news/anonymity", "/campaigns/news/users",
    "/campaigns/news/arms", "/new-campaign", "/tokens", "/login", "/nowhere",
)  # fmt: skip


SOME_ROUNDS, ALL_ROUNDS = 2, 8
SHORT = ", its first rounds"


class Script:
    """Calls over HTTP, one after the other, and their answers."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.answers: Recording = {}
        self._http = httpx.Client(base_url=live.url, timeout=60)

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def call(self, role: str, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Make a call, keep its answer, and return the body."""
        if role in self.live.tokens:
            headers["Authorization"] = f"Bearer {self.live.tokens[role]}"
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        content = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        got = self._http.request(method, path, content=content, headers=headers)
        kind = got.headers.get("Content-Type", "")
        key = f"{len(self.answers) + 1:03} {role} {method} {path}"
        self.answers[key] = {"status": got.status_code, "type": kind, "body": _body(path, got)}
        is_json = got.content and "json" in kind and NDJSON not in kind
        return json.loads(got.content) if is_json else got.content

    def page(self, path: str) -> None:
        """Keep what a page answers, but for its words."""
        got = self._http.get(path)
        self.answers[f"{len(self.answers) + 1:03} page {path}"] = {
            "status": got.status_code,
            "type": got.headers.get("Content-Type", ""),
            "location": got.headers.get("Location"),
        }

    def login(self, role: str) -> None:
        """Open a session as a browser does."""
        got = self._http.post("/login", data={"token": self.live.tokens[role]})
        assert got.status_code == 303, got.text


def _body(path: str, got: httpx.Response) -> Any:
    kind = got.headers.get("Content-Type", "")
    if path == "/metrics":
        lines = [line.split("{")[0].split(" ")[0] for line in got.text.splitlines()]
        return sorted({line for line in lines if line and line != "#"})
    if path == "/openapi.json":
        document = got.json()
        return {
            f"{method} {route}": short_hash(
                json.dumps(_inlined(operation, document), sort_keys=True).encode()
            )
            for route, operations in document["paths"].items()
            for method, operation in operations.items()
        }
    if path.endswith("/release") and got.status_code == 200:
        return got.text  # byte for byte
    if kind == ARROW:
        return short_hash(repr(pl.read_ipc_stream(io.BytesIO(got.content)).rows()).encode())
    if NDJSON in kind:
        return short_hash(got.content)
    if "json" in kind and got.content:
        return _without_words(got.json())
    return got.content.hex()


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if name not in WORDS}
        if "token" in kept:
            kept["token"] = "…"
        return {name: _without_words(item) for name, item in kept.items()}
    if isinstance(value, list):
        return tidy([_without_words(item) for item in value])
    return value


def _inlined(value: Any, document: dict[str, Any]) -> Any:
    """Return a part of the OpenAPI document without words, and without names of schemas."""
    if isinstance(value, dict):
        if "$ref" in value:
            name = value["$ref"].rsplit("/", 1)[1]
            return _inlined(document["components"]["schemas"][name], document)
        return {
            name: _inlined(item, document)
            for name, item in value.items()
            if not (name in WORDS and isinstance(item, str))
        }
    return [_inlined(item, document) for item in value] if isinstance(value, list) else value


def users(first: int, end: int) -> list[str]:
    """Return names of users."""
    return [f"user-{number}" for number in range(first, end)]


def reward(user: str, number: int, arm: str) -> float:
    """Return what a user reports: a taste, and something that differs from round to round."""
    who = int(user.rpartition("-")[2])
    return round(((who % 3 == len(arm) % 3) * 6 + (who * 7 + number * 3) % 5) / 10, 3)


def play(script: Script, name: str, number: int, *, quiet: int = 5, close: bool = True) -> None:
    """Play a round in which all but one in ``quiet`` users report."""
    base = f"/v1/campaigns/{name}"
    script.call("operator", "PUT", f"{base}/rounds/{number}?wait=0")
    script.live.work()
    script.call("operator", "GET", f"{base}/rounds/{number}")
    shown = script.call("app", "GET", f"{base}/assignments")["assignments"]
    reports = [
        {"user": user, "reward": reward(user, number, arm)}
        for user, arm in shown.items()
        if (int(user.rpartition("-")[2]) + number) % quiet
    ]
    script.call("app", "POST", f"{base}/rounds/{number}/reports", {"reports": reports})
    if close:
        script.call("operator", "POST", f"{base}/rounds/{number}/close")
        script.live.work()
        script.call("analyst", "GET", f"{base}/rounds/{number}/release")


def _news(script: Script) -> None:
    """A campaign of the small learner with all that can happen to it."""
    base = "/v1/campaigns/news"
    definition = {
        "arms": ["red", "green", "ultramarine"], "arm_slots": 4, "min_group_size": 3, "seats": 24,
        "seed": 5, "reward_steps": 10,
    }  # fmt: skip
    script.call("operator", "PUT", base, definition)
    script.call("operator", "PUT", base, definition)
    script.call("operator", "PUT", base, {**definition, "min_group_size": 2})
    script.call("operator", "PUT", "/v1/campaigns/other", {**definition, "policy": "ucb"})
    script.call("operator", "PUT", "/v1/campaigns/other", {**definition, "seats": 2})
    script.call("operator", "POST", f"{base}/users", {"join": users(0, 20)})
    script.call("operator", "POST", f"{base}/users", {"join": users(0, 30)})
    script.call("operator", "GET", base)
    script.call("app", "GET", f"{base}/assignments")
    for number in range(1, 4):
        play(script, "news", number)
    script.call("operator", "POST", f"{base}/users", {"join": users(20, 24), "leave": ["user-3"]})
    script.call("operator", "PUT", f"{base}/arms/deep%20blue")
    script.call("operator", "PUT", f"{base}/arms/deep%20blue")
    script.call("operator", "PUT", f"{base}/arms/one-too-many")
    for number in range(4, 7):
        play(script, "news", number)
    script.call("operator", "DELETE", f"{base}/arms/green")
    script.call("operator", "DELETE", f"{base}/arms/no-such-arm")
    script.call("operator", "POST", f"{base}/users", {"leave": ["user-5"], "erase": True})
    script.call("operator", "GET", base)
    play(script, "news", 7, quiet=2)
    play(script, "news", 8, close=False)
    _reads(script, base)
    script.call("operator", "POST", f"{base}/rounds/8/close")
    script.call("operator", "POST", f"{base}/rounds/8/close")
    script.call("learner", "GET", f"{base}/rounds/8/release")
    script.call("learner", "GET", "/v1/learner/campaigns/news/rounds/8/release")
    script.live.work()
    script.call("analyst", "GET", f"{base}/rounds/8/release")
    script.call("learner", "GET", f"{base}/rounds/8/eligible")
    script.call("analyst", "GET", f"{base}/progress")
    script.call("analyst", "GET", f"{base}/progress?after=6")


def _reads(script: Script, base: str) -> None:
    """Everything that may be asked while round 8 is open, and what is refused."""
    for role in ("analyst", "app", "learner", "operator", "nobody"):
        script.call(role, "GET", base)
        script.call(role, "GET", f"{base}/rounds/8/release")
    path = f"{base}/assignments"
    script.call("app", "GET", f"{path}?limit=5&after=2")
    script.call("app", "GET", f"{path}?round=2")
    script.call("app", "GET", path, Accept=NDJSON)
    script.call("app", "GET", path, Accept=ARROW)
    script.call("app", "GET", path, Accept="image/png")
    script.call("app", "GET", f"{path}/user-1")
    script.call("app", "GET", f"{path}/user-3")
    script.call("app", "GET", f"{path}?limit=0")
    path = f"{base}/rounds/8/reports"
    again = [{"user": user, "reward": 1.0} for user in ("user-1", "user-3", "nobody")]
    script.call("app", "POST", path, {"reports": [*again, {"user": "user-2", "reward": 1.5}]})
    script.call("app", "POST", path, b"{")
    script.call("app", "POST", path, {"reports": [{"user": "user-2"}]})
    script.call("app", "POST", f"{base}/rounds/7/reports", {"reports": again[:1]})
    script.call("operator", "PUT", f"{base}/rounds/10?wait=0")
    script.call("operator", "GET", f"{base}/rounds/99")
    script.call("learner", "GET", f"{base}/rounds/8/eligible")
    path = "/v1/learner/campaigns/news/rounds/8"
    script.call("learner", "GET", f"{path}/release")
    script.call("learner", "PUT", f"{path}/plan", {"arms": b"1234", "groups": b""})
    plan = {"arms": bytes(4 * 24), "groups": bytes(4 * 24)}
    script.call("learner", "PUT", f"{path}/plan", plan)
    estimates = {"means": [0.1, None], "half_widths": [0.1, None]}
    script.call("learner", "PUT", f"{path}/plan", {**plan, "estimates": estimates})
    script.call("learner", "POST", "/v1/learner/work", {"campaigns": {}})


def _status(script: Script) -> None:
    for path in ("/health", "/ready", "/openapi.json", "/metrics", "/v1/campaigns", "/v1/tokens"):
        script.call("operator", "GET", path)
    second = {"role": "app", "campaigns": ["news"], "expires_days": 7}
    script.call("operator", "PUT", "/v1/tokens/second", second)
    script.call("admin", "PUT", "/v1/tokens/second", second)
    script.call("admin", "PUT", "/v1/tokens/second", {"role": "app"})
    script.call("admin", "PUT", "/v1/tokens/second", {"role": "king", "campaigns": ["*"]})
    script.call("admin", "POST", "/v1/tokens/second/rotate", {"grace_hours": 1})
    script.call("operator", "GET", "/v1/tokens")
    script.call("admin", "DELETE", "/v1/tokens/second")
    script.call("admin", "DELETE", "/v1/tokens/admin")
    script.call("app", "GET", "/v1/tokens")
    script.call("admin", "GET", "/v1/audit?limit=9")
    script.call("operator", "POST", "/health")
    for path in PAGES:
        script.page(path)
    script.login("operator")
    for path in PAGES:
        script.page(path)


def _by_client(client: dict[str, Client], live: Live) -> Recording:
    """A campaign as the client sees it."""
    operator, app, analyst = (client[role] for role in ("operator", "app", "analyst"))
    found: Recording = {
        "create": operator.create_campaign(
            "clients", arms=["a", "bb"], min_group_size=2, seats=9, horizon=20, seed=2
        ),
        "enrol": operator.enrol("clients", users(0, 9)),
        "withdraw": operator.withdraw("clients", ["user-8"]),
        "open": msgspec.to_builtins(operator.open_round("clients", 1, wait=0)),
    }
    live.work()
    arms = app.assignments("clients")
    rewards = {user: reward(user, 1, arm) for user, arm in arms.items()}
    refused = app.report("clients", 1, rewards | {"user-8": 1.0}, batch_size=4)
    found |= {
        "assignments": arms,
        "assignment": list(app.assignment("clients", "user-4")),
        "refused": [[item.user, item.reason] for item in refused],
        "round": msgspec.to_builtins(operator.round("clients", 1)),
        "close": msgspec.to_builtins(operator.close_round("clients", 1)),
    }
    live.work()
    found |= {
        "release": msgspec.to_builtins(analyst.release("clients", 1)),
        "campaign": operator.campaign("clients"),
        "campaigns": operator.campaigns(),
    }
    return {f"client {name}": value for name, value in found.items()}


def record(*urls: str) -> Recording:
    """Return all answers; ``urls`` are the stores of the aggregator and of the learner."""
    with TemporaryDirectory() as folder:
        places = urls or [f"sqlite:///{Path(folder)}/{name}.db" for name in ("one", "two")]
        with serve(Stores(*places), clock=TestClock()) as live, Script(live) as script:
            _news(script)
            _status(script)
            found = script.answers | _by_client(
                {role: live.client(role) for role in ("operator", "app", "analyst")}, live
            )
            n_rounds = SOME_ROUNDS if urls else ALL_ROUNDS
            for policy in [n for n, e in POLICIES.items() if e.anonymous and not e.hindsight]:
                found |= _policy(live, policy, n_rounds, seats=30)
            return found | _policy(live, "shoal", n_rounds, seats=280)


def _policy(live: Live, policy: str, n_rounds: int, *, seats: int) -> Recording:
    """Play a few rounds of one policy; return its last release, and a hash of all answers."""
    name = f"{policy}-{seats}"
    with Script(live) as script:
        base = f"/v1/campaigns/{name}"
        definition = {
            "arms": ["a", "bb", "ccc"], "min_group_size": 4, "seats": seats, "horizon": 60,
            "policy": policy, "seed": 9,
        }  # fmt: skip
        script.call("operator", "PUT", base, definition)
        script.call("operator", "POST", f"{base}/users", {"join": users(0, seats - 2)})
        found: Recording = {}
        for number in range(1, n_rounds + 1):
            play(script, name, number, quiet=9)
            if number in (SOME_ROUNDS, ALL_ROUNDS):
                key = f"campaign {name}" + SHORT * (number == SOME_ROUNDS)
                everything = json.dumps(script.answers, sort_keys=True)
                last = script.answers[[*script.answers][-1]]["body"]
                found[key] = {"all": short_hash(everything.encode()), "last": last}
        return found
