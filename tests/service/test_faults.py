"""What nobody foresaw is logged without details, tried again, and shown; and a stop is a stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from hashlib import sha256

import httpx
import pytest
from sqlalchemy.exc import OperationalError
from tests.support.live import Live, learning, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.service.learner.run import CampaignRun, Records

SECRET = "reward 0.7371"


def wait_until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.01)


def away() -> OperationalError:
    return OperationalError(SECRET, {}, Exception(SECRET))


def test_a_schedule_outlives_a_database_that_was_away(
    sqlite_stores: Stores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*given: object) -> list[str]:
        raise away()

    schedule = {"open_every_hours": 24, "close_after_hours": 6}
    for part, name in (("directory", "names"), ("rounds", "latest")):
        with serve(sqlite_stores, tick_seconds=0.01) as live:

            def status(live: Live = live) -> int:
                return httpx.get(f"{live.url}/ready").status_code

            live.client("operator").create_campaign(
                f"daily{part}", arms=["a", "b"], min_group_size=2, seats=4, policy="random",
                schedule=schedule,
            )  # fmt: skip
            assert status() == 200
            target = getattr(live.aggregator, part)
            with monkeypatch.context() as patch:
                patch.setattr(target, name, broken)
                wait_until(lambda: status() == 503)
            wait_until(lambda: status() == 200)
            live.client("operator").enrol(f"daily{part}", users(4))
            campaign = f"daily{part}"
            wait_until(partial(has_round, live, campaign))
    assert "schedule fails: OperationalError" in caplog.text
    assert SECRET not in caplog.text


def has_round(live: Live, campaign: str) -> bool:
    return live.aggregator.rounds.latest(campaign) is not None


def has_learnt(live: Live, number: int) -> bool:
    """It says so once it is stored."""
    told = live.aggregator.epochs.progress("news")
    return told is not None and told.learnt == number


def play(live: Live, number: int) -> None:
    operator, app = live.client("operator"), live.client("app")
    ends = time.monotonic() + 240
    while operator.open_round("news", number, wait=30).state == "wanted":
        assert time.monotonic() < ends
    app.report("news", number, dict.fromkeys(users(12), 0.5))
    operator.close_round("news", number)


@pytest.mark.parametrize("name", ["keep_learnt", "load"])
def test_a_learner_outlives_a_database_that_was_away(
    sqlite_stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    """It goes back to what it could store, and arrives where a run without the fault does.

    A plan stays for two rounds, and the fault comes when the second has been learnt.
    """
    states, failures = [], list[bool]()
    for disturbed in (False, True):
        stores = Stores(
            sqlite_stores.aggregator.replace(".db", f"-{disturbed}.db"),
            sqlite_stores.learner.replace(".db", f"-{disturbed}.db"),
        )
        with serve(stores) as live, learning(live):
            live.client("operator").create_campaign(
                "news", arms=["a", "b"], min_group_size=4, seats=12, horizon=200,
                policy="explore-then-commit", options={"exploration": 0.1},
            )  # fmt: skip
            live.client("operator").enrol("news", users(12))
            play(live, 1)
            wait_until(partial(has_learnt, live, 1))
            if disturbed:
                good = getattr(Records, name)

                def fails(
                    self: Records,
                    *given: object,
                    good: Callable[..., CampaignRun] = good,
                    **more: bool,
                ) -> CampaignRun:
                    if len(failures) < 2:
                        failures.append(True)
                        raise away()
                    return good(self, *given, **more)

                monkeypatch.setattr(Records, name, fails)
                if name == "load":
                    live.learner._forget("news")
            for number in (2, 3):
                play(live, number)
            wait_until(partial(has_learnt, live, 3))
            if disturbed:
                assert len(failures) == 2
            kept = Records(live.learner.database).load("news")
            state = kept.policy_state() + kept.feedback_state()
            states.append((kept.planned, kept.learnt, kept.reading, sha256(state).hexdigest()))
    assert states[0] == states[1]
    assert "OperationalError" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    ("method", "path", "role", "body", "status"),
    [
        ("POST", "/v1/learner/work", "learner", {"campaigns": {}, "wait": 60}, 200),
        ("PUT", "/v1/campaigns/news/rounds/1?wait=60", "operator", None, 202),
    ],
)
def test_whoever_only_waits_is_answered_when_the_service_stops(
    sqlite_stores: Stores,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    role: str,
    body: object,
    status: int,
) -> None:
    answers: list[int] = []
    with caplog.at_level(logging.INFO), serve(sqlite_stores) as live:
        live.client("operator").create_campaign(
            "news", arms=["a", "b"], min_group_size=2, seats=4, policy="random"
        )
        headers = {"Authorization": f"Bearer {live.tokens[role]}"}
        request = httpx.Request(method, live.url + path, headers=headers, json=body)

        def call() -> None:
            with httpx.Client(timeout=90) as client:
                answers.append(client.send(request).status_code)

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        wait_until(lambda: len(live.aggregator.notifier._waiters) > 0)
    thread.join(120)
    assert answers == [status]
    assert "Cancel" not in caplog.text
    assert "Traceback" not in caplog.text
