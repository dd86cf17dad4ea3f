"""Users and arms that come and go, seen by the learner."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.live import Live, serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import Client, ServiceError
from shoal.service.campaign import Campaign
from shoal.service.learner.run import CampaignRun
from shoal.service.learner.service import Learner

TASTES = [{"a": 0.9, "b": 0.4, "c": 0.1}, {"a": 0.1, "b": 0.4, "c": 0.9}]


def begin(live: Live) -> None:
    operator = live.client("operator")
    operator.create_campaign(
        "news", arms=["a", "b"], arm_slots=3, min_group_size=3, seats=40, policy="shoal"
    )
    operator.enrol("news", users(12))


def change(live: Live, number: int) -> None:
    operator = live.client("operator")
    if number == 3:
        operator.add_arm("news", "c")
    elif number == 4:
        operator.withdraw("news", users(4))
    elif number == 6:
        operator.enrol("news", ["new", *users(2)])
        operator.retire_arm("news", "b")


def play(live: Live, number: int) -> dict[str, str]:
    operator, app = live.client("operator"), live.client("app")
    operator.open_round("news", number, wait=0)
    live.work()
    arms = app.assignments("news")
    app.report("news", number, {user: TASTES[ord(user[-1]) % 2][arm] for user, arm in arms.items()})
    operator.close_round("news", number)
    live.work()
    return arms


@pytest.mark.parametrize("seats", [400, 5000], ids=["small", "large"])
def test_a_campaign_with_many_empty_seats_learns_from_those_who_are_there(seats: int) -> None:
    campaign = Campaign(arms=["a", "b"], min_group_size=5, seats=seats, policy="shoal")
    run, rng = CampaignRun(campaign), np.random.default_rng(0)
    occupied = np.zeros(seats, bool)
    occupied[rng.choice(seats, 40, replace=False)] = True
    arms, groups = run.plan(1, occupied, np.ones(2, bool))
    assert (groups[occupied] >= 0).mean() > 0.5
    assert (arms[~occupied] == -1).all()


def test_a_lost_store_is_learnt_again_whoever_and_whatever_came_and_went(
    sqlite_stores: Stores,
) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        played = {}
        for number in range(1, 10):
            change(live, number)
            played[number] = set(play(live, number).values())
            if number == 5:  # forget everything but the store
                live.learner = Learner(live.learner.database, live.learner._client)
        assert "c" not in played[1] | played[2]
        assert set().union(*(played[number] for number in range(6, 10))) == {"a", "c"}
        before = sha256(live.learner.runs["news"].policy_state()).hexdigest()
        live.learner.database.close()
        Path(sqlite_stores.learner.removeprefix("sqlite:///")).unlink()
        live.learner = Learner(sqlite_stores.open("learner"), live.learner._client)
        live.work()
        assert sha256(live.learner.runs["news"].policy_state()).hexdigest() == before


def test_a_plan_that_was_overtaken_is_made_anew_from_what_is_stored(
    sqlite_stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Someone leaves between the look at the seats and the plan: all is as if it were before."""
    states = []
    for overtaken in (True, False):
        stores = Stores(
            sqlite_stores.aggregator.replace(".db", f"-{overtaken}.db"),
            sqlite_stores.learner.replace(".db", f"-{overtaken}.db"),
        )
        with serve(stores) as live:
            begin(live)
            play(live, 1)
            operator, plan = live.client("operator"), live.learner.runs["news"].plan

            def overtake(
                *arguments: Any, operator: Client = operator, plan: Callable[..., Any] = plan
            ) -> Any:
                operator.withdraw("news", ["user-3"])
                return plan(*arguments)

            if overtaken:
                monkeypatch.setattr(live.learner.runs["news"], "plan", overtake)
            else:
                operator.withdraw("news", ["user-3"])
            assert "user-3" not in play(live, 2)
            states.append(sha256(live.learner.runs["news"].policy_state()).hexdigest())
    assert states[0] == states[1]


def test_a_policy_that_can_not_take_new_arms_is_refused_when_the_campaign_is_made(
    sqlite_stores: Stores,
) -> None:
    with serve(sqlite_stores) as live:
        operator = live.client("operator")
        definition = {"arms": ["a", "b"], "min_group_size": 3, "seats": 40, "policy": "random"}
        with pytest.raises(ServiceError, match="arm_slots must be the number of arms for 'random'"):
            operator.create_campaign("news", **definition, arm_slots=3)
        with pytest.raises(ServiceError, match="arm_slots must be at least the number of arms"):
            operator.create_campaign("news", **definition, arm_slots=1)
        operator.create_campaign("news", **definition)
        with pytest.raises(ServiceError) as caught:
            operator.retire_arm("news", "a")
        assert caught.value.name == "arms-fixed"


def test_arms_are_told_with_their_rounds_under_any_name(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live:
        begin(live)
        operator = live.client("operator")
        campaign_state = operator.add_arm("news", "a/b c?d%é")
        assert campaign_state["arms"][2] == {"name": "a/b c?d%é", "since": 1, "until": None}
        assert campaign_state["definition"]["arms"] == ["a", "b", "a/b c?d%é"]
        operator.retire_arm("news", "a/b c?d%é")
        operator.retire_arm("news", "a/b c?d%é")
        assert operator.campaign("news")["arms"][2]["until"] == 1
