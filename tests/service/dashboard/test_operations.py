from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.service.conftest import Stores
from tests.service.dashboard.visits import Visitor, create, play
from tests.service.live import Live, learning, serve

from shoal.errors import InvalidInputError
from shoal.service.audit import RULES
from shoal.service.dashboard.user_file import read_users

FORM = {
    "name": "push", "arms": "morning\r\nnoon\r\nevening\r\n", "min_group_size": "20",
    "seats": "1000", "policy": "shoal", "horizon": "", "colluders": "0", "reward_steps": "1",
    "seed": "0", "options": "drift = 0.001", "sure": "yes",
}  # fmt: skip


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    folder = tmp_path_factory.mktemp("stores")
    stores = Stores(f"sqlite:///{folder}/aggregator.db", f"sqlite:///{folder}/learner.db")
    with serve(stores, floor=5) as running:
        create(running, "taken")
        yield running


@pytest.fixture(scope="module")
def operator(live: Live) -> Iterator[Visitor]:
    with Visitor(live, "operator") as visitor:
        yield visitor


def test_a_campaign_is_made_from_the_form(live: Live, operator: Visitor) -> None:
    more = {"open_every_hours": "24", "close_after_hours": "6.5", "epsilon": "0.5"}
    answer = operator.send("/new-campaign", **FORM, **more)
    assert answer.headers["location"] == "/campaigns/push?done=created"
    made = live.aggregator.directory.campaign("push")
    assert made.arms == ["morning", "noon", "evening"]
    assert (made.min_group_size, made.horizon, made.reward_steps) == (20, None, 1)
    assert made.options == {"drift": 0.001}
    assert made.schedule is not None
    assert made.schedule.close_after_hours == 6.5
    assert made.noise is not None
    assert made.noise.epsilon == 0.5
    assert "Nothing has been released yet" in operator.http.get("/campaigns/push").text


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("name", "a b", "must be 1 to 64 letters"),
        ("name", "taken", "is the name of another campaign"),
        ("arms", "", "at least one"),
        ("arms", "a\na", "must be different"),
        ("min_group_size", "many", "must be a whole number"),
        ("min_group_size", "4", "must be at least 5, the floor"),
        ("min_group_size", "2000", "must be at most the seats"),
        ("seats", "", "is needed"),
        ("seats", "0", "must be at least 1"),
        ("seats", "99999999999", "must be at most 10,000,000"),
        ("horizon", "1.5", "must be a whole number"),
        ("policy", "explore-then-commit", "needs to know how many rounds"),
        ("policy", "ucb", "must be anonymous"),
        ("options", "speed = 3", "must be a known name"),
        ("options", "drift = -1", "must be a number of at least 0"),
        ("arm_slots", "2", "must be at least as many as there are arms"),
        ("close_after_hours", "5", "is needed"),
        ("epsilon", "none", "must be a number"),
        ("epsilon", "0", "must be at least 0.001"),
        ("sure", "", "must be ticked"),
    ],
)
def test_a_wrong_field_is_named_with_its_rule(
    live: Live, operator: Visitor, field: str, value: str, rule: str
) -> None:
    before = live.aggregator.directory.names()
    given = FORM | {"name": "wrong"} | {"options": ""} | {field: value}
    answer = operator.send("/new-campaign", **given)
    assert answer.status_code == 422
    assert rule in answer.text
    assert live.aggregator.directory.names() == before
    if field != "sure":
        said = operator.send("/new-campaign/check", **given).json()
        other = "open_every_hours" if field == "close_after_hours" else field
        assert rule in said[other], said


def test_every_wrong_field_is_told_whatever_else_is_wrong(operator: Visitor) -> None:
    given = FORM | {"name": "wrong", "arms": "", "min_group_size": "4"}
    hours = {"open_every_hours": "5", "close_after_hours": "6"}
    said = operator.send("/new-campaign/check", **given, **hours).json()
    assert "the floor" in said["min_group_size"]
    assert "at most the time from one opening to the next" in said["close_after_hours"]
    assert "at least one" in said["arms"]


def test_the_anonymity_page_of_noisy_totals_says_so(live: Live, operator: Visitor) -> None:
    operator.send("/new-campaign", **FORM | {"name": "noisy", "epsilon": "0.25"})
    operator.send("/campaigns/noisy/check")
    page = operator.http.get("/campaigns/noisy/anonymity").text
    assert "Epsilon of the noise, each round</dt><dd>0.25</dd>" in page
    assert "not counted: noise hides them" in page
    assert page.count(">not checked<") == 2
    assert page.count(">nothing released yet<") == len(RULES) - 2
    assert ">holds<" not in page
    assert "2: duplicate report" in page


def test_a_round_of_too_few_users_is_asked_for_twice(live: Live, operator: Visitor) -> None:
    operator.send("/new-campaign", **FORM | {"name": "nobody"})
    asked = operator.send("/campaigns/nobody/open", number="1")
    assert (asked.status_code, "fewer than C = 20 users" in asked.text) == (200, True)
    assert live.aggregator.rounds.latest("nobody") is None
    assert operator.send("/campaigns/nobody/open", number="1", sure="yes").status_code == 303
    assert live.aggregator.rounds.latest("nobody") is not None


def test_markup_in_a_name_stays_text(live: Live, operator: Visitor) -> None:
    markup = "</textarea><script>alert(1)</script>"
    refused = operator.send("/new-campaign", **FORM | {"name": markup, "arms": markup, "sure": ""})
    assert refused.status_code == 422
    assert "<script>alert" not in refused.text
    assert "&lt;script&gt;alert" in refused.text
    assert operator.send("/tokens", name=markup, role="app").text.count("<script") == 0
    operator.send("/new-campaign", **FORM | {"name": "markup", "arms": markup})
    for path in ("", "/arms"):
        page = operator.http.get(f"/campaigns/markup{path}").text
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page


