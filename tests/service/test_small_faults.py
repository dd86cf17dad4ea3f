"""Small things that an attack on the service found, each pinned."""

from __future__ import annotations

import json
from email.utils import formatdate

import httpx
import pytest
from tests.support.live import Live, serve
from tests.support.service import TestClock, close, even, report, start, users
from tests.support.stores import Stores
from tests.support.visits import CAMPAIGN, Visitor, create

from shoal.client import ServiceError
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.schedule import tick
from shoal.service.campaign import Campaign
from shoal.service.dashboard import checks
from shoal.service.doctor import _aggregator_clock
from shoal.service.store import system_clock
from shoal.service.web.readiness import MAX_SILENCE


def send(live: Live, method: str, path: str, body: str, *, as_role: str) -> httpx.Response:
    headers = {
        "Authorization": f"Bearer {live.tokens[as_role]}", "Content-Type": "application/json",
    }  # fmt: skip
    return httpx.request(method, live.url + path, content=body, headers=headers)


def test_readiness_knows_that_the_learner_is_silent_and_a_metric_when_it_was_heard(
    sqlite_stores: Stores,
) -> None:
    clock = TestClock()
    with serve(sqlite_stores, clock=clock) as live:

        def ready() -> tuple[int, dict[str, bool]]:
            answer = httpx.get(f"{live.url}/ready")
            return answer.status_code, answer.json()

        def heard() -> float:
            headers = {"Authorization": f"Bearer {live.tokens['operator']}"}
            lines = httpx.get(f"{live.url}/metrics", headers=headers).text.splitlines()
            name = "shoal_learner_heard_timestamp_seconds "
            return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))

        well = {"ok": True, "store": True, "schedules": True, "learner": True}
        assert ready() == (200, well)  # a start leaves it some time
        assert heard() == 0
        clock.now += MAX_SILENCE + 1
        assert ready() == (503, well | {"ok": False, "learner": False})
        live.work()
        assert ready() == (200, well)
        assert heard() == clock.now / 1000
        clock.now += MAX_SILENCE + 1
        assert ready()[0] == 503


def test_a_round_that_was_closed_in_the_future_was_closed_now(aggregator: Aggregator) -> None:
    """By hand too: a clock that was a year ahead is noticed with the next tick."""
    clock = aggregator.clock
    assert isinstance(clock, TestClock)
    now = clock.now
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 0.5))
    clock.now += 365 * 86_400_000
    close(aggregator)
    checks.run(aggregator, "news")
    clock.now = now
    tick(aggregator)
    last = aggregator.rounds.latest("news")
    assert last is not None
    assert max(last.wanted_at, last.opened_at or 0, last.closed_at or 0) <= now
    clock.now += 1000
    checks.run_due(aggregator)  # its checks do not wait for that year either
    assert all(item.ran_at == clock.now for item in checks.latest(aggregator, "news"))


@pytest.mark.parametrize("number", ["9" * 5000, "4294967296", "-1", "x", "१"])
def test_a_round_number_of_5000_digits_is_refused_not_a_fault(
    sqlite_stores: Stores, number: str
) -> None:
    with serve(sqlite_stores) as live:
        create(live)
        path = f"/v1/campaigns/{CAMPAIGN}/rounds/{number}"
        for method, end, as_role in (
            ("PUT", "", "operator"), ("POST", "/close", "operator"), ("POST", "/reports", "app"),
        ):  # fmt: skip
            answer = send(live, method, path + end, '{"reports": []}', as_role=as_role)
            assert answer.status_code in (404, 422), answer.text
        with Visitor(live, "operator") as operator:
            for form in ("open", "close"):
                sent = operator.send(f"/campaigns/{CAMPAIGN}/{form}", number=number, sure="yes")
                assert sent.status_code == 409
        assert live.aggregator.rounds.latest(CAMPAIGN) is None


REPORT = '{"user": "user-0", "reward": 1}'


@pytest.mark.parametrize(
    "body",
    [
        f'{{"reports": [{REPORT}], "reports": []}}',
        '{"reports": [{"user": "user-0", "user": "user-1", "reward": 1}]}',
        '{"reports": [{"user": "user-0", "reward": 1, "reward": 0}]}',
        '{"reports": [{"user": "user-0", "\\u0075ser": "user-1", "reward": 1}]}',
        '{"reports": [{"user": "user-0", "reward": 1, "r\\u0065ward": 0}]}',
        '{"reports": [{"user":"reward","user":"user","reward":1}]}',
    ],
)
def test_a_name_that_stands_twice_in_a_report_is_refused(sqlite_stores: Stores, body: str) -> None:
    """Else a filter before the service and the service might read two different reports."""
    with serve(sqlite_stores) as live:
        operator = live.client("operator")
        operator.create_campaign(
            "news", arms=["a", "b"], min_group_size=2, seats=4, policy="random"
        )
        operator.enrol("news", ["user-0", "user-1", "user", "reward"])
        operator.open_round("news", 1, wait=0)
        live.work()
        path = "/v1/campaigns/news/rounds/1/reports"
        for _ in range(2):  # the second time without FastAPI's checks
            answer = send(live, "POST", path, body, as_role="app")
            assert answer.status_code == 400
            assert answer.json()["type"].endswith("malformed-body")
        for fine in (
            f'{{"reports": [{REPORT}]}}',
            '{"reports": [{"user": "user", "reward": 1}, {"user": "reward", "reward": 1}]}',
            '{"reports": [{"us\\u0065r": "user-1", "reward": 1}]}',
        ):
            assert send(live, "POST", path, fine, as_role="app").json() == {"refused": []}


