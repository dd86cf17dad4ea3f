from __future__ import annotations

import pytest
from tests.support.live import Live
from tests.support.visits import FORM, Visitor


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
    assert "No curves yet" in operator.http.get("/campaigns/push").text


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("name", "a b", "must be 1 to 64 ASCII letters"),
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


def test_what_to_expect_of_c_follows_what_is_typed(operator: Visitor) -> None:
    texts = [
        operator.send("/new-campaign/check", **FORM | given).json()["expected"]
        for given in ({"min_group_size": "5"}, {"min_group_size": "50"}, {"epsilon": "1"})
    ]
    assert texts[0].startswith("With C = 5, this share of totals would show everyone's reward")
    assert "If it is more than 10% of totals, take a larger C" in texts[0]
    assert (texts[1].startswith("With C = 50, "), texts[2]) == (True, "")
    assert texts[0] in operator.send(
        "/new-campaign", **FORM | {"sure": "", "min_group_size": "5"}
    ).text.replace("&#39;", "'")


def test_markup_in_a_name_stays_text(live: Live, operator: Visitor) -> None:
    markup = "</textarea><script>alert(1)</script>"
    refused = operator.send("/new-campaign", **FORM | {"name": markup, "arms": markup, "sure": ""})
    assert refused.status_code == 422
    assert "<script>alert" not in refused.text
    assert "&lt;script&gt;alert" in refused.text
    assert operator.send("/tokens", name=markup, role="app").text.count("<script") == 0
    operator.send("/new-campaign", **FORM | {"name": "markup", "arms": f"{markup}\nother"})
    for path in ("", "/arms"):
        page = operator.http.get(f"/campaigns/markup{path}").text
        assert "<script>alert" not in page
        assert "&lt;script&gt;alert" in page