def test_a_round_is_opened_and_after_a_second_question_closed(
    live: Live, operator: Visitor
) -> None:
    create(live, "rounds")
    place = "/campaigns/rounds"
    assert operator.send(f"{place}/open", number="1").status_code == 303
    live.work()
    assert "Close round 1" in operator.http.get(place).text
    asked = operator.send(f"{place}/close", number="1")
    assert asked.status_code == 200
    assert "Later reports are refused" in asked.text
    assert (last := live.aggregator.rounds.latest("rounds")) is not None
    assert last.state == "open"
    assert operator.send(f"{place}/close", number="1", sure="yes").status_code == 303
    assert (last := live.aggregator.rounds.latest("rounds")) is not None
    assert last.state == "released"
    late = operator.send(f"{place}/open", number="5")
    assert (late.status_code, "one after the other" in late.text) == (409, True)


def test_users_come_from_a_file_all_or_none(live: Live, operator: Visitor) -> None:
    operator.send("/new-campaign", **FORM | {"name": "files"})

    def upload(content: bytes, **fields: str) -> str:
        answer = operator.http.post(
            "/campaigns/files/users", data={"csrf": operator.csrf(), **fields},
            files={"file": ("users.csv", content, "text/csv")},
        )  # fmt: skip
        return answer.text

    roster = live.aggregator.directory.roster
    assert "Tick the box" in upload(b"user\nann\n")
    wrong = upload(b"user\nann\nbob smith\n", sure="yes")
    assert "line 3: user must be 1 to 128 letters" in wrong
    assert roster("files").users == []
    assert "2 users were enrolled; 0 of the file" in upload(b"user\nann\nbob\n", sure="yes")
    assert "1 users were enrolled; 2 of the file" in upload(b"user\nann\nbob\neve\n", sure="yes")
    assert roster("files").users == ["ann", "bob", "eve"]
    many = "\n".join(["user", *(f"u{i}" for i in range(998))]).encode()
    assert "too few free seats" in upload(many, sure="yes")
    assert len(roster("files").users) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must have a first line with user"),
        (b"user\n", "must have a first line with user"),
        (b"name\nann\n", "line 1: the first line must name a column user; got 'name'"),
        (b"user\nann\n\nann\n", "line 4: user must be new; 'ann' is on line 2"),
        (b"user\n\xff\n", "line 2: the file must be UTF-8 text"),
        (b'user\n"ann\n', "line 2"),
        (b"user,age\nann,3\n,4\n", "line 3: user must be"),
        (b"user\n<script>\n", "line 2: user must be"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(content: bytes, said: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(said)):
        read_users(content)


def test_files_of_spreadsheets_are_read() -> None:
    assert read_users(b"\xef\xbb\xbfId,User\r\n1,ann\r\n2,b@b.example\r\n") == [
        "ann",
        "b@b.example",
    ]


def test_arms_are_added_and_retired(live: Live, operator: Visitor) -> None:
    create(live, "arms")
    place = "/campaigns/arms"
    assert "Add the arm culture" in operator.send(f"{place}/arms", arm="culture").text
    assert operator.send(f"{place}/arms", arm="culture", sure="yes").status_code == 303
    assert "All slots are taken" in operator.http.get(f"{place}/arms").text
    again = operator.send(f"{place}/arms", arm="culture", sure="yes")
    assert (again.status_code, "There is an arm culture already" in again.text) == (422, True)
    full = operator.send(f"{place}/arms", arm="one more", sure="yes")
    assert (full.status_code, "no free slot" in full.text) == (422, True)
    assert "can&#39;t be brought back" in operator.send(f"{place}/arms/retire", arm="sport").text
    assert operator.send(f"{place}/arms/retire", arm="sport", sure="yes").status_code == 303
    found = {arm.name: arm.until for arm in live.aggregator.directory.arms("arms")}
    assert found == {"world": None, "sport": 1, "science": None, "culture": None}
    with learning(live):
        play(live, 1, "arms")
        assert "retired before round 1" in operator.http.get(f"{place}/arms").text


def test_tokens_are_shown_once_replaced_after_a_question_and_revoked(
    live: Live, operator: Visitor
) -> None:
    made = operator.send("/tokens", name="phone", role="app").text
    token = re.search(r"shoal\.phone\.[\w-]{43}", made)
    assert token
    assert live.aggregator.access.role_of(token[0]) == "app"
    assert token[0] not in operator.http.get("/tokens").text
    assert "Replace the token phone?" in operator.send("/tokens", name="phone", role="app").text
    assert live.aggregator.access.role_of(token[0]) == "app"
    operator.send("/tokens", name="phone", role="app", sure="yes")
    assert live.aggregator.access.role_of(token[0]) is None
    assert "Revoke the token phone?" in operator.send("/tokens/revoke", name="phone").text
    assert "phone" in live.aggregator.access.roles()
    assert operator.send("/tokens/revoke", name="phone", sure="yes").status_code == 303
    assert "phone" not in live.aggregator.access.roles()
    for path in ("/tokens/revoke", "/tokens"):
        asked = operator.send(path, name="learner", role="learner").text
        assert "the learner plans no rounds" in asked
        assert "plans no rounds" not in operator.send(path, name="app", role="app").text
    assert operator.send("/tokens", name="a b", role="app").status_code == 422
    assert operator.send("/tokens", name="a", role="king").status_code == 422