def test_a_name_that_stands_twice_in_a_campaign_is_refused(sqlite_stores: Stores) -> None:
    definition = json.dumps({"arms": ["a", "b"], "min_group_size": 9, "seats": 20})
    with serve(sqlite_stores) as live:
        for twice in ('"min_group_size": 2', '"noise": {"epsilon": 1, "epsilon": 2}'):
            body = f"{definition[:-1]}, {twice}}}"
            answer = send(live, "PUT", "/v1/campaigns/news", body, as_role="operator")
            assert answer.status_code == 400, answer.text
            assert answer.json()["type"].endswith("malformed-body")
        answer = send(
            live, "PUT", "/v1/tokens/x", '{"role": "monitor", "role": "admin"}', as_role="admin"
        )
        assert answer.status_code == 400
        assert live.aggregator.directory.names() == []
        assert "x" not in live.aggregator.access.roles()


@pytest.mark.parametrize("character", "\u061c\u200e\u200f\u202a\u202e\u2066\u2069")
def test_names_that_change_the_direction_of_writing_are_refused(
    sqlite_stores: Stores, character: str
) -> None:
    name = f"sport{character}1"
    with serve(sqlite_stores) as live:
        operator = live.client("operator")
        given = {"min_group_size": 2, "seats": 4, "policy": "shoal", "arm_slots": 4}
        with pytest.raises(ServiceError, match="writing direction") as caught:
            operator.create_campaign("news", arms=["a", name], **given)
        assert caught.value.name == "invalid-input"
        assert name not in str(caught.value)
        operator.create_campaign("news", arms=["a", "b"], **given)
        with pytest.raises(ServiceError, match="writing direction"):
            operator.add_arm("news", name)
        with Visitor(live, "operator") as visitor:
            sent = visitor.send("/campaigns/news/arms", arm=name, sure="yes")
            assert (sent.status_code, "writing direction" in sent.text) == (422, True)
    # One that an earlier release took goes on.
    assert Campaign(arms=["a", name], min_group_size=2, seats=4).arms[1] == name


def test_a_campaign_with_one_arm_and_no_room_for_another_is_refused(
    sqlite_stores: Stores,
) -> None:
    with serve(sqlite_stores) as live:
        operator = live.client("operator")
        given = {"arms": ["a"], "min_group_size": 2, "seats": 8}
        with pytest.raises(ServiceError, match="nothing to choose"):
            operator.create_campaign("news", **given)
        with Visitor(live, "operator") as visitor:
            sent = visitor.send("/new-campaign", name="news", arms="a", seats="8",
                                min_group_size="2", policy="shoal", sure="yes")  # fmt: skip
            assert (sent.status_code, "at least two" in sent.text) == (422, True)
        operator.create_campaign("news", **given, arm_slots=2)  # another may come
        operator.enrol("news", users(8))
        operator.open_round("news", 1, wait=0)
        live.work()
        assert live.client("app").report("news", 1, dict.fromkeys(users(8), 0.5)) == []
        assert operator.close_round("news", 1).state == "released"


@pytest.mark.parametrize(("age", "n_requests"), [(4.0, 1), (8.0, 2)])
def test_doctor_takes_a_stall_for_no_difference_of_clocks(
    monkeypatch: pytest.MonkeyPatch, age: float, n_requests: int
) -> None:
    """The request takes four seconds; its answer's time is that of its begin, or of before it."""
    asked: list[str] = []

    def slow(url: str, timeout: float) -> httpx.Response:
        asked.append(url)
        clock[0] += 4_000 * (len(asked) == 1)
        seconds = clock[0] / 1000 - age * (len(asked) == 1)
        return httpx.Response(200, headers={"date": formatdate(seconds, usegmt=True)})

    clock = [system_clock()]
    monkeypatch.setattr("shoal.service.doctor.system_clock", lambda: clock[0])
    monkeypatch.setattr("shoal.service.doctor.RETRY_SECONDS", 0.0)
    monkeypatch.setattr("httpx.get", slow)
    (finding,) = _aggregator_clock("http://127.0.0.1:9")
    assert finding.fault == ""
    assert len(asked) == n_requests
