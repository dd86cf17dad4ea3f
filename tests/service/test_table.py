"""Assignments as one file, and look-ups in it."""

from __future__ import annotations

import asyncio
import time
from array import array

import httpx
import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import AsyncClient, ServiceError, table
from shoal.client.table import TableHeader, pack, read, sign

TOKEN = f"shoal.app.{'s' * 43}"


def begin(live: Live, number: int = 1) -> None:
    operator = live.client("operator")
    operator.create_campaign("news", arms=["a", "b"], min_group_size=2, seats=12, policy="random")
    operator.enrol("news", users(12))
    operator.open_round("news", number, wait=0)
    live.work()


def test_a_million_users_are_looked_up_in_less_than_20_microseconds() -> None:
    n_users = 1_000_000
    names = [f"user-{number}" for number in range(n_users)]
    header = TableHeader("news", 7, "hash", ["a", "b", "c"], n_users)
    arms = array("H", [number % 3 for number in range(n_users)])
    content = sign(pack(header, names, arms.tobytes()), TOKEN)
    assert len(content) < 6_000_000
    looked_up = read(content, TOKEN)
    assert (len(looked_up), looked_up.round) == (n_users, 7)
    chosen = [names[number * 7919 % n_users] for number in range(20_000)]
    arm, times = looked_up.arm, []
    for user in chosen:
        began = time.perf_counter_ns()
        arm(user)
        times.append(time.perf_counter_ns() - began)
    assert sorted(times)[int(0.99 * len(times))] < 20_000
    assert all(arm(user) == "abc"[int(user[5:]) % 3] for user in chosen)


def test_the_table_says_what_the_service_says_and_is_read_again_only_if_it_changed(
    stores: Stores,
) -> None:
    with serve(stores) as live:
        app = live.client("app")
        begin(live)
        first = app.assignment_table("news")
        everyone = app.assignments("news")
        assert {user: first.arm(user) for user in users(12)} == everyone
        assert (first.round, first.campaign, len(first)) == (1, "news", 12)
        with pytest.raises(ServiceError) as unknown:
            first.arm("stranger")
        assert unknown.value.name == "unknown-user"
        again = app.assignment_table("news", known=first)
        assert again._arms is first._arms  # 304: nothing was sent
        live.client("operator").withdraw("news", ["user-3"], erase=True)
        changed = app.assignment_table("news", known=first)
        with pytest.raises(ServiceError):
            changed.arm("user-3")
        assert changed.arm("user-4") == first.arm("user-4")

        async def read_async() -> str:
            async with AsyncClient(live.url, live.tokens["app"]) as client:
                return (await client.assignment_table("news")).arm("user-5")

        assert asyncio.run(read_async()) == everyone["user-5"]


def test_a_stale_round_is_refused_by_the_service_and_by_the_table(
    sqlite_stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        operator, app = live.client("operator"), live.client("app")
        old = app.assignment_table("news", max_age=30)
        app.report("news", 1, dict.fromkeys(users(12), 0.5))
        operator.close_round("news", 1)
        live.work()
        with pytest.raises(ServiceError) as over:
            app.assignment_table("news", known=old)
        assert over.value.name == "round-not-open"
        operator.open_round("news", 2, wait=0)
        live.work()
        new = app.assignment_table("news", known=old)
        assert (old.round, new.round) == (1, 2)
        path = f"{live.url}/v1/campaigns/news/rounds/1/assignments"
        headers = {"Authorization": f"Bearer {live.tokens['app']}"}
        assert httpx.get(path, headers=headers).status_code == 409
        # An answer that is older than what is known, as of a restored store or a cache.
        monkeypatch.setattr(live.aggregator.rounds, "latest", lambda name: None)
        with pytest.raises(ServiceError) as back:
            app.assignment_table("news", known=new)
        assert back.value.name == "stale-table"
    later = time.monotonic() + 31
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(ServiceError) as stale:
        old.arm("user-1")
    assert stale.value.name == "stale-table"


def test_a_table_that_was_changed_or_made_for_another_token_is_refused() -> None:
    header = TableHeader("news", 1, "hash", ["a"], 1)
    content = sign(pack(header, ["ann"], b"\0\0"), TOKEN)
    assert read(content, TOKEN).arm("ann") == "a"
    flipped = [content[:i] + bytes([content[i] ^ 1]) + content[i + 1 :] for i in (0, 9, 45)]
    for wrong in (*flipped, content[:-1], b"", content + b"x"):
        with pytest.raises(ServiceError) as caught:
            read(wrong, TOKEN)
        assert caught.value.name == "bad-signature"
    with pytest.raises(ServiceError):
        read(content, f"shoal.app.{'t' * 43}")


def test_the_file_has_a_tag_and_is_made_once(
    sqlite_stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []

    def counted(header: TableHeader, names: list[str], arms: bytes) -> bytes:
        made.append(header.n_users)
        return pack(header, names, arms)

    monkeypatch.setattr(table, "pack", counted)
    with serve(sqlite_stores) as live:
        begin(live)
        path = f"{live.url}/v1/campaigns/news/rounds/1/assignments"
        headers = {"Authorization": f"Bearer {live.tokens['app']}"}
        first = httpx.get(path, headers=headers)
        assert first.headers["content-type"] == table.TABLE_TYPE
        tag = first.headers["etag"]
        second = httpx.get(path, headers=headers | {"If-None-Match": tag})
        assert (second.status_code, second.content, second.headers["etag"]) == (304, b"", tag)
        assert made == [12]


def test_before_the_first_round_no_round_is_open(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        operator, app = live.client("operator"), live.client("app")
        operator.create_campaign("news", arms=["a", "b"], min_group_size=2, seats=12)
        for call in (app.assignments, app.assignment_table):
            with pytest.raises(ServiceError, match=r"^The round is not open\.") as caught:
                call("news")
            assert (caught.value.name, caught.value.status) == ("round-not-open", 409)
