"""What every learner does: ask for a plan, play it somewhere, tell the released totals."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import BoolArray, FloatArray, WholeArray
from shoal.errors import InvalidInputError, ShoalError, type_of
from shoal.frames import as_array
from shoal.model import Feedback, Plan, Problem, State, Stateful
from shoal.model.numbers import generator, shortened, whole_number
from shoal.model.state import check_parts, no_state
from shoal.policies.beliefs import Beliefs

HALF_95 = 1.959964  # deviations from the middle of a normal's 95 % interval to its end

Choice = tuple[WholeArray, WholeArray, int]


class ArmMeans(NamedTuple):
    """What a policy believes of each arm's mean reward over some users."""

    means: FloatArray  # (n_arms,)
    half_widths: FloatArray  # (n_arms,) half of a 95 % interval

    @classmethod
    def normal(cls, means: FloatArray, deviations: FloatArray) -> ArmMeans:
        """Return means with the intervals of normal estimates."""
        return cls(means, HALF_95 * deviations)


class Origin(NamedTuple):
    """How ``make_policy`` made a policy, so that it can be made again."""

    policy: str  # a name, or module:Class
    options: Mapping[str, Any]
    parts: Mapping[str, str]  # its parts when it was made


class Policy(Stateful, ABC):
    """A learner that sees nothing but the feedback of its plans.

    A subclass chooses arms, groups and the number of rounds in ``_choose`` and learns from the
    totals in ``_learn``, of as many rounds or fewer. ``ask`` keeps to the horizon and, until
    ``tell``, gives the same plan again.

    Parameters
    ----------
    problem
        What is known before the first round.
    rng
        The only source of the policy's randomness.
    """

    changing: ClassVar[tuple[str, ...]] = ("rng", "rounds")
    anonymous: ClassVar[bool] = True
    """False for a reference that sees every reward: it plays with a ``min_group_size`` of 1."""

    takes_merged = False
    """Whether ``_learn`` gets groups that were merged after the plan was made; else they count as
    withheld."""

    takes_groups = False
    """Whether ``_learn`` gets a plan of one round with any groups of the same users and arms."""

    takes_shards = False
    """Whether it learns in each shard of a problem as if there were no other, so that several runs
    can be played as the shards of one problem; else each run is a problem."""

    origin: Origin | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Refuse a class whose state would be incomplete."""
        super().__init_subclass__(**keywords)
        names: Any = cls.changing
        if isinstance(names, str) or not set(Policy.changing) <= set(names):
            raise InvalidInputError(
                f"{cls.__name__}.changing must be a tuple of names that begins with "
                f"*Policy.changing; got {names!r}."
            )

    def __init__(self, problem: Problem, *, rng: np.random.Generator) -> None:
        if not isinstance(problem, Problem):
            raise InvalidInputError(f"problem must be a Problem; got {shortened(problem)}.")
        if problem.n_shards > 1 and not self.takes_shards:
            raise InvalidInputError(
                f"n_shards must be 1 for {type(self).__name__}, which does not say "
                f"takes_shards = True; got {problem.n_shards}."
            )
        self.problem = problem
        self.rng = generator("rng", rng)
        self.rounds = 0
        self._pending: Plan | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.problem!r}, rounds={self.rounds})"

    @abstractmethod
    def _choose(self) -> Choice:
        """Return each user's arm and group, and the rounds for which they stay."""

    @abstractmethod
    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        """Learn from the feedback of ``plan``, the one asked for or its merged form."""

    def ask(self, *, max_repeats: int | None = None) -> Plan:
        """Return the next plan.

        Parameters
        ----------
        max_repeats
            Most rounds that the plan may stay. A program that plays live asks with 1, and tells
            the feedback of each round. A plan that is waiting for feedback is shortened too.

        Examples
        --------
        >>> from shoal.policies import make_policy
        >>> problem = Problem(n_users=50, n_arms=5, min_group_size=4, horizon=1000)
        >>> policy = make_policy("explore-then-commit", problem, rng=np.random.default_rng(0))
        >>> policy.ask().repeats, policy.ask(max_repeats=1).repeats
        (20, 1)
        """
        limit = None if max_repeats is None else whole_number("max_repeats", max_repeats)
        plan = self._pending or self._next_plan()
        if limit is not None and plan.repeats > limit:
            plan = Plan(plan.arms, plan.groups, limit, problem=self.problem)
        self._pending = plan
        return plan

    def _next_plan(self) -> Plan:
        """Return what ``_choose`` does as a plan that keeps to the horizon."""
        choice = self._choose()
        if not isinstance(choice, (tuple, list)) or len(choice) != 3:
            raise InvalidInputError(
                f"{type(self).__name__}._choose must return arms, groups and repeats; "
                f"got {_describe(choice)}."
            )
        arms, groups, repeats = choice
        horizon = self.problem.horizon
        if horizon is not None:
            if self.rounds >= horizon:
                raise ShoalError(f"all {horizon=} rounds are played; there is no next plan.")
            if type(repeats) is not int:
                repeats = whole_number("repeats", repeats)
            repeats = min(repeats, horizon - self.rounds)
        return Plan(arms, groups, repeats, problem=self.problem)

    def tell(self, feedback: Feedback) -> None:
        """Learn from the feedback of the plan that was asked for."""
        plan = self._pending
        if plan is None:
            raise ShoalError("tell must follow ask; no plan is waiting for feedback.")
        if not isinstance(feedback, Feedback):
            raise InvalidInputError(
                "feedback must be a Feedback, such as plan.add_up(rewards) returns; "
                f"got {shortened(feedback)}."
            )
        feedback.check(plan)
        if not self.takes_merged:
            feedback = feedback.unmerged(plan)
        self._learn(feedback.plan or plan, feedback)
        self.rounds += plan.repeats
        self._pending = None

    def regroup(self, groups: WholeArray) -> None:
        """Take over groups that were drawn elsewhere, for one round of the plan that was asked for.

        A policy whose groups are part of its method refuses.
        """
        plan = self._pending
        if plan is None:
            raise ShoalError("regroup must follow ask; no plan is waiting for feedback.")
        if not self.takes_groups:
            raise InvalidInputError(
                "regroup must be called on a policy that takes any groups; "
                f"got {type(self).__name__}."
            )
        self._pending = Plan(plan.arms, groups, problem=self.problem)

    def allow(self, eligible: ArrayLike) -> None:
        """Set which arms each user may play from the next plan on, (n_users, n_arms).

        A plan that waits for feedback stays. A user without any arm has left, or has not joined
        yet; an arm without any user is retired. What was learnt is kept. A policy whose arms are
        fixed refuses.
        """
        mask = np.array(eligible, order="C")  # a copy: the caller may change its own
        shape = (self.problem.n_users, self.problem.n_arms)
        if mask.shape != shape or mask.dtype != np.bool_:
            raise InvalidInputError(
                f"eligible must be truth values of shape {shape}; "
                f"got shape {mask.shape} of {mask.dtype}."
            )
        self._allow(mask)

    def _allow(self, eligible: BoolArray) -> None:
        """Plan for what is ``eligible`` from the next plan on; by default no policy can."""
        raise InvalidInputError(
            f"allow must be called on a policy that can restrict arms; got {type(self).__name__}."
        )

    def arm_means(self, present: BoolArray) -> ArmMeans | None:
        """Return each arm's mean over the users who are ``present``, None if there is no estimate.

        It is shown to people; it changes nothing, and costs less than a plan. ``present`` are truth
        values, (n_users,); where nobody is, there is no mean: it is NaN.
        """
        return None

    def beliefs(self, *, users: WholeArray | None = None) -> Beliefs | None:
        """Return what is believed of every user on every arm, None if the policy keeps no such.

        Of these ``users`` only, if their numbers are listed: it takes about a millisecond for each.
        It changes nothing. It is about single users, so show means over at least C of them only.
        """
        return None

    def check_present(self, present: ArrayLike) -> BoolArray:
        """Return which users are present as an array, or refuse what does not say so of each."""
        mask = as_array("present", present)
        if mask.shape != (self.problem.n_users,) or mask.dtype != np.bool_:
            raise InvalidInputError(
                f"present must be truth values of shape {(self.problem.n_users,)}; "
                f"got shape {mask.shape} of {mask.dtype}."
            )
        return mask

    def check_users(self, users: ArrayLike | None) -> WholeArray:
        """Return numbers of users as an array, those of all for None, or refuse others."""
        n_users = self.problem.n_users
        if users is None:
            return np.arange(n_users)
        numbers = as_array("users", users)
        if numbers.size == 0:
            numbers = numbers.astype(np.int64)
        is_list = numbers.ndim == 1 and numbers.dtype.kind in "iu"
        if not is_list or ((numbers < 0) | (numbers >= n_users)).any():
            raise InvalidInputError(
                f"users must be a list of whole numbers between 0 and n_users-1={n_users - 1}; "
                f"got {shortened(users)}."
            )
        return numbers

    def state(self) -> State:
        """Return everything that changes in a run, the plan in play included."""
        if self.origin is not None:
            check_parts(self.origin.parts, self.parts())
        plan = self._pending
        pending = plan and {"arms": plan.arms, "groups": plan.groups, "repeats": plan.repeats}
        return super().state() | {"pending": pending, "problem": self.problem.as_json()}

    def restore(self, state: State) -> None:
        """Continue exactly where ``state`` was taken, by a policy for the same problem."""
        problem = self.problem.as_json()
        if not isinstance(state, Mapping) or "pending" not in state:
            raise no_state(self, state, "pending")
        before = state.get("problem", problem)  # version 0.1 did not keep it
        for name, value in problem.items():
            if before[name] != value:
                raise InvalidInputError(
                    f"{name} in the state must be that of the policy's problem, {value}; "
                    f"got {before[name]}."
                )
        super().restore(state)
        pending = state["pending"]
        self._pending = pending and Plan(**pending, problem=self.problem)

    def save(self, path: str | Path) -> None:
        """Write everything that is needed to go on bit for bit; ``load_policy`` reads it.

        The file is there whole or not at all. It holds numbers of seats and no user's id. The
        policy must have been made by ``make_policy``, which knows how to make it again.
        """
        from shoal.policies.saved import save_policy

        save_policy(self, path)

    def need_horizon(self) -> int:
        """Return the horizon, or refuse a problem without one."""
        if self.problem.horizon is None:
            raise InvalidInputError(f"{type(self).__name__} needs a horizon; got None.")
        return self.problem.horizon

    def need_spare_user(self) -> None:
        """Refuse shards of no more than ``min_group_size`` users (the paper's N > C)."""
        problem = self.problem
        if problem.shard_size <= problem.min_group_size:
            raise InvalidInputError(
                f"n_users must be greater than min_group_size={problem.min_group_size} for "
                f"{type(self).__name__}; got {problem.shard_size}."
            )


def _describe(choice: object) -> str:
    if isinstance(choice, tuple | list):
        return f"{type_of(choice)} of {len(choice)}"
    return shortened(choice)


def rounds_left(
    problem: Problem, rounds: int, drift: float, at_first: float, growth: float
) -> float:
    """Return the rounds for which what is learnt after ``rounds`` can be used.

    Without a horizon, ``at_first`` rounds are expected before the first round, and ``growth`` more
    for each round played. With drift, no more than an observation is useful: a Kalman filter of
    totals with noise variance q forgets at the rate of sqrt(drift / q), and an observation is taken
    to last twice as long. For uniform means, q = C / 6.
    """
    if problem.horizon is None:
        left = at_first + growth * rounds
    else:
        left = float(problem.horizon - rounds)
    return min(left, 2.0 * math.sqrt(problem.min_group_size / 6 / drift)) if drift > 0 else left
