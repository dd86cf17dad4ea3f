"""The adapter has MABWiser's methods and arguments, and shows its learner totals only."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import mabwiser.mab
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from mabwiser.mab import LearningPolicy
from tests.support.policies import Greedy

from shoal.errors import InvalidInputError
from shoal.mab import MAB

ARMS = ["email", "push", "letter"]
USERS = [f"user-{number}" for number in range(60)]
TASTES = np.full((60, 3), 0.2) + 0.6 * np.eye(3)[np.arange(60) % 3]


def draw(decisions: list[str], rng: np.random.Generator) -> list[float]:
    chances = TASTES[np.arange(60), [ARMS.index(arm) for arm in decisions]]
    return [float(reward) for reward in rng.random(60) < chances]


def play(mab: Any, rows: Any, rounds: int) -> float:
    """Play in MABWiser's manner; return the reward per user and round of the last quarter."""
    rng = np.random.default_rng(1)
    first = rng.choice(ARMS, 60).tolist()
    mab.fit(first, draw(first, rng), rows)
    earned = []
    for _ in range(rounds):
        decisions = mab.predict(rows)
        rewards = draw(decisions, rng)
        mab.partial_fit(decisions, rewards, rows)
        earned.append(np.mean(rewards))
    return float(np.mean(earned[-rounds // 4 :]))


def test_the_ported_example_changes_at_most_five_lines() -> None:
    page = Path(__file__).parents[1] / "docs/tutorials/from-mabwiser.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    before, after = (block.splitlines() for block in blocks[:2])
    assert any("mabwiser" in line for line in before)
    assert not any("mabwiser" in line for line in after)
    assert len(before) == len(after)
    assert sum(map(str.__ne__, before, after)) <= 5


@pytest.mark.parametrize("method", ["fit", "partial_fit", "predict"])
def test_methods_take_what_mabwisers_take_with_users_for_contexts(method: str) -> None:
    ours, theirs = (list(inspect.signature(getattr(kind, method)).parameters)
                    for kind in (MAB, mabwiser.mab.MAB))  # fmt: skip
    assert ours == [name.replace("contexts", "users") for name in theirs]


def test_the_same_program_personalises_with_both() -> None:
    # A random arm earns 0.4, the best single one too, and everyone's own 0.8.
    theirs = mabwiser.mab.MAB(ARMS, LearningPolicy.LinTS(alpha=0.3), seed=7)
    ours = MAB(ARMS, users=USERS, min_group_size=5, seed=7)
    assert play(theirs, np.eye(60), 60) > 0.7
    assert play(ours, USERS, 200) > 0.7
    assert ours.feedback is not None
    assert (ours.feedback.to_frame()["reports"] >= 5).all()


def test_single_rewards_reach_the_learner_in_totals_only() -> None:
    mab = MAB(ARMS, users=USERS, min_group_size=5, seed=0)
    decisions = mab.predict()
    group = mab.policy.ask().groups
    one, other = (int(u) for u in np.flatnonzero(group == group[group >= 0][0])[:2])
    told = []
    for lucky in (one, other):  # who of a group had the reward makes no difference
        mab = MAB(ARMS, users=USERS, min_group_size=5, seed=0)
        rewards = np.zeros(60)
        rewards[lucky] = 1
        mab.partial_fit(pd.Series(mab.predict(USERS)), pd.Series(rewards), np.array(USERS))
        assert mab.feedback is not None
        told.append(mab.feedback.totals.tolist())
        assert mab.policy.rounds == 1
    assert told[0] == told[1]
    assert sum(told[0]) == 1.0
    assert len(decisions) == 60


def test_a_history_is_replayed_round_by_round_and_other_decisions_teach_nothing() -> None:
    mab = MAB(ARMS, "random", users=USERS, min_group_size=5, seed=5)
    rng = np.random.default_rng(0)
    mab.fit(rng.choice(ARMS, 240), rng.random(240), np.tile(USERS, 4))
    assert mab.policy.rounds == 4
    assert 120 < mab.n_unused < 200  # two thirds of 240, +- 5 deviations of 7.3
    mab.fit([], [], [])
    assert (mab.policy.rounds, mab.n_unused) == (0, 0)


def test_a_repeated_plan_is_told_after_its_last_round() -> None:
    mab = MAB(ARMS, "explore-then-commit", users=USERS, min_group_size=5, horizon=600, seed=0)
    repeats = mab.policy.ask().repeats
    assert repeats > 1
    for number in range(repeats):
        assert mab.policy.rounds == 0, number
        mab.partial_fit(mab.predict(), [1.0] * 60, USERS)
    assert mab.policy.rounds == repeats
    assert mab.feedback is not None
    assert mab.feedback.released.max() == repeats


@pytest.mark.parametrize("reward", [float("nan"), 2.0, None, "x"])
@pytest.mark.parametrize("policy", ["random", "explore-then-commit"])
def test_a_refused_call_leaves_no_trace(policy: str, reward: Any) -> None:
    mab, other = (
        MAB(ARMS, policy, users=USERS, min_group_size=5, horizon=600, seed=0) for _ in range(2)
    )
    for one in (mab, other):
        one.partial_fit(one.predict(), [1.0] * 60, USERS)
    for learn in (mab.fit, mab.partial_fit):
        with pytest.raises(InvalidInputError, match=r"reward of user 'user-59' must be a number"):
            learn([*mab.predict()] * 2, [1.0] * 119 + [reward], USERS * 2)
    for one in (mab, other):
        for _ in range(mab.policy.ask().repeats):
            one.partial_fit(one.predict(), [1.0] * 60, USERS)
    assert mab.policy.rounds == other.policy.rounds > 0
    assert mab.n_unused == other.n_unused == 0
    assert mab.predict() == other.predict()


def test_the_rewards_of_users_who_played_another_arm_are_checked_too() -> None:
    mab = MAB(["a", "b"], "random", users=range(20), min_group_size=5, seed=0)
    with pytest.raises(InvalidInputError, match=r"reward of user 19 must be .* got 5\.0"):
        mab.fit(["a"] * 60, [1.0] * 59 + [5.0], list(range(20)) * 3)
    assert mab.policy.rounds == 0


def test_rounds_after_the_last_are_refused_before_any_is_learnt() -> None:
    mab = MAB(ARMS, "random", users=USERS, min_group_size=5, horizon=2, seed=0)
    with pytest.raises(InvalidInputError, match="rounds must be at most horizon=2 in all; got 3"):
        mab.fit(ARMS * 60, [1.0] * 180, USERS * 3)
    assert mab.policy.rounds == 0


class Failing(Greedy):
    """Can't learn in its first round."""

    fails = True

    def _learn(self, plan: Any, feedback: Any) -> None:
        if self.fails:
            raise ZeroDivisionError
        super()._learn(plan, feedback)


def test_rewards_that_a_policy_could_not_learn_from_are_not_kept() -> None:
    mab = MAB(ARMS, Failing, users=USERS, min_group_size=5, seed=0)
    with pytest.raises(ZeroDivisionError):
        mab.partial_fit(mab.predict(), [1.0] * 60, USERS)
    assert mab.feedback is None
    mab.policy.fails = False  # type: ignore[attr-defined]
    mab.partial_fit(mab.predict(), [1.0] * 60, USERS)
    assert mab.policy.rounds == 1
