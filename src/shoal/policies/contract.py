"""What any policy must do, as checks that ship with the package.

Run every check on a policy of your own::

    from shoal.policies.contract import CHECKS

    for check in CHECKS:
        check(MyPolicy)

A check is called with anything that makes a policy from ``(problem, rng=...)`` and raises
AssertionError where the policy breaks the contract. ``anonymous=False`` is for policies that only
play problems with ``min_group_size = 1``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.arrays import IntArray, LongArray
from shoal.errors import ShoalError
from shoal.model import Feedback, Plan, Problem
from shoal.model.feedback import merge_plan
from shoal.model.merging import merge_short
from shoal.policies.base import Policy

Maker = Callable[..., Policy]

TYPICAL = Problem(n_users=24, n_arms=3, min_group_size=3, horizon=600, n_shards=2)
CROWDED_ROUNDS = 200
# Crowds of several groups, so that there is something to merge.
CROWDED = Problem(n_users=60, n_arms=3, min_group_size=3, horizon=CROWDED_ROUNDS, n_shards=2)
EDGES = {
    "one spare user": Problem(n_users=5, n_arms=2, min_group_size=4, horizon=300),
    "one arm": Problem(n_users=8, n_arms=1, min_group_size=2, horizon=100),
    "groups of one": Problem(n_users=6, n_arms=3, min_group_size=1, horizon=200),
    "one round": Problem(n_users=8, n_arms=3, min_group_size=2, horizon=1),
    "less than a batch": Problem(n_users=12, n_arms=4, min_group_size=3, horizon=7),
    "more arms than users": Problem(n_users=5, n_arms=9, min_group_size=3, horizon=200),
    "many shards": Problem(n_users=24, n_arms=3, min_group_size=2, horizon=100, n_shards=6),
}


class Arena:
    """A small Bernoulli world that releases totals over at least ``min_group_size`` reporters.

    Where it is ``merging``, groups of a single round that are short are merged, as they are in a
    campaign; otherwise they are withheld.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        seed: int = 0,
        participation: float = 1.0,
        merging: bool = False,
    ) -> None:
        self.rng = np.random.default_rng([seed, 1])
        self.means = np.random.default_rng([seed, 0]).random((problem.n_users, problem.n_arms))
        self.participation = participation
        self.merging = merging

    def play(self, plan: Plan) -> Feedback:
        """Play every round of ``plan``, one by one."""
        users = np.flatnonzero(plan.groups >= 0)
        groups = plan.groups[users]
        totals = np.zeros(plan.n_groups)
        released = np.zeros(plan.n_groups, np.int32)
        reported = np.zeros(len(plan.groups), np.int32)
        for _ in range(plan.repeats if len(users) else 0):
            rewards = self.rng.random(len(users)) < self.means[users, plan.arms[users]]
            reports = self.rng.random(len(users)) < self.participation
            if self.merging and plan.repeats == 1:
                plan = _merged(plan, users[reports])
                groups = plan.groups[users]
                totals, released = totals[: plan.n_groups], released[: plan.n_groups]
            n_reports = np.bincount(groups, weights=reports, minlength=plan.n_groups)
            open_groups = n_reports >= plan.problem.min_group_size
            counted = reports & open_groups[groups]
            totals += np.bincount(groups, weights=rewards * counted, minlength=plan.n_groups)
            released += open_groups
            reported[users] += counted
        return Feedback(totals, released, reported, plan)


def _merged(plan: Plan, reporters: LongArray) -> Plan:
    """Return the plan with its short groups merged, where these users report."""
    problem = plan.problem
    users = np.flatnonzero(plan.groups >= 0)
    crowds = np.full(plan.n_groups, -1)
    crowds[plan.groups[users]] = users // problem.shard_size * problem.n_arms + plan.arms[users]
    counts = np.bincount(plan.groups[reporters], minlength=plan.n_groups)
    return merge_plan(plan, merge_short(counts, crowds, problem.min_group_size))


