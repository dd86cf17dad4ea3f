"""Environments play plans and release totals (Section 2.1 of the paper); ``means`` is its mu.

Rewards and reports are independent, so a plan is played in two steps that are exact together:
first, in how many rounds each user counts, then the sum of that many rewards.

Every user reports in a round with a probability of its own, independently. A group with fewer than
``min_group_size`` (C) reporters is merged with others of its arm and shard (``model.merging``), or
withheld. A plan that is repeated has one total per group for all its rounds, so that nothing can be
merged in one of them: there, a short group is withheld in that round.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arrays import FloatArray, IntArray
from shoal.errors import InvalidInputError
from shoal.frames import as_array
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem, Stateful
from shoal.model.merging import Reports, merge_played
from shoal.model.numbers import generator, shortened

DRAWS_AT_ONCE = 2**15
"""Reports drawn in one call: few calls where users are few, little memory where they are many."""


class Environment(Stateful, ABC):
    """Draws rewards and releases only what a plan's groups allow.

    ``smallest_group`` is the least number of reporters behind any total released so far (0 before
    the first), ``withheld`` the number of totals that were not released.

    Parameters
    ----------
    problem
        The problem whose plans are played.
    means
        Expected reward of each user on each arm, (n_users, n_arms).
    rng
        The only source of rewards and reports.
    participation
        Probability that a user reports in a round, one for all or one each, (n_users,).
    """

    changing: ClassVar[tuple[str, ...]] = ("rng", "smallest_group", "withheld")

    rewards: ClassVar[str]
    """The name that the registry knows this environment by."""

    bounded: ClassVar[bool] = True
    """Whether rewards, and so their means, lie in [0, 1]."""

    def __init__(
        self,
        problem: Problem,
        means: ArrayLike,
        *,
        rng: np.random.Generator,
        participation: ArrayLike = 1.0,
    ) -> None:
        if not isinstance(problem, Problem):
            raise InvalidInputError(f"problem must be a Problem; got {shortened(problem)}.")
        matrix = self.check_means(means).copy()
        if matrix.shape != (problem.n_users, problem.n_arms):
            raise InvalidInputError(
                f"means must have shape ({problem.n_users}, {problem.n_arms}), "
                f"(n_users, n_arms); got {matrix.shape}."
            )
        matrix.flags.writeable = False
        self.problem = problem
        self.means = matrix
        self.rng = generator("rng", rng)
        self._chances = _check_participation(participation, problem.n_users)
        self._uniforms = np.empty(problem.n_users)  # filled in every round, not allocated
        self.smallest_group = 0
        self.withheld = 0

    @classmethod
    def check_means(cls, means: ArrayLike) -> FloatArray:
        """Return ``means`` as a matrix that these rewards can have, or say where they can't."""
        array = read_means(means)
        if array.dtype.kind not in "biuf" or array.ndim != 2 or not array.size:
            raise InvalidInputError(
                "means must be a matrix of numbers, (n_users, n_arms); "
                f"got dtype {array.dtype} and shape {array.shape}."
            )
        matrix = array.astype(np.float64, order="C", copy=False)
        if cls.bounded:
            fine, rule = (matrix >= 0.0) & (matrix <= 1.0), "between 0 and 1"
        else:
            fine, rule = np.isfinite(matrix), "finite"
        if not fine.all():
            user, arm = np.argwhere(~fine)[0]
            raise InvalidInputError(
                f"the mean of user {user} on arm {arm} must be {rule} for {cls.rewards} rewards; "
                f"got {matrix[user, arm]}."
            )
        return matrix

    def play(self, plan: Plan) -> Feedback:
        """Play ``plan`` for all its rounds and release its totals."""
        if not isinstance(plan, Plan):
            raise InvalidInputError(f"plan must be a Plan; got {shortened(plan)}.")
        if plan.problem is not self.problem and plan.problem != self.problem:
            raise InvalidInputError(
                f"the plan must belong to the environment's {self.problem}; got {plan.problem}."
            )
        if plan.n_groups == 0:
            n_users = len(plan.groups)
            return Feedback(np.zeros(0), np.zeros(0, np.int32), np.zeros(n_users, np.int32))
        if self._chances is None:
            released, reported = all_report(plan)
            smallest = plan.smallest_group
        else:
            reports = draw_reports(plan, self._chances, rng=self.rng)
            plan, released, reported, smallest, withheld = reports
            self.withheld += withheld
        if smallest and not 0 < self.smallest_group <= smallest:
            self.smallest_group = smallest
        return Feedback(self._totals(plan, reported), released, reported, plan)

    @abstractmethod
    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        """Draw each group's total, (n_groups,), where ``reported`` rewards of each user count."""


