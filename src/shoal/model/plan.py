"""One round's decision, and what is released of it (Section 2.1: the assignment, its partition).

A ``Plan`` is each user's arm and group; one that breaks anonymity can't exist. ``Feedback`` is what
a learner sees of it: released totals and who is in them, nothing else. Each is checked by one
compiled pass over the users.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import CountArray, FloatArray, IntArray
from shoal.errors import InvalidInputError
from shoal.frames import as_array
from shoal.kernels import kernel
from shoal.model.numbers import shortened, whole_number
from shoal.model.problem import Problem
from shoal.model.verdicts import (
    BAD_ARM,
    BAD_GROUP,
    BAD_RELEASES,
    BAD_REPORTS,
    BAD_TOTAL,
    FEW_REPORTS,
    FINE,
    SMALL_GROUP,
    TWO_ARMS,
    TWO_SHARDS,
    feedback_error,
    plan_error,
)
from shoal.notebook import html_table

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from shoal.model.totals import Rewards

_INT32, _FLOAT64 = np.dtype(np.int32), np.dtype(np.float64)


class Plan:
    """Each user's arm and group for one round, or for ``repeats`` rounds in a row.

    Parameters
    ----------
    arms
        Each user's arm, (n_users,).
    groups
        Each user's group, (n_users,); -1 for a user in no group. Numbers below ``n_users``, not
        necessarily consecutive. Every group has one arm, lies in one shard and has at least
        ``problem.min_group_size`` members.
    repeats
        Play the same plan in this many consecutive rounds and sum the totals.
    problem
        The problem that the plan belongs to.

    Attributes
    ----------
    n_groups : int
        One more than the largest group number; the length of the feedback's totals.
    smallest_group : int
        Users in the smallest group, 0 if there is none.

    Examples
    --------
    >>> problem = Problem(n_users=5, n_arms=2, min_group_size=2)
    >>> Plan([0, 0, 1, 1, 1], [0, 0, 1, 1, -1], problem=problem)
    Plan(n_users=5, n_groups=2, smallest_group=2, repeats=1)
    >>> Plan([0, 0, 1, 1, 1], [0, 0, 1, 1, 2], problem=problem)
    Traceback (most recent call last):
    shoal.errors.AnonymityError: group 2 must have at least min_group_size=2 users; got 1.
    """

    __slots__ = ("arms", "groups", "n_groups", "problem", "repeats", "smallest_group")

    arms: IntArray
    groups: IntArray
    repeats: int
    problem: Problem
    n_groups: int
    smallest_group: int

    def __init__(
        self, arms: ArrayLike, groups: ArrayLike, repeats: int = 1, *, problem: Problem
    ) -> None:
        if not isinstance(problem, Problem):
            raise InvalidInputError(f"problem must be a Problem; got {shortened(problem)}.")
        arm_column = _column("arms", arms, problem.n_users)
        group_column = _column("groups", groups, problem.n_users)
        verdict, where, n_groups, smallest = _check_groups(
            arm_column, group_column, problem.n_arms, problem.min_group_size, problem.shard_size
        )
        if verdict != FINE:
            raise plan_error(verdict, where, arm_column, group_column, problem)
        if type(repeats) is not int or repeats < 1:
            repeats = whole_number("repeats", repeats)
        arm_column.setflags(write=False)
        group_column.setflags(write=False)
        assign = object.__setattr__
        assign(self, "arms", arm_column)
        assign(self, "groups", group_column)
        assign(self, "repeats", repeats)
        assign(self, "problem", problem)
        assign(self, "n_groups", n_groups)
        assign(self, "smallest_group", smallest)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Plan can't be changed; tried to set {name!r}")

    def __repr__(self) -> str:
        return (
            f"Plan(n_users={len(self.arms)}, n_groups={self.n_groups}, "
            f"smallest_group={self.smallest_group}, repeats={self.repeats})"
        )

    def _repr_html_(self) -> str:
        rows = []
        for arm in range(self.problem.n_arms):
            groups = self.groups[self.arms == arm]
            n_groups = len(np.unique(groups[groups >= 0]))
            rows.append((arm, len(groups), n_groups, np.count_nonzero(groups < 0)))
        rounds = "one round" if self.repeats == 1 else f"{self.repeats:,} rounds"
        names = ["arm", "users", "groups", "users in no group"]
        return html_table(f"Plan for {rounds}", names, rows)

    @property
    def assignments(self) -> dict[int, int]:
        """Each user's arm, by the user's number; a ``Roster`` has it by the user's id."""
        return dict(enumerate(self.arms.tolist()))

    def add_up(self, *rounds: Rewards) -> Feedback:
        """Return what a learner may see of rewards: the totals of the plan's groups.

        A group with fewer than ``min_group_size`` reporters is merged with others of its arm, or
        withheld, as in simulations and in the service. Rewards of users in no group add to
        nothing.

        Parameters
        ----------
        *rounds
            The rewards of those who reported, by the user's number, for each of the plan's
            ``repeats`` rounds: a mapping, pairs, or a dataframe of two columns.

        Examples
        --------
        >>> problem = Problem(n_users=5, n_arms=2, min_group_size=2)
        >>> plan = Plan([0, 0, 1, 1, 1], [0, 0, 1, 1, -1], problem=problem)
        >>> plan.add_up({0: 1.0, 1: 0.0, 2: 1.0})
        Feedback(n_groups=2, n_released=1, n_reported=2)
        """
        from shoal.model.totals import add_up

        return add_up(self, *rounds)

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each user: its arm, and its group or -1."""
        import polars as pl

        users = np.arange(len(self.arms), dtype=np.int32)
        return pl.DataFrame({"user": users, "arm": self.arms, "group": self.groups})

    def plot(self) -> alt.LayerChart:
        """Draw each arm's crowd, cut into its groups, against the least group size."""
        from shoal.figures import crowds_figure

        return crowds_figure(self.arms, self.groups, min_group_size=self.problem.min_group_size)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Plan, problem=self.problem), (self.arms, self.groups, self.repeats)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Feedback:
    """The released totals of one plan.

    Where a plan was repeated, totals, releases and reports are counted over all its rounds. A
    group with fewer than ``min_group_size`` reporters in a round is merged with others of its arm,
    or withheld in that round: its total is never released, and nobody in it counts as having
    reported.

    Parameters
    ----------
    totals
        Sum of the released totals of each group, (n_groups,); 0 where nothing was released.
    released
        Rounds in which each group's total was released, (n_groups,).
    reported
        Rounds in which each user's reward is part of a released total, (n_users,).
    plan
        The plan that was played, where it is known; or the same with the groups that were
        released, where some were merged after the plan was made (``merging``).
    """

    totals: FloatArray
    released: CountArray
    reported: CountArray
    plan: Plan | None = None

    def __post_init__(self) -> None:
        totals: Any = self.totals
        released: Any = self.released
        reported: Any = self.reported
        if (
            not type(totals) is type(released) is type(reported) is np.ndarray
            or totals.dtype is not _FLOAT64
            or not released.dtype is reported.dtype is _INT32
        ):  # not an environment's own: convert what can be
            self._convert()

    def _convert(self) -> None:
        """Turn all fields into arrays of numbers, or refuse them by name."""
        if not isinstance(self.totals, np.ndarray) or self.totals.dtype != _FLOAT64:
            totals = _feedback_column("totals", self.totals, "biuf", "numbers").astype(np.float64)
            object.__setattr__(self, "totals", totals)
        for name in ("released", "reported"):
            counts = getattr(self, name)
            if not isinstance(counts, np.ndarray) or counts.dtype.kind not in "biu":
                counts = _feedback_column(name, counts, "biu", "whole numbers")
                object.__setattr__(self, name, counts)

    def __repr__(self) -> str:
        return (
            f"Feedback(n_groups={len(self.totals)}, n_released={np.count_nonzero(self.released)}, "
            f"n_reported={np.count_nonzero(self.reported)})"
        )

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        return html_table("Feedback: all that a learner sees", frame.columns, frame.rows())

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each released total: its group, arm, rounds, reports and the total.

        The arm and the reports are known where the plan is.
        """
        import polars as pl

        groups = np.flatnonzero(self.released)
        columns: dict[str, Any] = {"group": groups.astype(np.int32)}
        if self.plan is not None:
            members, plan = self.plan.groups >= 0, self.plan
            arms = np.zeros(plan.n_groups, np.int32)
            arms[plan.groups[members]] = plan.arms[members]
            reports = np.zeros(plan.n_groups, np.int64)
            np.add.at(reports, plan.groups[members], self.reported[members])
            columns |= {"arm": arms[groups], "reports": reports[groups]}
        columns |= {"rounds": self.released[groups].astype(np.int32), "total": self.totals[groups]}
        return pl.DataFrame(columns)

    def check(self, plan: Plan) -> None:
        """Refuse feedback that can't belong to ``plan``."""
        if self.plan is not None and self.plan is not plan:
            from shoal.model.merging import is_merged

            if not is_merged(self.plan, plan):
                raise InvalidInputError(
                    f"feedback must be for the plan asked for; got {self.plan}'s."
                )
            plan = self.plan
        n_users, n_groups = len(plan.groups), plan.n_groups
        if self.totals.shape != (n_groups,) or self.released.shape != (n_groups,):
            raise InvalidInputError(
                f"feedback must have {n_groups} totals and releases to fit the plan; "
                f"got {self.totals.shape} and {self.released.shape}."
            )
        if self.reported.shape != (n_users,):
            raise InvalidInputError(
                f"feedback.reported must have shape ({n_users},); got {self.reported.shape}."
            )
        problem = plan.problem
        verdict, where = _check_totals(
            plan.groups, plan.repeats, problem.min_group_size, self.totals, self.released,
            self.reported, problem.bounded,
        )  # fmt: skip
        if verdict != FINE:
            raise feedback_error(verdict, where, self, plan)

    def unmerged(self, plan: Plan) -> Feedback:
        """Return the feedback of the groups in ``plan``: merged ones count as withheld."""
        if self.plan is None or self.plan is plan:
            return self
        from shoal.model.merging import unmerge

        return unmerge(self, self.plan, plan)


