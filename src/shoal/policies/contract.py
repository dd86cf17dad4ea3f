"""What any policy must do, as checks that ship with the package.

Run every check on a policy of your own::

    from shoal.policies.contract import CHECKS

    for check in CHECKS:
        check(MyPolicy)

A check takes a policy as ``make_policy`` does, a class or anything else that makes one from
``(problem, rng=...)``, and raises an error where the policy breaks the contract: AssertionError,
what Shoal refuses (AnonymityError, InvalidInputError), or the policy's own.
``anonymous=False`` is for policies that only play problems with ``min_group_size = 1``. A policy
that does not take shards is checked on problems without them.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.arrays import BoolArray, FloatArray, IntArray
from shoal.errors import ShoalError
from shoal.model import Feedback, Plan, Problem, State
from shoal.model.container import pack, unpack
from shoal.model.merging import merge_played
from shoal.model.numbers import shortened
from shoal.policies.base import ArmMeans, Policy
from shoal.policies.own import PolicyLike
from shoal.policies.registry import make_policy

TYPICAL = Problem(n_users=24, n_arms=3, min_group_size=3, horizon=300, n_shards=2)
# Crowds of several groups, so that some can be merged.
CROWDED = Problem(n_users=60, n_arms=3, min_group_size=3, horizon=100, n_shards=2)
# Half of the shards are compared, the other half are their surroundings.
SHARDED = Problem(n_users=480, n_arms=2, min_group_size=3, horizon=100, n_shards=40)
EXTREMES = (
    Problem(n_users=5, n_arms=2, min_group_size=4, horizon=300),  # one spare user
    Problem(n_users=8, n_arms=1, min_group_size=2, horizon=100),  # one arm
    Problem(n_users=6, n_arms=3, min_group_size=1, horizon=200),  # groups of one
    Problem(n_users=8, n_arms=3, min_group_size=2, horizon=1),  # one round
    Problem(n_users=12, n_arms=4, min_group_size=3, horizon=7),  # less than a batch
    Problem(n_users=5, n_arms=9, min_group_size=3, horizon=200),  # more arms than users
    Problem(n_users=24, n_arms=3, min_group_size=2, horizon=100, n_shards=6),
)


class Arena:
    """A small Bernoulli environment that merges short groups, as a campaign does.

    In a plan that is repeated, groups that would be merged are withheld in that round.
    """

    def __init__(
        self, problem: Problem, *, participation: float = 1.0, means: FloatArray | None = None
    ) -> None:
        self.rng = np.random.default_rng([0, 1])
        if means is None:
            means = np.random.default_rng([0, 0]).random((problem.n_users, problem.n_arms))
        self.means = means
        self.participation = participation

    def play(self, plan: Plan) -> Feedback:
        """Play every round of ``plan``, one by one."""
        if plan.repeats == 1:
            return self._play_once(plan)
        rounds = [self._play_once(plan).unmerged(plan) for _ in range(plan.repeats)]
        totals = np.add.reduce([one.totals for one in rounds])
        released = np.add.reduce([one.released for one in rounds], dtype=np.int32)
        reported = np.add.reduce([one.reported for one in rounds], dtype=np.int32)
        return Feedback(totals, released, reported, plan)

    def _play_once(self, plan: Plan) -> Feedback:
        uniforms = self.rng.random((2, len(plan.arms)))
        merged, released, reported, *_ = merge_played(plan, uniforms[0] < self.participation)
        rewards = uniforms[1] < self.means[np.arange(len(plan.arms)), plan.arms]
        totals, users = np.zeros(merged.n_groups), np.flatnonzero(reported)
        np.add.at(totals, merged.groups[users], rewards[users])
        return Feedback(totals, released, reported, merged)


def keeps_groups_large_enough(make: PolicyLike, *, anonymous: bool = True) -> None:
    """Every group of every plan has one arm and at least ``min_group_size`` users of one shard."""
    policy, arena = _start(make, TYPICAL, anonymous)
    problem = policy.problem
    for plan in _plans(policy, arena):
        for group in np.unique(plan.groups[plan.groups >= 0]):
            members = np.flatnonzero(plan.groups == group)
            assert len(members) >= problem.min_group_size, f"group of {len(members)} in {plan}"
            assert len(np.unique(plan.arms[members])) == 1, f"two arms in a group of {plan}"
            assert len(np.unique(members // problem.shard_size)) == 1, f"two shards in {plan}"


def keeps_to_the_horizon(make: PolicyLike, *, anonymous: bool = True) -> None:
    """The rounds of all plans add up to the horizon, after which there is no next plan."""
    policy, arena = _start(make, TYPICAL, anonymous)
    _columns(policy, arena)
    _must_refuse(policy.ask, "asked for a plan after the last round")


def asks_the_same_until_told(make: PolicyLike, *, anonymous: bool = True) -> None:
    """Asking again before telling gives the same plan; telling without asking is refused."""
    policy, arena = _start(make, TYPICAL, anonymous)
    plan = policy.ask()
    assert policy.ask() is plan, "asked twice, got two plans"
    feedback = arena.play(plan)
    policy.tell(feedback)
    _must_refuse(lambda: policy.tell(feedback), "took feedback without a plan")


def plays_one_round_at_a_time(make: PolicyLike, *, anonymous: bool = True) -> None:
    """Asked for plans of one round, as a live program does, it plays them up to the horizon."""
    policy, arena = _start(make, TYPICAL, anonymous)
    horizon = policy.need_horizon()
    for n_played in range(horizon):
        plan = policy.ask(max_repeats=1)
        assert plan.repeats == 1, f"asked for one round, got {plan}"
        assert policy.ask() is plan, "asked twice, got two plans"
        policy.tell(arena.play(plan))
        rounds = n_played + 1
        assert policy.rounds == rounds, f"counted {policy.rounds} rounds after {rounds}"
    _must_refuse(policy.ask, "asked for a plan after the last round")


def refuses_feedback_for_another_plan(make: PolicyLike, *, anonymous: bool = True) -> None:
    """Feedback of the wrong shape is refused, and the plan stays in play."""
    policy, _ = _start(make, TYPICAL, anonymous)
    plan = policy.ask()
    n = plan.n_groups + 1
    feedback = Feedback(np.zeros(n), np.ones(n, bool), np.ones(len(plan.groups), bool))
    _must_refuse(lambda: policy.tell(feedback), "took feedback that does not fit the plan")
    assert policy.ask() is plan, "forgot the plan after refused feedback"


def repeats_itself_under_a_seed(make: PolicyLike, *, anonymous: bool = True) -> None:
    """The same seed gives the same plans."""
    first, second = (_columns(*_start(make, TYPICAL, anonymous)) for _ in range(2))
    assert _equal(first, second), "same seed, other plans: all randomness must come from self.rng"


def continues_from_its_state(make: PolicyLike, *, anonymous: bool = True) -> None:
    """A restored policy goes on bit for bit, wherever the state was taken, in plain values."""
    expected = _columns(*_start(make, TYPICAL, anonymous))
    policy, arena = _start(make, TYPICAL, anonymous)
    unknown = [name for name in policy.changing if not hasattr(policy, name)]
    assert not unknown, f"changing names {unknown}, which the policy does not have when it is made"
    saved = []
    for n_played in range(len(expected)):
        if n_played in (0, len(expected) // 3, len(expected) // 2, len(expected) - 1):
            for _asked in (False, True):
                state = _through_a_file(policy.state())
                saved.append((n_played, state, deepcopy(state), deepcopy(arena)))
                policy.ask()
        policy.tell(arena.play(policy.ask()))
    for n_played, state, state_before, other_arena in saved:
        other, _ = _start(make, TYPICAL, anonymous, seed=99)
        other.restore(state)
        same = _equal(expected[n_played:], _columns(other, other_arena))
        assert same, (
            f"went on differently from its state after {n_played} plans; everything that changes "
            "in a run must be named in changing"
        )
        assert _equal(state, state_before), "the state changed while the policies went on"


def keeps_to_what_is_allowed(make: PolicyLike, *, anonymous: bool = True) -> None:
    """A policy that can restrict arms plans within the mask, also once it was saved and loaded."""
    policy, arena = _start(make, TYPICAL, anonymous)
    if type(policy)._allow is Policy._allow:
        return
    users = np.arange(policy.problem.n_users)
    mask = np.ones((len(users), policy.problem.n_arms), np.bool_)
    mask[users, users % policy.problem.n_arms] = False
    mask[::8] = False  # they have left
    policy.tell(arena.play(policy.ask()))
    policy.allow(mask)
    _stay_within(mask, policy, arena)
    other, _ = _start(make, TYPICAL, anonymous, seed=99)
    other.restore(_through_a_file(policy.state()))
    plan = _stay_within(mask, policy, deepcopy(arena))
    again = _stay_within(mask, other, arena)
    assert _equal((plan.arms, plan.groups), (again.arms, again.groups)), (
        "went on differently from its state after allow; what is allowed must be named in changing"
    )


def _stay_within(mask: BoolArray, policy: Policy, arena: Arena) -> Plan:
    """Play a few plans, which must keep to a mask; return the last."""
    present = np.flatnonzero(mask.any(axis=1))
    for _ in range(3):
        plan = policy.ask()
        outside = present[~mask[present, plan.arms[present]]]
        assert not len(outside), f"user {outside[0]} plays an arm that allow has ruled out"
        gone = np.flatnonzero((plan.groups >= 0) & ~mask.any(axis=1))
        assert not len(gone), f"user {gone[0]} is in a group, to whom allow has left no arm"
        policy.tell(arena.play(plan))
    return plan


def shows_its_estimates_as_arm_means(make: PolicyLike, *, anonymous: bool = True) -> None:
    """What a policy shows of its estimates is ``ArmMeans`` of every arm, or None."""
    policy, arena = _start(make, TYPICAL, anonymous)
    policy.tell(arena.play(policy.ask()))
    estimates = policy.arm_means(np.ones(policy.problem.n_users, np.bool_))
    if estimates is None:
        return
    shape = (policy.problem.n_arms,)
    fits = isinstance(estimates, ArmMeans) and all(np.shape(part) == shape for part in estimates)
    assert fits, (
        f"arm_means must return ArmMeans of arrays of shape {shape}, or None; "
        f"got {shortened(estimates)}"
    )


def works_at_the_edges(make: PolicyLike, *, anonymous: bool = True) -> None:
    """Tiny problems are played to their end."""
    for problem in EXTREMES:
        _columns(*_start(make, problem, anonymous))


def lives_with_withheld_groups(make: PolicyLike, *, anonymous: bool = True) -> None:
    """Users may not report, even none of them ever."""
    for participation in (0.7, 0.0):
        _columns(*_start(make, TYPICAL, anonymous, participation=participation))


def learns_from_merged_groups(make: PolicyLike, *, anonymous: bool = True) -> None:
    """A policy that takes merged groups learns as if it had asked for them; others go on."""
    policy, arena = _start(make, CROWDED, anonymous, participation=0.5)
    played = 0
    while played < policy.need_horizon():
        plan = policy.ask()
        played += plan.repeats
        before, feedback = deepcopy(policy.state()), arena.play(plan)
        policy.tell(feedback)
        merged = feedback.plan
        if policy.takes_merged and merged is not None and merged is not plan:
            pending = {"arms": merged.arms, "groups": merged.groups, "repeats": merged.repeats}
            other, _ = _start(make, CROWDED, anonymous, seed=99)
            other.restore(before | {"pending": pending})
            other.tell(feedback)
            assert _equal(policy.state(), other.state()), f"did not learn from {merged} as it is"


def treats_shards_apart(make: PolicyLike, *, anonymous: bool = True) -> None:
    """A policy that takes shards plays each of them in the same way whatever the others are like.

    Twenty shards with the same means are played twice, among others where one arm is far better
    and among others where it is far worse. If the shards' use of that arm is ordered by it in 95 %
    of the pairs, the policy has mixed them: of 20 and 20 values from one distribution, that
    happens once in 20 million times.
    """
    policy, _ = _start(make, SHARDED, anonymous)
    problem = policy.problem
    if problem.n_shards == 1:
        return
    compared = slice(0, problem.n_users // 2)
    shares: list[FloatArray] = []
    for others in ([0.9, 0.1], [0.1, 0.9]):
        means = np.tile([0.55, 0.45], (problem.n_users, 1))
        means[problem.n_users // 2 :] = others
        policy = make_policy(make, problem, rng=np.random.default_rng(len(shares)))
        arena = Arena(problem, means=means)
        plays = sum(plan.repeats * (plan.arms[compared] == 0) for plan in _plans(policy, arena))
        shares.append(np.reshape(plays, (problem.n_shards // 2, -1)).mean(axis=1))
    first, second = shares[0][:, None], shares[1]
    ordered = max((first > second).mean(), (first < second).mean())
    assert ordered < 0.95, "what a shard plays depends on the others: takes_shards must be False"


CHECKS: tuple[Callable[..., None], ...] = (
    keeps_groups_large_enough,
    keeps_to_the_horizon,
    asks_the_same_until_told,
    plays_one_round_at_a_time,
    refuses_feedback_for_another_plan,
    repeats_itself_under_a_seed,
    continues_from_its_state,
    keeps_to_what_is_allowed,
    shows_its_estimates_as_arm_means,
    works_at_the_edges,
    lives_with_withheld_groups,
    learns_from_merged_groups,
    treats_shards_apart,
)


def _start(
    make: PolicyLike,
    problem: Problem,
    anonymous: bool,
    *,
    seed: int = 0,
    participation: float = 1.0,
) -> tuple[Policy, Arena]:
    if not anonymous:
        problem = replace(problem, min_group_size=1)
    if problem.n_shards > 1:
        alone = replace(problem, n_shards=1)
        if not make_policy(make, alone, rng=np.random.default_rng(seed)).takes_shards:
            problem = alone
    policy = make_policy(make, problem, rng=np.random.default_rng(seed))
    return policy, Arena(problem, participation=participation)


def _must_refuse(call: Callable[[], object], message: str) -> None:
    try:
        call()
    except ShoalError:
        return
    raise AssertionError(message)


def _plans(policy: Policy, arena: Arena) -> Iterator[Plan]:
    """Play a policy up to its horizon, and yield its plans."""
    left = policy.need_horizon() - policy.rounds
    while left > 0:
        plan = policy.ask()
        policy.tell(arena.play(plan))
        left -= plan.repeats
        yield plan
    assert left == 0, f"played {-left} rounds too many of {policy.problem}"


def _columns(policy: Policy, arena: Arena) -> list[tuple[IntArray, ...]]:
    """Play a policy up to its horizon; return the arrays of its plans."""
    return [(p.arms, p.groups, np.array([p.repeats])) for p in _plans(policy, arena)]


def _through_a_file(state: State) -> State:
    """Return a state as a saved file gives it back; refuse one that comes back as another."""
    for name, value in state.items():
        try:
            copy = unpack(pack(value))
        except (ShoalError, TypeError, ValueError) as error:
            raise AssertionError(f"{name} can't be saved: {error}") from error
        assert _equal(value, copy), (
            f"{name} must be numbers, strings, arrays, lists, tuples or dicts, which a saved file "
            f"gives back as they are; got {shortened(value)}"
        )
    return {name: unpack(pack(value)) for name, value in state.items()}


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype and one.tobytes() == other.tobytes())
    return bool(one == other or (one != one and other != other))  # NaN differs from itself