class Bernoulli(Environment):
    """Rewards of 0 or 1: a user's n rounds sum to a binomial.

    >>> from shoal.model import Problem
    >>> problem = Problem(n_users=4, n_arms=2, min_group_size=2)
    >>> means = [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    >>> environment = Bernoulli(problem, means, rng=np.random.default_rng(0))
    >>> plan = Plan([0, 0, 1, 1], [0, 0, -1, -1], 10, problem=problem)
    >>> feedback = environment.play(plan)
    >>> feedback.totals, feedback.released, feedback.reported
    (array([20.]), array([10], dtype=int32), array([10, 10,  0,  0], dtype=int32))
    """

    rewards: ClassVar[str] = "bernoulli"

    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        if plan.repeats > 1:
            means = self.means[np.arange(len(plan.arms)), plan.arms]
            return _sum_by_group(self.rng.binomial(reported, means), plan.groups, plan.n_groups)
        # Policies that learn every round come here: the feedback is all that it allocates.
        totals = np.zeros(plan.n_groups)
        self.rng.random(out=self._uniforms)
        _add_successes(self._uniforms, self.means, plan.arms, plan.groups, reported, totals)
        return totals


class Gaussian(Environment):
    """Normal rewards of unit variance and any finite means: one draw per group."""

    rewards: ClassVar[str] = "gaussian"
    bounded: ClassVar[bool] = False

    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        totals = _sum_means(self.means, plan.arms, plan.groups, reported, plan.n_groups)
        variances = _sum_by_group(reported, plan.groups, plan.n_groups)
        totals += np.sqrt(variances) * self.rng.standard_normal(plan.n_groups)
        return totals


class Bounded(Environment):
    """Rewards in [0, 1] from the Beta distribution with each user's mean on the arm.

    The Beta's two parameters sum to 2: the variance is mean (1 - mean) / 3, and a mean of one half
    makes the uniform distribution.
    """

    rewards: ClassVar[str] = "bounded"
    dispersion: ClassVar[float] = 1 / 3  # variance in units of mean (1 - mean)

    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        return _sum_betas(self.rng, self.means, plan.arms, plan.groups, reported, plan.n_groups)


class Deterministic(Environment):
    """Every reward is its mean, as in the proof of Theorem 5."""

    rewards: ClassVar[str] = "deterministic"

    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        return _sum_means(self.means, plan.arms, plan.groups, reported, plan.n_groups)


def read_means(means: ArrayLike) -> NDArray[Any]:
    """Return means as an array of any shape; refuse a single value, such as the path of a file.

    >>> read_means("means.csv")
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: means must be an array or a dataframe, (n_users, n_arms); \
got 'means.csv'. shoal.instances.load_means(path) reads a file.
    """
    array = as_array("means", means)
    if array.ndim:
        return array
    message = f"means must be an array or a dataframe, (n_users, n_arms); got {shortened(means)}."
    if isinstance(means, str | Path):
        message += " shoal.instances.load_means(path) reads a file."
    raise InvalidInputError(message)


def _check_participation(participation: ArrayLike, n_users: int) -> FloatArray | None:
    """Return each user's chance to report, (n_users,), or None where all users always do."""
    chances = as_array("participation", participation)
    if chances.dtype.kind not in "biuf" or chances.shape not in ((), (n_users,)):
        raise InvalidInputError(
            f"participation must be one number or n_users={n_users} of them; got {participation!r}."
        )
    fine = (chances >= 0.0) & (chances <= 1.0)
    if not fine.all():
        whose = "" if chances.shape == () else f" of user {np.argmin(fine)}"
        raise InvalidInputError(
            f"participation{whose} must be between 0 and 1; got {chances.flat[np.argmin(fine)]}."
        )
    if np.all(chances == 1.0):
        return None
    return np.broadcast_to(chances, n_users).astype(np.float64)


def all_report(plan: Plan) -> tuple[IntArray, IntArray]:
    """Return the rounds of each group, (n_groups,), and user, (n_users,), where all report."""
    released, reported = _zeros(plan)
    _count_all(plan.groups, plan.repeats, released, reported)
    return released, reported


