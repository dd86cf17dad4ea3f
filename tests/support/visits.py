"""Small pieces that the dashboard's tests share."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import httpx
from tests.support.live import Live
from tests.support.service import users

CAMPAIGN = "front-page"
ARMS = ["world", "sport", "science"]
N_USERS = 60
SECONDS = 60_000  # milliseconds that a browser may take for anything
FORM = {
    "name": "push", "arms": "morning\r\nnoon\r\nevening\r\n", "min_group_size": "20",
    "seats": "1000", "policy": "shoal", "horizon": "", "colluders": "0", "reward_steps": "1",
    "seed": "0", "options": "drift = 0.001", "sure": "yes",
}  # fmt: skip


def create(live: Live, name: str = CAMPAIGN, *, enrolled: bool = True) -> None:
    operator = live.client("operator")
    operator.create_campaign(
        name, arms=ARMS, min_group_size=5, seats=N_USERS, policy="shoal", arm_slots=4,
        reward_steps=1,
    )  # fmt: skip
    if enrolled:
        operator.enrol(name, users(N_USERS))


def play(live: Live, number: int, name: str = CAMPAIGN) -> None:
    """Play a round in which nine in ten report, and those on sport like it."""
    operator, app = live.client("operator"), live.client("app")
    while operator.open_round(name, number).state == "wanted":
        pass
    shown = app.assignments(name, number=number)
    rewards = {
        user: float(arm == "sport" or (int(user[5:]) + number) % 7 == 0)
        for user, arm in shown.items()
        if (int(user[5:]) + number) % 10
    }
    assert app.report(name, number, rewards) == []
    operator.close_round(name, number)
    wait(lambda: live.aggregator.releases.shown(name) == number)


def wait(done: Callable[[], bool]) -> None:
    ends = time.monotonic() + 120
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.01)


class Visitor:
    """Someone with a browser that runs no script."""

    def __init__(self, live: Live, role: str = "") -> None:
        self.http = httpx.Client(base_url=live.url, timeout=120)
        if role:
            answer = self.http.post("/login", data={"token": live.tokens[role]})
            assert answer.status_code == 303, answer.text

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *error: object) -> None:
        self.http.close()

    def csrf(self, path: str = "/") -> str:
        found = re.search(
            r'name="csrf" value="(\w+)"', self.http.get(path, follow_redirects=True).text
        )
        assert found, path
        return found[1]

    def send(self, path: str, **fields: str) -> httpx.Response:
        """Send a form as a page of this site would."""
        return self.http.post(path, data={"csrf": self.csrf(), **fields})
