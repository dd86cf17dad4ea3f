"""A reward is reported and then searched for in everything that lasts and everything that leaves.

The canary is the only report of its group, so that any plain sum would be the reward itself.
"""

from __future__ import annotations

import logging
import struct
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

STEPS = 100_000_000
CANARY = 73_719_377
REWARD = CANARY / STEPS

TEXTS = [str(CANARY).encode(), str(REWARD).encode()]
NUMBERS = [
    CANARY.to_bytes(4, "big"),  # SQLite's integer
    struct.pack("<q", CANARY),
    struct.pack(">q", CANARY),
    struct.pack("<d", REWARD),
    struct.pack(">d", REWARD),
]


def found_in(data: bytes, *, backend: str) -> list[bytes]:
    numbers = NUMBERS if backend == "sqlite" else NUMBERS[1:]
    return [needle for needle in TEXTS + numbers if needle in data]


def everything_at_rest(stores: Stores, backend: str, tmp_path: Path, postgres: str) -> bytes:
    folder = tmp_path if backend == "sqlite" else Path(postgres.split("host=")[1])
    while True:
        files = [f for f in folder.rglob("*") if f.is_file()]
        assert len(files) >= 4
        with suppress(FileNotFoundError):  # PostgreSQL deletes and renews some of its own
            return b"\0\0".join(file.read_bytes() for file in files)


def every_answer(live: Live) -> bytes:
    """What each role gets from each address that it may read."""
    base = "/v1/campaigns/news"
    paths = [
        "/metrics", "/health", "/ready", "/openapi.json", "/v1/tokens", "/v1/campaigns", base,
        f"{base}/assignments", f"{base}/assignments/user-0", f"{base}/rounds/1",
        f"{base}/rounds/1/eligible", f"{base}/rounds/1/release",
        "/v1/learner/campaigns/news/rounds/1/release",
    ]  # fmt: skip
    answers = b""
    for token in live.tokens.values():
        with httpx.Client(headers={"Authorization": f"Bearer {token}"}) as raw:
            for path in paths:
                answer = raw.get(live.url + path)
                answers += repr(answer.headers).encode() + answer.content
    return answers


def begin(live: Live) -> None:
    operator = live.client("operator")
    definition = {
        "arms": ["a", "b"], "min_group_size": 4, "seats": 10, "horizon": 99, "reward_steps": STEPS,
    }  # fmt: skip
    operator.create_campaign("news", **definition)
    operator.enrol("news", users(10))
    operator.open_round("news", 1, wait=0)
    live.work()


def test_threat_18_logs_metrics_and_answers_never_show_a_reward(
    stores: Stores,
    backend: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with caplog.at_level(logging.DEBUG), serve(stores) as live:
        begin(live)
        assert live.client("app").report("news", 1, {"user-0": REWARD}) == []
        seen = every_answer(live)
        headers = {"Authorization": f"Bearer {live.tokens['app']}"}
        for body in (
            f'{{"reports": [{{"user": "user-1", "reward": "{REWARD}"}}]}}',
            f'{{"reports": [{{"user": "user-1", "reward": {REWARD}, "x": 1}}]}}',
            f'{{"reports": [{{"user": "user-1", "reward": {REWARD}',
            f'{{"reports": [{{"user": "nobody", "reward": {REWARD}}}]}}',
            f'{{"reports": [{{"user": "user-1", "reward": -{REWARD}}}]}}',
        ):
            path = f"{live.url}/v1/campaigns/news/rounds/1/reports"
            seen += httpx.post(path, content=body, headers=headers).content
        live.client("operator").close_round("news", 1)
        live.work()
        seen += every_answer(live)
        metrics = httpx.get(
            f"{live.url}/metrics", headers={"Authorization": f"Bearer {live.tokens['operator']}"}
        ).text
    out, err = capfd.readouterr()
    # The test's own client logs nothing of a body; everything else is the service's.
    logged = (caplog.text + out + err).encode()
    assert found_in(seen + logged, backend="postgresql") == []
    assert b'shoal_refused_reports_total{reason="unknown-user"} 1.0' in seen
    assert "user-" not in metrics
    assert "news" not in metrics


def test_threat_18_a_method_of_the_callers_own_making_is_neither_logged_nor_counted_by_name(
    sqlite_stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.INFO, "shoal.service"),
        serve(sqlite_stores) as live,
        httpx.Client() as client,
    ):
        for number in range(20):
            path = "/v1/campaigns/news/rounds/1/reports" if number % 2 else "/health"
            answer = client.request(f"U{number}-REWARD-0.7", live.url + path)
            assert answer.status_code == 400
            assert client.request("PROPFIND", live.url + path).status_code == 405
        shown = live.metrics.text().decode()
    assert "REWARD" not in caplog.text + shown
    assert "PROPFIND" not in caplog.text + shown
    assert caplog.text.count("other /") == 20
    assert 'method="other"' in shown


def test_threat_19_database_file_and_backups_never_hold_a_reward(
    stores: Stores, backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    from shoal.service.store.backup import back_up

    postgres = request.getfixturevalue("postgres") if backend == "postgresql" else ""
    with serve(stores) as live:
        begin(live)
        assert live.client("app").report("news", 1, {"user-0": REWARD}) == []
        while_open = everything_at_rest(stores, backend, tmp_path, postgres)
        assert found_in(while_open, backend=backend) == []
        back_up(live.aggregator.database, "aggregator", tmp_path / "open.backup")
        # The control: what is stored in the open can be found in this way.
        live.client("operator").create_campaign(
            f"c{CANARY}", arms=["a", "b"], min_group_size=2, seats=4, horizon=9
        )
        control = everything_at_rest(stores, backend, tmp_path, postgres)
        assert found_in(control, backend=backend) == [TEXTS[0]]
        live.client("operator").close_round("news", 1)
        live.work()
        release = live.client("analyst").release("news", 1)
        assert (release.totals, release.withheld > 0) == ([], True)
        after = everything_at_rest(stores, backend, tmp_path, postgres)
        assert found_in(after, backend=backend) == [TEXTS[0]]  # the control's, and nothing else
    import gzip

    assert found_in(gzip.decompress((tmp_path / "open.backup").read_bytes()), backend=backend) == []