def draw_reports(plan: Plan, chances: FloatArray, *, rng: np.random.Generator) -> Reports:
    """Draw who reports in each round of a plan, with the probabilities ``chances``, (n_users,).

    Groups that are short of reporters are merged in a plan of one round.
    """
    if plan.repeats == 1:
        return merge_played(plan, rng.random(len(chances)) < chances)
    released, reported = _zeros(plan)
    n_users = len(chances)
    n_rounds = max(1, DRAWS_AT_ONCE // n_users)
    smallest, withheld = n_users + 1, 0
    for start in range(0, plan.repeats, n_rounds):
        uniforms = rng.random((min(n_rounds, plan.repeats - start), n_users))
        fewest, n_withheld = _count_reports(
            uniforms, chances, plan.groups, plan.problem.min_group_size, released, reported
        )
        smallest = min(smallest, fewest)
        withheld += n_withheld
    return Reports(plan, released, reported, smallest if smallest <= n_users else 0, withheld)


def _zeros(plan: Plan) -> tuple[IntArray, IntArray]:
    """Return no releases, (n_groups,), and no reports, (n_users,)."""
    if plan.repeats >= 2**31:
        raise InvalidInputError(
            f"repeats must be less than 2**31 to be played; got {plan.repeats}."
        )
    return np.zeros(plan.n_groups, np.int32), np.zeros(len(plan.groups), np.int32)


@kernel()
def _count_all(groups: IntArray, repeats: int, released: IntArray, reported: IntArray) -> None:
    for user in range(len(groups)):
        if groups[user] >= 0:
            released[groups[user]] = repeats
            reported[user] = repeats


@kernel()
def _count_reports(
    uniforms: FloatArray, chances: FloatArray, groups: IntArray, min_group_size: int,
    released: IntArray, reported: IntArray,
) -> tuple[int, int]:  # fmt: skip
    """Count who is in releases; return the fewest reporters of one, and the totals withheld."""
    n_rounds, n_users = uniforms.shape
    reporters = np.empty(len(released), np.int32)
    has_users = np.zeros(len(released), np.bool_)
    for user in range(n_users):
        if groups[user] >= 0:
            has_users[groups[user]] = True
    smallest, withheld = n_users + 1, 0
    for t in range(n_rounds):
        reporters[:] = 0
        for user in range(n_users):
            if groups[user] >= 0:
                reporters[groups[user]] += uniforms[t, user] < chances[user]
        for group in range(len(reporters)):
            if reporters[group] >= min_group_size:
                released[group] += 1
                smallest = min(smallest, reporters[group])
            else:
                withheld += has_users[group]
        for user in range(n_users):
            if groups[user] >= 0 and reporters[groups[user]] >= min_group_size:
                reported[user] += uniforms[t, user] < chances[user]
    return smallest, withheld


@kernel()
def _add_successes(
    uniforms: FloatArray, means: FloatArray, arms: IntArray, groups: IntArray, reported: IntArray,
    totals: FloatArray,
) -> None:  # fmt: skip
    for user in range(len(arms)):
        if reported[user]:
            totals[groups[user]] += uniforms[user] < means[user, arms[user]]


@kernel()
def _sum_means(
    means: FloatArray, arms: IntArray, groups: IntArray, reported: IntArray, n_groups: int
) -> FloatArray:
    totals = np.zeros(n_groups)
    for user in range(len(arms)):
        if reported[user]:
            totals[groups[user]] += reported[user] * means[user, arms[user]]
    return totals


@kernel()
def _sum_betas(
    rng: np.random.Generator, means: FloatArray, arms: IntArray, groups: IntArray,
    reported: IntArray, n_groups: int,
) -> FloatArray:  # fmt: skip
    totals = np.zeros(n_groups)
    for user in range(len(arms)):
        if reported[user]:
            mean = means[user, arms[user]]
            a, b = 2.0 * mean, 2.0 * (1.0 - mean)
            if a == 0.0 or b == 0.0:
                totals[groups[user]] += reported[user] * mean
            else:
                for _ in range(reported[user]):
                    totals[groups[user]] += rng.beta(a, b)
    return totals


@kernel()
def _sum_by_group(amounts: NDArray[np.integer], groups: IntArray, n_groups: int) -> FloatArray:
    totals = np.zeros(n_groups)
    for user in range(len(groups)):
        if groups[user] >= 0:
            totals[groups[user]] += amounts[user]
    return totals
