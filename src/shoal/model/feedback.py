"""What a learner sees of a round: released totals and who is in them, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrays import CountArray, FloatArray, IntArray
from shoal.errors import AnonymityError, InvalidInputError
from shoal.kernels import kernel
from shoal.model.numbers import shortened
from shoal.model.plan import Plan
from shoal.notebook import html_table

if TYPE_CHECKING:
    import polars as pl

_FLOAT64, _INT32 = np.dtype(np.float64), np.dtype(np.int32)
_FINE, _TOTAL, _RELEASED, _REPORTED, _FEW = range(5)


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
            totals = _column("totals", self.totals, "biuf", "numbers").astype(np.float64)
            object.__setattr__(self, "totals", totals)
        for name in ("released", "reported"):
            counts = getattr(self, name)
            if not isinstance(counts, np.ndarray) or counts.dtype.kind not in "biu":
                object.__setattr__(self, name, _column(name, counts, "biu", "whole numbers"))

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
            if not _is_merged(self.plan, plan):
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
        verdict, where = _check(
            plan.groups, plan.repeats, plan.problem.min_group_size, self.totals, self.released,
            self.reported, plan.problem.bounded,
        )  # fmt: skip
        if verdict == _TOTAL:
            bounded = plan.problem.bounded
            rule = "between 0 and its reports" if bounded else "a finite number"
            raise InvalidInputError(
                f"the total of group {where} must be {rule}; got {self.totals[where]}."
            )
        if verdict == _RELEASED:
            raise InvalidInputError(
                f"group {where} must be released between 0 and {plan.repeats} times; "
                f"got {self.released[where]}."
            )
        if verdict == _REPORTED:
            raise InvalidInputError(
                f"user {where} must report at most {plan.repeats} times, and in a released group; "
                f"got {self.reported[where]}."
            )
        if verdict == _FEW:
            min_size = plan.problem.min_group_size
            raise AnonymityError(
                f"group {where} must have at least {min_size * int(self.released[where])} reports, "
                f"min_group_size={min_size} whenever it is released; "
                f"got {self.reported[plan.groups == where].sum()}."
            )

    def unmerged(self, plan: Plan) -> Feedback:
        """Return the feedback of the groups in ``plan``: merged ones count as withheld."""
        if self.plan is None or self.plan is plan:
            return self
        groups, n_groups = self.plan.groups, self.plan.n_groups
        moved = groups != plan.groups
        alone = np.ones(plan.n_groups, np.bool_)
        alone[plan.groups[moved]] = alone[groups[moved]] = False
        totals, released = np.zeros(plan.n_groups), np.zeros(plan.n_groups, np.int32)
        totals[:n_groups], released[:n_groups] = self.totals, self.released
        reported = self.reported * np.append(alone, False)[plan.groups]
        return Feedback(totals * alone, released * alone, reported, plan)


def _column(name: str, values: object, kinds: str, rule: str) -> Any:
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


def _is_merged(merged: Plan, plan: Plan) -> bool:
    """Return whether ``merged`` is one round of ``plan``, with some of its groups joined."""
    return (
        merged.repeats == plan.repeats == 1
        and merged.problem == plan.problem
        and np.array_equal(merged.arms, plan.arms)
        and bool(_joins(plan.groups, merged.groups, plan.n_groups))
    )


@kernel()
def _joins(groups: IntArray, merged: IntArray, n_groups: int) -> bool:
    """Return whether all members of each group are in one merged group, and no one else is."""
    into = np.full(n_groups, -1, np.int32)
    for user in range(len(groups)):
        group = groups[user]
        if (group < 0) != (merged[user] < 0):
            return False
        if group >= 0:
            if into[group] >= 0 and into[group] != merged[user]:
                return False
            into[group] = merged[user]
    return True


@kernel()
def _check(
    groups: IntArray, repeats: int, min_group_size: int, totals: FloatArray, released: CountArray,
    reported: CountArray, bounded: bool,
) -> tuple[int, int]:  # fmt: skip
    """Return what is wrong, and with which group or user."""
    reports = np.zeros(len(totals), np.int64)
    for user in range(len(groups)):
        group = groups[user]
        if group >= 0:
            if reported[user] < 0 or reported[user] > released[group]:
                return _REPORTED, user
            reports[group] += reported[user]
        elif reported[user]:
            return _REPORTED, user
    for group in range(len(totals)):
        if released[group] < 0 or released[group] > repeats:
            return _RELEASED, group
        if reports[group] < released[group] * min_group_size:
            return _FEW, group
        if not np.isfinite(totals[group]):
            return _TOTAL, group
        if bounded and not -1e-9 <= totals[group] <= reports[group] * (1 + 1e-9):
            return _TOTAL, group
    return _FINE, 0
