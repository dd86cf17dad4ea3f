"""Threat 24: a learner that claims a far round ends no campaign, and loses no report."""

from __future__ import annotations

import pytest
from tests.support.live import serve
from tests.support.service import TestClock, close, even, report, start, users
from tests.support.stores import Stores

from shoal.client import ServiceError
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.epochs import MAX_ABANDONED
from shoal.service.problems import ProblemError
from shoal.wire import LearnerProgress


def refusal(caught: pytest.ExceptionInfo[ProblemError]) -> str:
    return caught.value.reason.name


@pytest.mark.parametrize("planned", [2, 1_000_000, 2**31 - 1])
def test_threat_24_the_learner_claims_a_far_round(aggregator: Aggregator, planned: int) -> None:
    """Reports that were acknowledged stay, and count once the learner is itself again."""
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 1.0))
    assert aggregator.epochs.sync_learner({"news": LearnerProgress(planned, 0)}) == []
    assert aggregator.rounds.get("news", 1).state == "open"
    assert aggregator.epochs.learner_state("news") == "ahead"
    assert aggregator.epochs.ahead("news") == planned
    with pytest.raises(ProblemError) as caught:
        aggregator.releases.close_round("news", 1)
    assert refusal(caught) == "learner-ahead"
    assert aggregator.n_abandoned("news") == 0
    aggregator.epochs.forget_claims(["news"])  # it was wrong
    aggregator.epochs.sync_learner({"news": LearnerProgress(1, 0)})
    assert sum(total.total for total in close(aggregator).totals) == 12_000


def test_threat_24_a_second_learner_that_is_behind_frees_no_round(aggregator: Aggregator) -> None:
    """The furthest claim since the start holds, whoever speaks last: after a restore, say."""
    start(aggregator, even(12, size=4), least=4)
    close(aggregator)
    epochs = aggregator.epochs
    first, standby = LearnerProgress(2, 2, 2), LearnerProgress(1, 1, 1)
    epochs.sync_learner({"news": first})
    assert epochs.sync_learner({"news": standby}) == []
    assert epochs.sync_learner({}) == []  # one with an empty store
    assert (epochs.learner_state("news"), epochs.ahead("news")) == ("ahead", 2)
    with pytest.raises(ProblemError) as caught:
        aggregator.request_round("news", 2)
    assert refusal(caught) == "learner-ahead"
    assert epochs.abandon("news", 2) == 1  # as it was told to
    epochs.sync_learner({"news": standby})
    assert epochs.learner_state("news") == "in touch"
    assert aggregator.request_round("news", 3)


def test_of_two_learners_that_are_ahead_the_furthest_claim_is_abandoned(
    aggregator: Aggregator,
) -> None:
    start(aggregator, even(12, size=4), least=4)
    close(aggregator)
    for claim in (LearnerProgress(2, 1, 1), LearnerProgress(5, 4, 4), LearnerProgress(3, 3, 3)):
        aggregator.epochs.sync_learner({"news": claim})
    assert aggregator.epochs.ahead("news") == 5
    aggregator.epochs.abandon("news", 3)
    assert aggregator.epochs.ahead("news") == 5  # a part of them is not all
    aggregator.epochs.abandon("news", 5)
    assert aggregator.epochs.learner_state("news") == "in touch"


@pytest.mark.parametrize("progress", [(2, 0, 0), (1, 1, 1), (1, 0, 1), (5, 4, 4)])
def test_abandoning_is_an_operators_act_logged_and_counted(
    aggregator: Aggregator, progress: tuple[int, int, int]
) -> None:
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 1.0))
    claim = LearnerProgress(*progress)
    counted: list[int] = []
    aggregator.epochs.on_abandon = counted.append
    aggregator.epochs.sync_learner({"news": claim})
    through = max(progress)
    for wrong in (through + 1, 0):
        with pytest.raises(ProblemError) as caught:
            aggregator.epochs.abandon("news", wrong)
        assert refusal(caught) == "invalid-input"
    assert aggregator.epochs.abandon("news", through) == through
    assert counted == [through]
    assert aggregator.n_abandoned("news") == through
    assert aggregator.epochs.learner_state("news") == "in touch"
    with aggregator.database.read() as connection:
        entry = connection.exec_driver_sql(
            "SELECT action, campaign, details FROM audit ORDER BY number DESC LIMIT 1"
        ).one()
    assert entry[0] == "round.abandon"
    assert f'"through":{through}' in entry[2]
    aggregator.rounds.request("news", through + 1)  # there is a way on
    aggregator.rounds.freeze("news", through + 1, even(12, size=4))
    report(aggregator, dict.fromkeys(users(12), 1.0), number=through + 1)
    assert close(aggregator, number=through + 1).totals


def test_no_number_that_is_confirmed_ends_a_campaign(sqlite_aggregator: Aggregator) -> None:
    start(sqlite_aggregator, even(12, size=4), least=4)
    sqlite_aggregator.epochs.sync_learner({"news": LearnerProgress(2**31 - 1, 0)})
    with pytest.raises(ProblemError):
        sqlite_aggregator.epochs.abandon("news", 2**31 - 1)
    assert sqlite_aggregator.epochs.abandon("news", 1 + MAX_ABANDONED) == 1 + MAX_ABANDONED
    assert sqlite_aggregator.epochs.learner_state("news") == "ahead"  # still: it is no true claim


def test_a_round_that_nobody_plans_can_be_given_up(aggregator: Aggregator) -> None:
    """A learner that is gone or quarantined: the operator has a way on."""
    clock = aggregator.clock
    assert isinstance(clock, TestClock)
    start(aggregator, even(12, size=4), least=4)
    close(aggregator)
    aggregator.rounds.request("news", 2)
    assert aggregator.epochs.abandon("news", 2) == 1
    assert aggregator.epochs.abandon("news", 2) == 0  # a repeat changes nothing
    aggregator.rounds.request("news", 3)
    assert aggregator.rounds.get("news", 2).state == "abandoned"


def test_no_round_is_opened_while_the_learner_is_ahead(stores: Stores) -> None:
    with serve(stores) as live:
        operator = live.client("operator", patience=0)
        operator.create_campaign("news", arms=["a", "b"], min_group_size=3, seats=6)
        operator.enrol("news", users(6))
        sync = live.aggregator.epochs.sync_learner
        sync({"news": LearnerProgress(2, 2)})
        with pytest.raises(ServiceError) as ahead:
            operator.open_round("news", 1, wait=0)
        assert ahead.value.name == "learner-ahead"
        assert live.aggregator.rounds.latest("news") is None
        live.aggregator.epochs.forget_claims(["news"])
        sync({})
        assert operator.open_round("news", 1, wait=0).state == "wanted"
        sync({"news": LearnerProgress(2, 2)})  # it was restored meanwhile
        with pytest.raises(ServiceError) as ahead:
            operator.open_round("news", 1, wait=0)
        assert ahead.value.name == "learner-ahead"
        operator.abandon("news", through=2)
        assert operator.open_round("news", 2, wait=0).state == "abandoned"
        assert operator.open_round("news", 3, wait=0).state == "wanted"
