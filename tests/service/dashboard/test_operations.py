from __future__ import annotations

from tests.support.live import Live, learning
from tests.support.visits import FORM, Visitor, create, play


def test_a_round_of_too_few_users_is_asked_for_twice(live: Live, operator: Visitor) -> None:
    operator.send("/new-campaign", **FORM | {"name": "nobody"})
    asked = operator.send("/campaigns/nobody/open", number="1")
    assert (asked.status_code, "fewer than C = 20 users" in asked.text) == (200, True)
    assert live.aggregator.rounds.latest("nobody") is None
    assert operator.send("/campaigns/nobody/open", number="1", sure="yes").status_code == 303
    assert live.aggregator.rounds.latest("nobody") is not None


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
    assert "line 3: user must be 1 to 128 ASCII letters" in wrong
    assert roster("files").users == []
    assert "2 users were enrolled; 0 of the file" in upload(b"user\nann\nbob\n", sure="yes")
    assert "1 user was enrolled; 2 of the file" in upload(b"user\nann\nbob\neve\n", sure="yes")
    assert roster("files").users == ["ann", "bob", "eve"]
    many = "\n".join(["user", *(f"u{i}" for i in range(998))]).encode()
    assert "too few free seats" in upload(many, sure="yes")
    assert len(roster("files").users) == 3


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
