"""Arms that come and go, seen by the aggregator."""

from __future__ import annotations

import pytest
from tests.support.service import KEY, TestClock, frozen, report, users
from tests.support.stores import Stores

from shoal.service.aggregator import Aggregator
from shoal.service.campaign import Campaign
from shoal.service.problems import ProblemError
from shoal.wire import ArmState, LearnerProgress


def campaign(**changes: object) -> Campaign:
    given = {
        "arms": ["a", "b"], "arm_slots": 3, "min_group_size": 3, "seats": 6, "policy": "shoal",
    }  # fmt: skip
    return Campaign.model_validate(given | changes)


def begin(aggregator: Aggregator, **changes: object) -> None:
    aggregator.directory.create("news", campaign(**changes))
    aggregator.directory.enrol("news", users(6))
    aggregator.epochs.sync_learner({})


def refusal(caught: pytest.ExceptionInfo[ProblemError]) -> str:
    return caught.value.reason.name


def test_a_change_counts_from_the_round_after_the_last_one_asked_for(
    aggregator: Aggregator,
) -> None:
    begin(aggregator)
    aggregator.rounds.request("news", 1)
    assert aggregator.add_arm("news", "c")
    assert not aggregator.add_arm("news", "c")
    assert aggregator.retire_arm("news", "b")
    assert not aggregator.retire_arm("news", "b")
    assert aggregator.rounds.eligible("news", 1)[1].tolist() == [True, True, False]
    with pytest.raises(ProblemError) as caught:
        aggregator.rounds.freeze("news", 1, frozen([2] * 6, [0] * 6))
    assert refusal(caught) == "plan-refused"
    aggregator.rounds.freeze("news", 1, frozen([1] * 6, [0] * 6))
    report(aggregator, dict.fromkeys(users(6), 1.0))
    document = aggregator.releases.close_round("news", 1)
    assert document is not None
    assert [total.arm for total in document.totals] == ["b"]
    aggregator.rounds.request("news", 2)
    assert aggregator.rounds.eligible("news", 1)[1].tolist() == [True, True, False]
    assert aggregator.rounds.eligible("news", 2)[1].tolist() == [True, False, True]
    with pytest.raises(ProblemError) as caught:
        aggregator.rounds.freeze("news", 2, frozen([1] * 6, [0] * 6))
    assert refusal(caught) == "plan-refused"
    aggregator.epochs.sync_learner({"news": LearnerProgress(1, 1)})
    aggregator.rounds.freeze("news", 2, frozen([2] * 6, [0] * 6))
    report(aggregator, dict.fromkeys(users(6), 1.0), number=2)
    document = aggregator.releases.close_round("news", 2)
    assert document is not None
    assert [total.arm for total in document.totals] == ["c"]
    assert aggregator.directory.arms("news") == [
        ArmState("a", 1, None),
        ArmState("b", 1, 2),
        ArmState("c", 2, None),
    ]


def test_who_may_play_what_in_a_frozen_round_stays_as_it_was(aggregator: Aggregator) -> None:
    begin(aggregator)
    aggregator.directory.move("news", [], ["user-5"])
    aggregator.rounds.request("news", 1)
    aggregator.rounds.freeze("news", 1, frozen([0] * 5 + [-1], [0] * 5 + [-1]))
    before = [mask.tolist() for mask in aggregator.rounds.eligible("news", 1)]
    aggregator.directory.enrol("news", ["user-5"])
    aggregator.directory.move("news", [], ["user-0"])
    aggregator.add_arm("news", "c")
    assert [mask.tolist() for mask in aggregator.rounds.eligible("news", 1)] == before
    assert before == [[True] * 5 + [False], [True, True, False]]


def test_arms_outlast_the_process(stores: Stores) -> None:
    for expected in (["a", "b"], ["a", "b", "c"]):
        aggregator = Aggregator(stores.open("aggregator"), key=KEY, clock=TestClock())
        aggregator.directory.create("news", campaign())
        assert aggregator.directory.campaign("news").arms == expected
        aggregator.add_arm("news", "c")
        assert aggregator.directory.campaign("news").arms == ["a", "b", "c"]
        aggregator.close()


@pytest.mark.parametrize(
    ("act", "arm", "why"),
    [
        ("add", "d", "arms-full"),
        ("add", "b", "arm-retired"),
        ("retire", "d", "unknown-arm"),
        ("retire", "a", "last-arm"),
    ],
)
def test_changes_that_can_not_be_are_refused(
    sqlite_aggregator: Aggregator, act: str, arm: str, why: str
) -> None:
    begin(sqlite_aggregator)
    sqlite_aggregator.add_arm("news", "c")
    for gone in ("b", "c"):
        sqlite_aggregator.retire_arm("news", gone)
    change = sqlite_aggregator.add_arm if act == "add" else sqlite_aggregator.retire_arm
    with pytest.raises(ProblemError) as caught:
        change("news", arm)
    assert refusal(caught) == why


def test_a_policy_that_needs_all_its_arms_keeps_them(sqlite_aggregator: Aggregator) -> None:
    begin(sqlite_aggregator, policy="random", arm_slots=None)
    with pytest.raises(ProblemError) as caught:
        sqlite_aggregator.retire_arm("news", "a")
    assert refusal(caught) == "arms-fixed"
