"""A round is wanted, open with a frozen plan, then released, one after the other; or abandoned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy import select
from tests.support.service import close, even, frozen, report, users

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.rounds import FrozenPlan
from shoal.service.campaign import Campaign
from shoal.service.problems import ProblemError
from shoal.service.store import aggregator as store
from shoal.wire import LearnerProgress

PLAN = even(8, size=4)


def begin(aggregator: Aggregator, *, horizon: int | None = None, n_users: int = 8) -> None:
    """Make a campaign of eight seats, and let the learner say that it is new to it."""
    campaign = Campaign(
        arms=["a", "b"],
        min_group_size=4,
        seats=8,
        policy="random",
        grouping="learner",
        measure="planned",
        horizon=horizon,
    )
    aggregator.directory.create("news", campaign)
    aggregator.directory.enrol("news", users(n_users))
    aggregator.epochs.sync_learner({})


def refusal(action: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(ProblemError) as caught:
        action(*arguments)
    return caught.value.reason.name


def state(aggregator: Aggregator) -> tuple[int, str] | None:
    last = aggregator.rounds.latest("news")
    return None if last is None else (last.number, last.state)


def test_rounds_follow_each_other_and_each_step_is_made_once(aggregator: Aggregator) -> None:
    begin(aggregator, horizon=2)
    rounds = aggregator.rounds
    assert state(aggregator) is None
    for number in (1, 2):
        assert rounds.request("news", number)
        assert (state(aggregator), rounds.request("news", number)) == ((number, "wanted"), False)
        assert rounds.freeze("news", number, PLAN)
        assert (state(aggregator), rounds.freeze("news", number, PLAN)) == ((number, "open"), False)
        close(aggregator, number=number)
        assert state(aggregator) == (number, "released")
        assert not rounds.request("news", number)
    assert refusal(rounds.request, "news", 3) == "campaign-over"


def test_no_round_is_left_out_or_asked_for_before_the_last_has_ended(
    aggregator: Aggregator,
) -> None:
    begin(aggregator)
    rounds = aggregator.rounds
    for number in (0, 2):
        assert refusal(rounds.request, "news", number) == "round-order"
    rounds.request("news", 1)
    assert refusal(rounds.request, "news", 2) == "round-order"
    rounds.freeze("news", 1, PLAN)
    assert refusal(rounds.request, "news", 2) == "round-order"


def test_a_round_or_a_campaign_that_is_not_there_is_refused(aggregator: Aggregator) -> None:
    begin(aggregator)
    rounds = aggregator.rounds
    for find in (rounds.get, rounds.plan, rounds.eligible, rounds.fetch):
        assert refusal(find, "news", 1) == "unknown-round"
        assert refusal(find, "other", 1) == "unknown-campaign"
    assert refusal(rounds.freeze, "news", 1, PLAN) == "unknown-round"
    assert refusal(rounds.latest, "other") == "unknown-campaign"
    assert refusal(rounds.fetch, "news", None) == "round-not-open"
    with pytest.raises(ProblemError, match=r"None was asked for yet; got round 1\.$"):
        rounds.get("news", 1)
    rounds.request("news", 1)
    for number in (0, 2):
        with pytest.raises(ProblemError, match=rf"The last is round 1; got round {number}\.$"):
            rounds.get("news", number)


def test_of_rounds_that_were_abandoned_at_once_each_is_abandoned(aggregator: Aggregator) -> None:
    begin(aggregator)
    rounds = aggregator.rounds
    rounds.request("news", 1)
    rounds.freeze("news", 1, PLAN)
    aggregator.epochs.sync_learner({"news": LearnerProgress(6, 5, 6)})
    assert aggregator.epochs.abandon("news", 6) == 6
    assert [(rounds.get("news", n).number, rounds.get("news", n).state) for n in (1, 3, 6)] == [
        (1, "abandoned"), (3, "abandoned"), (6, "abandoned")
    ]  # fmt: skip
    for action in (rounds.plan, aggregator.releases.read, aggregator.releases.close_round):
        assert refusal(action, "news", 3) == "round-abandoned"
    assert refusal(rounds.freeze, "news", 3, PLAN) == "round-not-open"
    assert refusal(rounds.get, "news", 7) == "unknown-round"
    rounds.request("news", 7)
    with aggregator.database.write() as connection:  # as of a damaged store
        row = store.rounds.c.number == 6
        connection.execute(store.rounds.delete().where(row))
    assert refusal(rounds.get, "news", 3) == "unknown-round"  # not the wanted round 7


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (even(4, size=4), "plan-refused"),  # of too few seats
        (frozen([0] * 7 + [-1], [0] * 7 + [-1]), "roster-changed"),  # leaves a user out
        (frozen([0] * 8, [0] * 5 + [1] * 3), "plan-refused"),  # a group below C
        (frozen([0, 1] * 4, [0] * 8), "plan-refused"),  # a group of two arms
    ],
)  # fmt: skip
def test_a_plan_that_breaks_a_rule_opens_no_round(
    aggregator: Aggregator, plan: FrozenPlan, reason: str
) -> None:
    begin(aggregator)
    aggregator.rounds.request("news", 1)
    assert refusal(aggregator.rounds.freeze, "news", 1, plan) == reason
    assert state(aggregator) == (1, "wanted")


def test_a_group_number_of_an_empty_seat_is_refused(aggregator: Aggregator) -> None:
    begin(aggregator, n_users=7)
    aggregator.rounds.request("news", 1)
    plan = frozen([0] * 7 + [-1], [0] * 8)
    assert refusal(aggregator.rounds.freeze, "news", 1, plan) == "plan-refused"


def test_a_plan_is_read_as_it_was_frozen(aggregator: Aggregator) -> None:
    begin(aggregator)
    aggregator.rounds.request("news", 1)
    assert refusal(aggregator.rounds.plan, "news", 1) == "round-not-open"
    aggregator.rounds.freeze("news", 1, PLAN)
    again = Aggregator(aggregator.database, key=bytes(32))
    round_id, plan = again.rounds.plan("news", 1)
    assert (round_id, plan.hash) == (again.rounds.get("news", 1).id, PLAN.hash)
    assert plan.arms.tolist() == PLAN.arms.tolist()
    assert plan.groups.tolist() == PLAN.groups.tolist()
    again.reports.close()


def test_an_abandoned_round_has_no_plan_no_reports_and_no_release(aggregator: Aggregator) -> None:
    begin(aggregator)
    aggregator.rounds.request("news", 1)
    aggregator.rounds.freeze("news", 1, PLAN)
    report(aggregator, dict.fromkeys(users(8), 1.0))
    aggregator.epochs.sync_learner({"news": LearnerProgress(2, 1)})  # it is further than this store
    aggregator.epochs.abandon("news", 2)
    assert aggregator.rounds.get("news", 1).state == "abandoned"
    assert state(aggregator) == (2, "abandoned")
    assert refusal(aggregator.rounds.plan, "news", 2) == "round-abandoned"
    for close_or_read in (aggregator.releases.close_round, aggregator.releases.read):
        assert refusal(close_or_read, "news", 1) == "round-abandoned"
    with aggregator.database.read() as connection:
        assert connection.execute(select(store.reports)).all() == []
        assert connection.execute(select(store.sums)).all() == []
    assert report(aggregator, {"user-0": 1.0}) == [(0, "late-report")]
    assert aggregator.rounds.request("news", 3)


def test_everyone_has_reported_when_all_who_play_have(aggregator: Aggregator) -> None:
    begin(aggregator, n_users=7)
    aggregator.rounds.request("news", 1)
    aggregator.rounds.freeze("news", 1, frozen([0] * 7 + [-1], [0] * 6 + [-1, -1]))
    round_ = aggregator.rounds.get("news", 1)
    report(aggregator, dict.fromkeys(users(6), 1.0))
    assert not aggregator.rounds.all_reported(round_)
    report(aggregator, {"user-6": 1.0})
    assert aggregator.rounds.all_reported(round_)


def test_estimates_are_of_at_least_c_users(aggregator: Aggregator) -> None:
    begin(aggregator, n_users=3)
    aggregator.rounds.request("news", 1)
    few = frozen([0] * 3 + [-1] * 5, [-1] * 8)
    aggregator.rounds.freeze("news", 1, few)
    millionths = np.array([[500_000, -1], [1, -1]], "<i4").tobytes()
    keep = aggregator.rounds.keep_estimates
    assert refusal(keep, "news", 1, millionths) == "invalid-input"
    close(aggregator)
    aggregator.directory.enrol("news", users(4))
    aggregator.rounds.request("news", 2)
    aggregator.rounds.freeze("news", 2, frozen([0] * 4 + [-1] * 4, [0] * 4 + [-1] * 4))
    keep("news", 2, b"")
    keep("news", 2, millionths)  # the last ones count
    with aggregator.database.read() as connection:
        stored = connection.scalars(select(store.estimates.c.millionths)).all()
    assert [bytes(kept) for kept in stored] == [millionths]


def test_whoever_waits_is_woken_by_a_change_also_by_one_that_fails(
    sqlite_aggregator: Aggregator,
) -> None:
    """A commit may have taken effect and raised all the same."""
    begin(sqlite_aggregator)
    before = sqlite_aggregator.notifier.version
    sqlite_aggregator.rounds.request("news", 1)
    assert sqlite_aggregator.rounds.latest("news") is not None
    assert sqlite_aggregator.notifier.version > before
    before = sqlite_aggregator.notifier.version
    with pytest.raises(ZeroDivisionError), sqlite_aggregator.rounds.change("news"):
        raise ZeroDivisionError
    assert sqlite_aggregator.notifier.version > before