def _column(name: str, values: ArrayLike, n_users: int) -> IntArray:
    """Return a copy of ``values`` as an int32 column, refusing anything that is not whole."""
    array = values if type(values) is np.ndarray else as_array(name, values)
    if array.shape != (n_users,):
        raise InvalidInputError(f"{name} must have shape ({n_users},); got {array.shape}.")
    if array.dtype == _INT32:
        return array.copy()
    if array.dtype.kind not in "iu":
        raise InvalidInputError(f"{name} must hold whole numbers; got dtype {array.dtype}.")
    if not -(2**31) <= array.min() <= array.max() < 2**31:
        raise InvalidInputError(f"{name} must fit in 32 bits; got {array.max()}.")
    return array.astype(np.int32)


@kernel()
def _check_groups(
    arms: IntArray, groups: IntArray, n_arms: int, min_group_size: int, shard_size: int
) -> tuple[int, int, int, int]:
    """Return the verdict, the user or group it is about, the group count and smallest size."""
    n_users = len(arms)
    n_groups = 0
    for user in range(n_users):
        if arms[user] < 0 or arms[user] >= n_arms:
            return BAD_ARM, user, 0, 0
        if groups[user] < -1 or groups[user] >= n_users:
            return BAD_GROUP, user, 0, 0
        n_groups = max(n_groups, groups[user] + 1)
    sizes = np.zeros(n_groups, np.int32)
    arm = np.empty(n_groups, np.int32)
    shard_end = np.empty(n_groups, np.int32)
    for user in range(n_users):
        group = groups[user]
        if group >= 0:
            if sizes[group] == 0:
                arm[group] = arms[user]
                shard_end[group] = (user // shard_size + 1) * shard_size
            elif arms[user] != arm[group]:
                return TWO_ARMS, user, 0, 0
            elif user >= shard_end[group]:
                return TWO_SHARDS, user, 0, 0
            sizes[group] += 1
    smallest = 0
    for group in range(n_groups):
        if sizes[group] > 0:
            if sizes[group] < min_group_size:
                return SMALL_GROUP, group, 0, 0
            if smallest == 0 or sizes[group] < smallest:
                smallest = sizes[group]
    return FINE, 0, n_groups, smallest


def _feedback_column(name: str, values: object, kinds: str, rule: str) -> Any:
    """Return ``values`` as an array of one of these kinds, or refuse them by name."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty(0, np.object_)
    if (array.dtype.kind not in kinds and array.size) or array.ndim != 1:
        raise InvalidInputError(
            f"feedback.{name} must be an array of {rule}; got {shortened(values)}."
        )
    return array if array.size else array.astype(np.int32)


@kernel()
def _check_totals(
    groups: IntArray, repeats: int, min_group_size: int, totals: FloatArray, released: CountArray,
    reported: CountArray, bounded: bool,
) -> tuple[int, int]:  # fmt: skip
    """Return what is wrong, and with which group or user."""
    reports = np.zeros(len(totals), np.int64)
    for user in range(len(groups)):
        group = groups[user]
        if group >= 0:
            if reported[user] < 0 or reported[user] > released[group]:
                return BAD_REPORTS, user
            reports[group] += reported[user]
        elif reported[user]:
            return BAD_REPORTS, user
    for group in range(len(totals)):
        if released[group] < 0 or released[group] > repeats:
            return BAD_RELEASES, group
        if reports[group] < released[group] * min_group_size:
            return FEW_REPORTS, group
        if not np.isfinite(totals[group]):
            return BAD_TOTAL, group
        if bounded and not -1e-9 <= totals[group] <= reports[group] * (1 + 1e-9):
            return BAD_TOTAL, group
    return FINE, 0
