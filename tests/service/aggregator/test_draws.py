"""Threat 27: who is counted with whom is drawn by the aggregator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.service import close, frozen, report, users

from shoal.arrays import IntArray
from shoal.model import Plan
from shoal.policies import POLICIES, make_policy
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.draws import draw
from shoal.service.campaign import Campaign
from shoal.wire import LearnerProgress


def campaign(n: int, **changes: object) -> Campaign:
    definition = {"arms": ["a", "b"], "min_group_size": 4, "seats": n, "policy": "random"}
    return Campaign.model_validate({**definition, **changes}).resolved()


@given(
    arms=st.lists(st.integers(-1, 2), min_size=12, max_size=40),
    seed=st.binary(min_size=8, max_size=8),
    data=st.data(),
)
@settings(deadline=None, derandomize=True, max_examples=200)
def test_everyone_who_can_be_is_in_a_group_of_one_arm_and_at_least_c(
    arms: list[int], seed: bytes, data: st.DataObject
) -> None:
    n = len(arms)
    proposed = data.draw(st.lists(st.integers(-1, 5), min_size=n, max_size=n))
    rules = campaign(n, arms=["a", "b", "c"], near_repeats=None)
    columns = np.array(arms, np.int32), np.array(proposed, np.int32)
    groups = draw(*columns, rules, seed=seed)
    Plan(np.maximum(columns[0], 0), groups, problem=rules.problem())  # refuses any other
    for arm in range(3):
        crowd = columns[0] == arm
        assert (groups[crowd] >= 0).all() == (crowd.sum() >= 4 or not crowd.any())
    assert (groups[columns[0] < 0] == -1).all()
    assert (draw(*columns, rules, seed=seed) == groups).all()  # the same after a crash


def test_nobody_is_drawn_where_nobody_plays_or_nobody_is_to_be_measured() -> None:
    nobody, arms = np.full(12, -1, np.int32), np.zeros(12, np.int32)
    assert (draw(nobody, nobody, campaign(12), seed=b"1") == -1).all()
    assert (draw(arms, nobody, campaign(12, measure="planned"), seed=b"1") == -1).all()


def test_groups_have_the_size_that_the_learner_proposes() -> None:
    arms, proposed = np.zeros(60, np.int32), (np.arange(60) // 10).astype(np.int32)
    groups = draw(arms, proposed, campaign(60), seed=b"1")
    assert np.bincount(groups).tolist() == [10] * 6
    assert (groups != proposed).any()


def test_threat_27_a_learner_can_not_choose_anyones_company() -> None:
    """It asks for the victim with three users whom it knows: they meet by chance alone."""
    n, known = 60, 3
    proposed = np.full(n, -1, np.int32)
    proposed[: known + 1] = 0  # seat 0 is the victim
    met, arms = 0, np.zeros(n, np.int32)
    for number in range(400):
        groups = draw(arms, proposed, campaign(n), seed=b"%d" % number)
        met += int((groups[: known + 1] == groups[0]).all())
    # The chance is 3·2·1 / (59·58·57) = 3e-5 a round; 3 times in 400 rounds below 3e-7.
    assert met < 3


def test_threat_27_near_repeats_of_a_group_that_the_arms_choose_are_limited() -> None:
    """A crowd of one group is chosen by its arm: {0..4}, then one user swapped, and so on."""
    n, limit = 40, 2
    rules, left_out = campaign(n, near_repeats=limit), []
    earlier: list[IntArray] = []
    for number in range(6):
        arms = np.zeros(n, np.int32)
        arms[[0, 1, 2, 3, 10 + number]] = 1  # the same four, and another fifth each round
        groups = draw(arms, np.full(n, -1, np.int32), rules, seed=b"%d" % number, earlier=earlier)
        left_out.append(bool((groups[arms == 1] == -1).all()))
        assert (groups[arms == 0] >= 0).all()
        earlier.insert(0, groups)
    assert left_out == [False] * (limit + 1) + [True] * 3


def test_the_same_company_again_is_no_near_repeat() -> None:
    arms = np.zeros(40, np.int32)
    arms[:5] = 1
    rules, proposed = campaign(40, near_repeats=0), np.full(40, -1, np.int32)
    first = draw(arms, proposed, rules, seed=b"1")
    assert (draw(arms, proposed, rules, seed=b"2", earlier=[first] * 9)[:5] >= 0).all()


def test_a_learner_that_must_choose_keeps_its_groups_and_the_others_are_measured() -> None:
    rules = campaign(20, policy="explore-then-commit", horizon=99)
    assert (rules.grouping, rules.measure, rules.near_repeats) == ("learner", "all", None)
    arms, proposed = np.zeros(20, np.int32), np.full(20, -1, np.int32)
    proposed[:4] = 0
    groups = draw(arms, proposed, rules, seed=b"1")
    assert (groups[:4] == 0).all()
    assert np.bincount(groups).tolist() == [4] * 5


@pytest.mark.parametrize("name", [n for n, e in POLICIES.items() if e.anonymous])
def test_the_registry_says_which_policies_take_any_groups(name: str) -> None:
    problem = Campaign(
        arms=["a", "b"], min_group_size=3, seats=12, horizon=99, policy=name
    ).problem()  # fmt: skip
    policy = make_policy(name, problem, rng=np.random.default_rng(0))
    assert policy.takes_groups == POLICIES[name].regroups


def test_a_plan_that_is_sent_again_is_the_same_and_another_is_refused(
    aggregator: Aggregator,
) -> None:
    aggregator.directory.create("news", campaign(12, grouping=None))
    aggregator.directory.enrol("news", users(12))
    aggregator.epochs.sync_learner({"news": LearnerProgress(0, 0)})
    aggregator.rounds.request("news", 1)
    proposal = frozen([0] * 12, [0] * 4 + [-1] * 8)
    assert aggregator.rounds.freeze("news", 1, proposal)
    drawn = aggregator.rounds.plan("news", 1)[1]
    assert drawn.groups.tolist() != proposal.groups.tolist()
    assert not aggregator.rounds.freeze("news", 1, proposal)
    assert aggregator.rounds.plan("news", 1)[1].hash == drawn.hash
    report(aggregator, dict.fromkeys(users(12), 1.0))
    assert sum(total.reporters for total in close(aggregator).totals) == 12
