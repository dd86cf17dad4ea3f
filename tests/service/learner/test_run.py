from __future__ import annotations

import numpy as np

from shoal.client import Total
from shoal.model import Feedback, Plan
from shoal.policies.base import Choice, Policy
from shoal.service.campaign import Campaign
from shoal.service.learner.run import CampaignRun


class Pairs(Policy):
    """Groups of two neighbours; remembers what it is told."""

    takes_merged = True
    learnt_from: tuple[Plan, Feedback]

    def _choose(self) -> Choice:
        n = self.problem.n_users
        return np.zeros(n, np.int32), np.arange(n, dtype=np.int32) // 2, 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self.learnt_from = plan, feedback


def campaign(**changes: object) -> Campaign:
    definition = {"arms": ["a", "b"], "min_group_size": 2, "seats": 8, "policy": "random"}
    return Campaign.model_validate(definition | changes)


def run_of_pairs() -> tuple[CampaignRun, Pairs]:
    run = CampaignRun(campaign())
    policy = Pairs(run.campaign.problem(), rng=np.random.default_rng(0))
    run.policy = policy
    return run, policy


def test_absent_seats_and_groups_that_are_then_too_small_leave_the_plan() -> None:
    run, _ = run_of_pairs()
    occupied = np.array([1, 1, 1, 0, 0, 0, 1, 1], bool)
    arms, groups = run.plan(1, occupied, np.ones(2, bool))
    assert arms.tolist() == [0, 0, 0, -1, -1, -1, 0, 0]
    assert groups.tolist() == [0, 0, -1, -1, -1, -1, 3, 3]


def test_a_merged_total_reaches_a_policy_that_takes_it_as_one_group() -> None:
    run, policy = run_of_pairs()
    counted = np.array([1, 1, 1, 0, 1, 0, 0, 0], bool)
    totals = [Total("a", (0,), 2, 1500), Total("a", (1, 2), 2, 400)]
    run.plan(1, np.ones(8, bool), np.ones(2, bool))
    assert run.learn(totals, counted)
    plan, feedback = policy.learnt_from
    assert plan.groups.tolist() == [0, 0, 1, 1, 1, 1, 3, 3]
    assert feedback.totals.tolist() == [1.5, 0.4, 0.0, 0.0]
    assert feedback.released.tolist() == [1, 1, 0, 0]
    assert feedback.reported.tolist() == [1, 1, 1, 0, 1, 0, 0, 0]


def test_any_other_policy_is_told_that_merged_groups_are_withheld() -> None:
    run, policy = run_of_pairs()
    policy.takes_merged = False
    counted = np.array([1, 1, 1, 0, 1, 0, 0, 0], bool)
    run.plan(1, np.ones(8, bool), np.ones(2, bool))
    run.learn([Total("a", (0,), 2, 1500), Total("a", (1, 2), 2, 400)], counted)
    plan, feedback = policy.learnt_from
    assert plan.groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert feedback.totals.tolist() == [1.5, 0.0, 0.0, 0.0]
    assert feedback.reported.tolist() == [1, 1, 0, 0, 0, 0, 0, 0]


def test_a_repeated_plan_is_told_once_with_all_its_rounds() -> None:
    definition = {"policy": "explore-then-commit", "horizon": 200, "options": {"exploration": 0.5}}
    run = CampaignRun(campaign(**definition))
    plan = run.policy.ask()
    assert plan.repeats > 1
    totals = [Total("a", (int(g),), 3, 1000) for g in np.unique(plan.groups[plan.groups >= 0])]
    counted = plan.groups >= 0
    for number in range(1, plan.repeats + 1):
        resumed = CampaignRun(campaign(**definition))
        resumed.restore(run.policy_state(), run.feedback_state())
        assert resumed.feedback_state() == run.feedback_state()
        moved_on = run.learn(totals, counted)
        assert moved_on == (number == plan.repeats)
        assert resumed.learn(totals, counted) == moved_on
        assert resumed.policy_state() == run.policy_state()
    assert run.policy.rounds == run.learnt == plan.repeats
