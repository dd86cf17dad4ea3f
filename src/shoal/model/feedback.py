"""What a learner sees of a round: released totals and who is in them, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InvalidInputError
from shoal.model.plan import Plan

Counts = NDArray[np.integer[Any] | np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Feedback:
    """The released totals of one plan.

    Where a plan was repeated, totals, releases and reports are counted over all its rounds. A
    group with fewer than ``min_group_size`` reporters in a round is withheld in that round: its
    total is never released, and nobody in it counts as having reported.

    Parameters
    ----------
    totals
        Sum of the released totals of each group, (n_groups,); 0 where nothing was released.
    released
        Rounds in which each group's total was released, (n_groups,).
    reported
        Rounds in which each user's reward is part of a released total, (n_users,).
    """

    totals: NDArray[np.float64]
    released: Counts
    reported: Counts

    def check(self, plan: Plan) -> None:
        """Refuse feedback that can't belong to ``plan``."""
        for name, n in (
            ("totals", plan.n_groups),
            ("released", plan.n_groups),
            ("reported", len(plan.groups)),
        ):
            shape = getattr(self, name).shape
            if shape != (n,):
                raise InvalidInputError(
                    f"feedback.{name} must have shape ({n},) to fit the plan; got {shape}."
                )
