"""What every environment does: play a plan and release its totals (Section 2.1 of the paper).

Rewards and reports are independent, so a plan is played in two steps that are exact together:
``participation`` decides in how many rounds each user counts, and the environment draws the sum
of that many rewards. ``means`` is the paper's mu.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import FloatArray, IntArray
from shoal.environments.participation import all_report, draw_and_merge, draw_reports
from shoal.errors import InvalidInputError
from shoal.model import Feedback, Plan, Problem, Stateful


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
        Probability that a user reports in a round, one for all or one each, (n_users,). A group
        with fewer than ``problem.min_group_size`` reporters is merged with others of its arm, as
        in the service, or withheld; in a plan that is repeated, it is withheld in that round.
    """

    changing: ClassVar[tuple[str, ...]] = ("rng", "smallest_group", "withheld")

    rewards: ClassVar[str]
    """The name that the registry knows this environment by."""

    bounded: ClassVar[bool] = True
    """Whether rewards, and so their means, lie in [0, 1]."""

    problem: Final[Problem]
    means: Final[FloatArray]
    rng: Final[np.random.Generator]

    def __init__(
        self,
        problem: Problem,
        means: ArrayLike,
        *,
        rng: np.random.Generator,
        participation: ArrayLike = 1.0,
    ) -> None:
        matrix = self.check_means(means).copy()
        if matrix.shape != (problem.n_users, problem.n_arms):
            raise InvalidInputError(
                f"means must have shape ({problem.n_users}, {problem.n_arms}), "
                f"(n_users, n_arms); got {matrix.shape}."
            )
        matrix.flags.writeable = False
        self.problem = problem
        self.means = matrix
        self.rng = rng
        self._chances = _check_participation(participation, problem.n_users)
        self._no_feedback = _no_feedback(problem.n_users)
        self.smallest_group = 0
        self.withheld = 0

    @classmethod
    def check_means(cls, means: ArrayLike) -> FloatArray:
        """Return ``means`` as a matrix that these rewards can have, or say where they can't."""
        try:
            array = np.asarray(means)
        except ValueError as error:
            raise InvalidInputError(
                "means must be a matrix, (n_users, n_arms); got rows of different lengths."
            ) from error
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
        if plan.problem is not self.problem and plan.problem != self.problem:
            raise InvalidInputError(
                f"the plan must belong to the environment's {self.problem}; got {plan.problem}."
            )
        if plan.n_groups == 0:
            return self._no_feedback
        if self._chances is None:
            released, reported = all_report(plan)
            smallest = plan.smallest_group
        else:
            draw = draw_and_merge if plan.repeats == 1 else draw_reports
            plan, released, reported, smallest, withheld = draw(plan, self._chances, rng=self.rng)
            self.withheld += withheld
        if smallest and not 0 < self.smallest_group <= smallest:
            self.smallest_group = smallest
        return Feedback(self._totals(plan, reported), released, reported, plan)

    @abstractmethod
    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        """Draw each group's total, (n_groups,), where ``reported`` rewards of each user count."""


def _check_participation(participation: ArrayLike, n_users: int) -> FloatArray | None:
    """Return each user's chance to report, (n_users,), or None where all users always do."""
    chances = np.asarray(participation)
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


def _no_feedback(n_users: int) -> Feedback:
    totals, released, reported = np.zeros(0), np.zeros(0, np.int32), np.zeros(n_users, np.int32)
    for array in (totals, released, reported):
        array.flags.writeable = False
    return Feedback(totals, released, reported)
