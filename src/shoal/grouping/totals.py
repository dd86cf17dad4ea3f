"""One round's groups and totals as kernels read them."""

from __future__ import annotations

from typing import NamedTuple

from shoal.arrays import CountArray, FloatArray, IntArray
from shoal.kernels import kernel
from shoal.model import Feedback, Plan


class RoundTotals(NamedTuple):
    """A played plan and its feedback: of all users, or of one shard's with all groups."""

    arms: IntArray  # (n_users,)
    groups: IntArray  # (n_users,) -1 for none
    totals: FloatArray  # (n_groups,)
    released: CountArray  # (n_groups,)
    reported: CountArray  # (n_users,)


def round_totals(plan: Plan, feedback: Feedback) -> RoundTotals:
    """Return the arrays of a plan and its feedback."""
    return RoundTotals(
        plan.arms, plan.groups, feedback.totals, feedback.released, feedback.reported
    )


@kernel()
def of_users(played: RoundTotals, first: int, end: int) -> RoundTotals:
    """Return the part of the users from ``first`` to before ``end``."""
    return RoundTotals(
        played.arms[first:end], played.groups[first:end], played.totals, played.released,
        played.reported[first:end],
    )  # fmt: skip
