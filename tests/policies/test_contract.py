"""Every policy passes the shipped contract, and the contract's checks can fail."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.support.policies import Greedy

from shoal.arrays import BoolArray
from shoal.errors import InvalidInputError
from shoal.model import Feedback, Plan, Problem
from shoal.policies import POLICIES, Policy, make_policy
from shoal.policies.base import Choice
from shoal.policies.baselines import RandomPlay
from shoal.policies.contract import (
    CHECKS,
    continues_from_its_state,
    keeps_to_what_is_allowed,
    repeats_itself_under_a_seed,
    shows_its_estimates_as_arm_means,
    treats_shards_apart,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", POLICIES)
def test_policy_keeps_the_contract(name: str, check: Callable[..., None]) -> None:
    check(partial(make_policy, name), anonymous=POLICIES[name].anonymous)


class Hasty(Policy):
    """Breaks the contract on request."""

    changing = (*Policy.changing, "kept")

    def __init__(self, problem: Problem, *, rng: np.random.Generator, fault: str) -> None:
        super().__init__(problem, rng=rng)
        self.fault = fault
        self.takes_merged = fault == "merged"
        self.kept: Any = object() if fault == "state" else 0
        self.forgotten = 0
        self.entropy = np.random.default_rng() if fault == "seed" else rng

    def _choose(self) -> Choice:
        arms = self.entropy.integers(self.problem.n_arms, size=self.problem.n_users)
        if self.fault == "memory":
            arms[:] = self.forgotten % self.problem.n_arms
        if self.fault == "merged":
            return arms * 0, np.arange(len(arms)) // self.problem.min_group_size, 1
        return arms, np.full(len(arms), -1), 3

    def ask(self, *, max_repeats: int | None = None) -> Plan:
        if self.fault == "again":
            self._pending = None
        return super().ask(max_repeats=None if self.fault == "long" else max_repeats)

    def tell(self, feedback: Feedback) -> None:
        if self.fault == "blind" and self._pending:
            self.rounds += self._pending.repeats
            self._pending = None
        elif self.fault != "blind":
            super().tell(feedback)
            self.rounds -= self.fault == "horizon"

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self.forgotten += 1
        if self.fault == "merged":  # takes them, but reckons with the groups that it asked for
            assert self._pending
            self.kept += int(self._pending.groups @ feedback.reported)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("horizon", "keeps_to_the_horizon"),
        ("again", "asks_the_same_until_told"),
        ("long", "plays_one_round_at_a_time"),
        ("blind", "refuses_feedback_for_another_plan"),
        ("state", "continues_from_its_state"),
        ("memory", "continues_from_its_state"),
        ("merged", "learns_from_merged_groups"),
    ],
)
def test_the_contract_finds_a_broken_policy(fault: str, check: str) -> None:
    checks = {c.__name__: c for c in CHECKS}
    with pytest.raises(AssertionError):
        checks[check](partial(Hasty, fault=fault))


def test_what_a_policy_shows_must_be_arm_means() -> None:
    class Numbered(RandomPlay):
        def arm_means(self, present: Any) -> Any:
            return 3

    with pytest.raises(AssertionError, match=r"arm_means must return ArmMeans .* \(3,\).*got 3"):
        shows_its_estimates_as_arm_means(Numbered)


def test_a_policy_with_randomness_of_its_own_is_found() -> None:
    with pytest.raises(AssertionError, match=r"all randomness must come from self\.rng"):
        repeats_itself_under_a_seed(partial(Hasty, fault="seed"))


def test_a_sound_policy_of_ones_own_passes() -> None:
    for check in CHECKS:
        check(partial(Hasty, fault="none"))
        check(Greedy)


class Mixed(Greedy):
    """Says that it treats shards apart, and keeps one estimate for all of them."""

    takes_shards = True


def test_a_policy_that_mixes_shards_is_found() -> None:
    with pytest.raises(AssertionError, match="takes_shards must be False"):
        treats_shards_apart(Mixed)


class Counts(Greedy):
    """Counts plays in something that a file does not give back as it is."""

    changing = (*Greedy.changing, "plays")

    def __init__(self, problem: Problem, *, rng: np.random.Generator, kind: Any) -> None:
        super().__init__(problem, rng=rng)
        self.plays = kind()


@pytest.mark.parametrize("kind", [partial(defaultdict, int), OrderedDict, set, object])
def test_a_state_that_a_file_does_not_give_back_is_found(kind: Any) -> None:
    with pytest.raises(AssertionError, match="plays "):
        continues_from_its_state(partial(Counts, kind=kind))


@pytest.mark.parametrize("value", [{3: np.int64(2)}, float("nan"), (1, [None, "a"]), np.arange(3)])
def test_a_state_that_a_file_gives_back_passes(value: Any) -> None:
    continues_from_its_state(partial(Counts, kind=lambda: value))


class Restricted(Greedy):
    """Everyone plays the first arm that is allowed."""

    changing = (*Greedy.changing, "mask")

    def __init__(self, problem: Problem, *, rng: np.random.Generator) -> None:
        super().__init__(problem, rng=rng)
        self.mask = np.ones((problem.n_users, problem.n_arms), np.bool_)

    def _choose(self) -> Choice:
        return self.mask.argmax(axis=1), np.full(self.problem.n_users, -1), 1

    def _allow(self, eligible: BoolArray) -> None:
        self.mask = eligible


class Forgetful(Restricted):
    changing = Greedy.changing


class Disobedient(Restricted):
    def _allow(self, eligible: BoolArray) -> None:
        pass


class Present(Restricted):
    """Groups users who have left."""

    def _choose(self) -> Choice:
        arms = self.mask.argmax(axis=1)
        return arms, np.where(arms == 0, 0, -1), 1


def test_a_policy_that_does_not_keep_to_what_is_allowed_is_found() -> None:
    keeps_to_what_is_allowed(Restricted)
    for broken in (Forgetful, Disobedient):
        with pytest.raises(AssertionError, match="user 3 plays an arm that allow has ruled out"):
            keeps_to_what_is_allowed(broken)
    with pytest.raises(AssertionError, match="user 0 is in a group, to whom allow has left no arm"):
        keeps_to_what_is_allowed(Present)


def test_the_guarantee_keeps_to_what_is_allowed() -> None:
    keeps_to_what_is_allowed(partial(make_policy, "shoal", options={"guarantee": True}))


class Pair(NamedTuple):
    left: Any
    right: Any


class Becomes(Greedy):
    """Has an attribute of another kind, or longer, after its first round."""

    changing = (*Greedy.changing, "estimate")

    def __init__(
        self, problem: Problem, *, rng: np.random.Generator, first: Any, then: Any
    ) -> None:
        super().__init__(problem, rng=rng)
        self.estimate, self.then = first, then

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        super()._learn(plan, feedback)
        self.estimate = self.then


@pytest.mark.parametrize(
    ("first", "then", "place"),
    [
        (None, Pair(1, 2), "estimate"),
        ([], [Pair(1, 2)], r"estimate\[0\]"),
        ([Pair(1, 2)], [Pair(1, 2)] * 2, r"estimate\[1\]"),
        (Pair(1, 2), None, "estimate"),
        (None, np.random.default_rng(0), "estimate"),
    ],
)
def test_a_part_that_is_not_what_it_was_when_it_was_made_is_named(
    first: Any, then: Any, place: str
) -> None:
    with pytest.raises(InvalidInputError, match=rf"^{place} must be of the kind that it was when"):
        continues_from_its_state(partial(Becomes, first=first, then=then))


def test_values_of_a_named_tuple_may_become_others() -> None:
    continues_from_its_state(partial(Becomes, first=Pair(None, 0), then=Pair(np.ones(2), {1: 2})))


def test_a_policy_that_forgets_is_told_about_changing() -> None:
    with pytest.raises(AssertionError, match="must be named in changing"):
        continues_from_its_state(partial(Hasty, fault="memory"))


def test_what_makes_no_policy_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="policy must be a known name, module:Class"):
        continues_from_its_state(Greedy(Problem(12, 2, 3), rng=np.random.default_rng(0)))  # type: ignore[arg-type]