def keeps_groups_large_enough(make: Maker, *, anonymous: bool = True) -> None:
    """Every group of every plan has one arm and at least ``min_group_size`` users of one shard."""
    problem = _fit(TYPICAL, anonymous)
    for plan in _plans(_new(make, problem), Arena(problem)):
        for group in np.unique(plan.groups[plan.groups >= 0]):
            members = np.flatnonzero(plan.groups == group)
            assert len(members) >= problem.min_group_size, f"group of {len(members)} in {plan}"
            assert len(np.unique(plan.arms[members])) == 1, f"two arms in a group of {plan}"
            assert len(np.unique(members // problem.shard_size)) == 1, f"two shards in {plan}"


def keeps_to_the_horizon(make: Maker, *, anonymous: bool = True) -> None:
    """The rounds of all plans add up to the horizon, after which there is no next plan."""
    problem = _fit(TYPICAL, anonymous)
    policy = _new(make, problem)
    played = sum(plan.repeats for plan in _plans(policy, Arena(problem)))
    assert played == problem.horizon, f"played {played} rounds of {problem.horizon}"
    try:
        policy.ask()
    except ShoalError:
        return
    raise AssertionError("asked for a plan after the last round")


def asks_the_same_until_told(make: Maker, *, anonymous: bool = True) -> None:
    """Asking again before telling gives the same plan; telling without asking is refused."""
    problem = _fit(TYPICAL, anonymous)
    policy = _new(make, problem)
    plan = policy.ask()
    assert policy.ask() is plan, "asked twice, got two plans"
    policy.tell(Arena(problem).play(plan))
    try:
        policy.tell(Arena(problem).play(plan))
    except ShoalError:
        return
    raise AssertionError("took feedback without a plan")


def refuses_feedback_for_another_plan(make: Maker, *, anonymous: bool = True) -> None:
    """Feedback of the wrong shape is refused, and the plan stays in play."""
    problem = _fit(TYPICAL, anonymous)
    policy = _new(make, problem)
    plan = policy.ask()
    n = plan.n_groups + 1
    try:
        policy.tell(Feedback(np.zeros(n), np.ones(n, bool), np.ones(problem.n_users, bool)))
    except ShoalError:
        assert policy.ask() is plan, "forgot the plan after refused feedback"
        return
    raise AssertionError("took feedback that does not fit the plan")


def repeats_itself_under_a_seed(make: Maker, *, anonymous: bool = True) -> None:
    """The same seed gives the same plans."""
    problem = _fit(TYPICAL, anonymous)
    first = _play(_new(make, problem), Arena(problem))
    assert _equal(first, _play(_new(make, problem), Arena(problem))), "same seed, other plans"


def continues_from_its_state(make: Maker, *, anonymous: bool = True) -> None:
    """A restored policy goes on bit for bit, wherever the state was taken, in plain values."""
    problem = _fit(TYPICAL, anonymous)
    n_plans = len(_play(_new(make, problem), Arena(problem)))
    for cut in sorted({0, n_plans // 3, n_plans // 2, n_plans - 1}):
        for asked in (False, True):
            policy, arena = _new(make, problem), Arena(problem)
            for _ in range(cut):
                policy.tell(arena.play(policy.ask()))
            if asked:
                policy.ask()
            state = policy.state()
            _plain(state, "state")
            kept = deepcopy(state)
            other_arena = deepcopy(arena)
            rest = _play(policy, arena)
            other = _new(make, problem, seed=99)
            other.restore(state)
            assert _equal(rest, _play(other, other_arena)), f"went on differently after {cut} plans"
            assert _equal(state, kept), "the state changed while the policies went on"


def works_at_the_edges(make: Maker, *, anonymous: bool = True) -> None:
    """Tiny problems are played to their end."""
    for name, edge in EDGES.items():
        problem = _fit(edge, anonymous)
        played = sum(plan.repeats for plan in _plans(_new(make, problem), Arena(problem)))
        assert played == problem.horizon, f"{name}: played {played} rounds of {problem.horizon}"


def lives_with_withheld_groups(make: Maker, *, anonymous: bool = True) -> None:
    """Users may not report, even none of them ever."""
    problem = _fit(TYPICAL, anonymous)
    for participation in (0.7, 0.0):
        arena = Arena(problem, participation=participation)
        played = sum(plan.repeats for plan in _plans(_new(make, problem), arena))
        assert played == problem.horizon, f"played {played} rounds with {participation=}"


def learns_from_merged_groups(make: Maker, *, anonymous: bool = True) -> None:
    """Whoever takes merged groups learns as if it had asked for them; others go on without."""
    problem = _fit(CROWDED, anonymous)
    policy, arena = _new(make, problem), Arena(problem, participation=0.5, merging=True)
    played = 0
    while played < CROWDED_ROUNDS:
        plan = policy.ask()
        before, feedback = deepcopy(policy.state()), arena.play(plan)
        policy.tell(feedback)
        played += plan.repeats
        merged = feedback.plan
        if policy.takes_merged and merged is not None and merged is not plan:
            asked = {"arms": merged.arms, "groups": merged.groups, "repeats": merged.repeats}
            other = _new(make, problem, seed=99)
            other.restore(before | {"pending": asked})
            other.tell(feedback)
            assert _equal(policy.state(), other.state()), f"did not learn from {merged} as it is"


CHECKS: tuple[Callable[..., None], ...] = (
    keeps_groups_large_enough,
    keeps_to_the_horizon,
    asks_the_same_until_told,
    refuses_feedback_for_another_plan,
    repeats_itself_under_a_seed,
    continues_from_its_state,
    works_at_the_edges,
    lives_with_withheld_groups,
    learns_from_merged_groups,
)


def _fit(problem: Problem, anonymous: bool) -> Problem:
    return problem if anonymous else replace(problem, min_group_size=1)


def _new(make: Maker, problem: Problem, *, seed: int = 0) -> Policy:
    return make(problem, rng=np.random.default_rng(seed))


def _plans(policy: Policy, arena: Arena) -> Iterator[Plan]:
    assert policy.problem.horizon is not None
    left = policy.problem.horizon - policy.rounds
    while left > 0:
        plan = policy.ask()
        policy.tell(arena.play(plan))
        left -= plan.repeats
        yield plan
    assert left == 0, f"played {-left} rounds too many"


def _play(policy: Policy, arena: Arena) -> list[tuple[IntArray, ...]]:
    return [(p.arms, p.groups, np.array([p.repeats])) for p in _plans(policy, arena)]


def _plain(value: Any, name: str) -> None:
    """Refuse a state that only Python's own serialiser could keep."""
    if isinstance(value, dict):
        for key, part in value.items():
            assert isinstance(key, str), f"{name} has a key that is not a string: {key!r}"
            _plain(part, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for part in value:
            _plain(part, f"{name}[]")
    else:
        fine = isinstance(value, bool | int | float | str | None) or (
            isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        )
        assert fine, f"{name} is not plain: {type(value).__name__}"


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.tobytes() == other.tobytes())
    return bool(one == other)
