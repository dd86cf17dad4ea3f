"""Threat 28: load without a token, and a store that does not answer, keep nobody else waiting."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import ServiceError
from shoal.service.aggregator import report_queue
from shoal.service.aggregator.report_queue import BoundedQueue
from shoal.service.api import reports
from shoal.service.dashboard import assets
from shoal.service.problems import ProblemError
from shoal.service.store import database
from shoal.service.web import guard


@contextmanager
def locked(stores: Stores) -> Iterator[None]:
    """Keep every write out of the aggregator's store."""
    if stores.aggregator.startswith("sqlite"):
        other = sqlite3.connect(stores.aggregator.removeprefix("sqlite:///"))
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.rollback()
            other.close()
    else:
        with psycopg.connect(stores.aggregator) as connection:
            connection.execute("LOCK TABLE rounds, tokens, campaigns IN ACCESS EXCLUSIVE MODE")
            yield
            connection.rollback()


async def get(url: str, paths: list[str]) -> list[tuple[int, float]]:
    """Ask for all paths at a time; return each status and how long it took."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(timeout=60, limits=limits) as client:

        async def one(path: str) -> tuple[int, float]:
            began = time.monotonic()
            answer = await client.get(url + path)
            return answer.status_code, time.monotonic() - began

        return await asyncio.gather(*map(one, paths))


def begin(live: Live) -> None:
    operator = live.client("operator")
    operator.create_campaign("news", arms=["a", "b"], min_group_size=2, seats=8, policy="random")
    operator.enrol("news", users(8))
    operator.open_round("news", 1, wait=0)
    live.work()


def test_threat_28_health_waits_for_no_locked_store(sqlite_stores: Stores) -> None:
    """60 checks of readiness, which are more than there are threads, share one."""
    with serve(sqlite_stores) as live, locked(sqlite_stores):
        live.aggregator.database._next_check = 0.0
        answers = asyncio.run(get(live.url, ["/ready"] * 60 + ["/health", "/login"]))
    *ready, health, login = answers
    assert {status for status, _ in ready} == {503}
    assert max(seconds for _, seconds in ready) < 10  # 2 s, and a busy machine
    assert (health[0], login[0]) == (200, 200)
    assert max(health[1], login[1]) < 10


def test_threat_28_the_chart_script_is_built_once_however_many_ask(
    tmp_path: Path, sqlite_stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds: list[float] = []
    built = threading.Event()

    def build(command: list[str], **options: Any) -> bytes:
        builds.append(options["timeout"])
        built.wait(60)
        return b"script"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(assets, "_assets", assets.SingleFlight(assets.make_asset))
    monkeypatch.setattr(subprocess, "check_output", build)
    monkeypatch.setattr(assets, "MAX_WAIT_SECONDS", 0.5)
    with serve(sqlite_stores) as live:
        path = f"/static/{assets.CHARTS}"
        cold = asyncio.run(get(live.url, [path] * 60 + ["/health", "/login"]))
        assert [status for status, _ in cold] == [503] * 60 + [200, 200]  # they may try again
        assert max(seconds for _, seconds in cold) < 10
        built.set()
        assets.load(assets.CHARTS)
        assert httpx.get(live.url + path).text == "script"
    assert builds == [assets.MAX_BUILD_SECONDS]


def test_a_build_that_failed_is_tried_again() -> None:
    tries: list[str] = []

    def make(name: str) -> assets.Asset:
        tries.append(name)
        if len(tries) == 1:
            raise BlockingIOError
        return assets.Asset(b"", b"", "")

    once = assets.SingleFlight(make)
    with pytest.raises(BlockingIOError):
        once.get("x").result(30)
    assert once.get("x").result(30) is once.get("x").result(30)
    assert tries == ["x", "x"]


def test_threat_28_reports_that_the_store_can_not_take_are_refused_not_kept(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a locked store, what does not fit is answered at once, the rest after a time limit."""
    monkeypatch.setattr(report_queue, "MAX_WAITING_REPORTS", 20)
    monkeypatch.setattr(reports, "MAX_COMMIT_SECONDS", 1.0)
    monkeypatch.setattr(database, "LOCK_MILLISECONDS", 20_000)
    with serve(stores) as live:
        begin(live)
        body = {"reports": [{"user": user, "reward": 1} for user in users(8)]}
        headers = {"Authorization": f"Bearer {live.tokens['app']}"}
        path = f"{live.url}/v1/campaigns/news/rounds/1/reports"

        async def flood() -> list[httpx.Response]:
            async with httpx.AsyncClient(timeout=60, headers=headers) as client:
                return await asyncio.gather(*(client.post(path, json=body) for _ in range(30)))

        with locked(stores):
            answers = asyncio.run(flood())
            assert asyncio.run(get(live.url, ["/health"]))[0][0] == 200
        names = [answer.json()["type"].rpartition(":")[2] for answer in answers]
        assert {answer.status_code for answer in answers} == {503}
        assert all(answer.headers["retry-after"] == "1" for answer in answers)
        assert names.count("store-away") >= 2
        assert names.count("busy") >= 20
        assert live.client("app", patience=60).report("news", 1, dict.fromkeys(users(8), 1)) == []


def test_a_queue_takes_what_fits_and_always_something() -> None:
    waiting = BoundedQueue[list[int]](len, max_size=3)
    waiting.put([1, 2, 3, 4])
    with pytest.raises(ProblemError, match="too much to do"):
        waiting.put([5])
    waiting.put(None)
    assert waiting.get() == [1, 2, 3, 4]
    for item in ([5, 6], [7]):
        waiting.put(item)
    with pytest.raises(ProblemError):
        waiting.put([8])
    assert [waiting.get() for _ in range(3)] == [None, [5, 6], [7]]


def test_threat_28_requests_beyond_a_limit_are_refused(
    sqlite_stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where what has arrived is not answered, the next are told to come again."""
    monkeypatch.setattr(guard, "MAX_REQUESTS", 45)
    with serve(sqlite_stores) as live:
        release = threading.Event()
        monkeypatch.setattr(live.aggregator.directory, "names", lambda: release.wait(60) and [])
        headers = {"Authorization": f"Bearer {live.tokens['operator']}"}

        async def flood() -> tuple[list[int], list[int]]:
            async with httpx.AsyncClient(timeout=60, base_url=live.url) as client:
                listing = [
                    asyncio.create_task(client.get("/v1/campaigns", headers=headers))
                    for _ in range(40 + 20)
                ]
                await asyncio.sleep(2)
                health = [(await client.get("/health")).status_code]
                release.set()
                return [answer.status_code for answer in await asyncio.gather(*listing)], health

        statuses, health = asyncio.run(flood())
    assert health == [200]
    assert (statuses.count(200), statuses.count(503)) == (45, 15)


def test_a_lock_on_the_store_is_waited_for_and_then_told(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_MILLISECONDS", 300)
    with serve(stores) as live:
        begin(live)
        with locked(stores), pytest.raises(ServiceError) as caught:
            live.client("operator", patience=0).withdraw("news", ["user-0"])
        assert (caught.value.name, caught.value.status) == ("store-away", 503)
        assert live.client("operator").withdraw("news", ["user-0"]) == 1
