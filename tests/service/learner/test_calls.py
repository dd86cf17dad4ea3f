"""How many HTTP calls a round takes, and what each of them is."""

from __future__ import annotations

from base64 import b64decode

import httpx
import numpy as np
import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

ROUND = "/v1/learner/campaigns/news/rounds"
DEFINITION = {"arms": ["a", "b"], "min_group_size": 3, "seats": 12, "policy": "shoal"}


def begin(live: Live) -> list[tuple[str, str]]:
    """Make a campaign; return a list of the learner's calls that grows as they are answered."""
    made: list[tuple[str, str]] = []
    hooks = live.learner._client._http.event_hooks
    hooks["response"] = [lambda answer: made.append((answer.request.method, answer.url.path))]
    live.learner._client._http.event_hooks = hooks
    live.client("operator").create_campaign("news", **DEFINITION)
    live.client("operator").enrol("news", users(12))
    return made


def report(live: Live, number: int) -> None:
    live.client("app").report("news", number, dict.fromkeys(users(12), 0.5))


def test_a_round_takes_four_calls(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        made = begin(live)
        operator = live.client("operator")
        for number in range(1, 5):
            made.clear()
            operator.open_round("news", number, wait=0)
            assert live.learner.work(wait=5.0) == 1
            report(live, number)
            operator.close_round("news", number)
            assert live.learner.work(wait=5.0) == 1
            assert made == [
                ("POST", "/v1/learner/work"),
                ("PUT", f"{ROUND}/{number}/plan"),
                ("POST", "/v1/learner/work"),
                ("GET", f"{ROUND}/{number}/release"),
            ]


def test_a_round_that_follows_at_once_takes_three(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        made = begin(live)
        operator = live.client("operator")
        operator.open_round("news", 1, wait=0)
        live.learner.work(wait=5.0)
        for number in (1, 2):
            report(live, number)
            operator.close_round("news", number)
            operator.open_round("news", number + 1, wait=0)
            made.clear()
            live.learner.work(wait=5.0)
            assert made == [
                ("POST", "/v1/learner/work"),
                ("GET", f"{ROUND}/{number}/release"),
                ("PUT", f"{ROUND}/{number + 1}/plan"),
            ]


def test_the_learner_reads_what_others_read(sqlite_stores: Stores) -> None:
    """Its answers hold the bytes of those that they are made of."""
    with serve(sqlite_stores) as live:
        begin(live)
        operator = live.client("operator")
        operator.open_round("news", 1, wait=0)
        headers = {"Authorization": f"Bearer {live.tokens['learner']}"}
        with httpx.Client(base_url=live.url, headers=headers) as http:
            campaign = "/v1/campaigns/news"
            task = http.post("/v1/learner/work", json={"campaigns": {}}).json()["tasks"][0]
            assert (task["campaign"], task["round"], task["state"]) == ("news", 1, "wanted")
            assert task["definition"] == http.get(campaign).json()["definition"]
            eligible = http.get(f"{campaign}/rounds/1/eligible").content
            assert b64decode(task["eligible"]) == eligible
            live.work()
            report(live, 1)
            operator.close_round("news", 1)
            answer = http.get(f"{ROUND}/1/release")
            release = http.get(f"{campaign}/rounds/1/release").content
            assert answer.content.startswith(b'{"release":' + release + b',"counted":')
            counted = live.aggregator.releases.counted("news", 1)
            assert b64decode(answer.json()["counted"]) == np.packbits(counted).tobytes()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "malformed-body"),
        (b"{}", "invalid-input"),
        (b'{"arms": "", "groups": "", "more": 1}', "invalid-input"),
        (b'{"arms": "AAAA", "groups": ""}', "plan-refused"),
        (b'{"arms": "AAAAAA==", "groups": "AAAAAA=="}', "plan-refused"),
        (b'{"arms": "", "groups": "", "estimates": {"means": [2], "half_widths": [0]}}',
         "invalid-input"),
        (b'{"arms": "", "groups": "", "estimates": {"means": [1], "half_widths": [0]}}',
         "invalid-input"),
        (b'{"arms": "", "groups": "", "estimates": {"means": ["1", 1], "half_widths": [0, 0]}}',
         "invalid-input"),
        (b'{"arms": "", "groups": "", "estimates": {"means": [1, 1]}}', "invalid-input"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_plan_is_a_problem(
    sqlite_stores: Stores, body: bytes, problem: str
) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        live.client("operator").open_round("news", 1, wait=0)
        headers = {"Authorization": f"Bearer {live.tokens['learner']}"}
        answer = httpx.put(f"{live.url}{ROUND}/1/plan", content=body, headers=headers)
        assert answer.json()["type"] == f"urn:shoal:problem:{problem}"
        assert live.aggregator.rounds.get("news", 1).state == "wanted"
