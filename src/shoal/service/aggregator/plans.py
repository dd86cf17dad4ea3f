"""A plan as it is frozen: one arm and one group number per seat.

It is frozen by its hash before the first report, and is checked by the ``Plan`` type: each group
has one arm and at least C users, and a seat is in one group at most (threats 4 and 5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.arrays import BoolArray, IntArray
from shoal.errors import InvalidInputError
from shoal.model import Plan
from shoal.service.campaign import Campaign, plan_hash
from shoal.service.problems import PLAN_REFUSED, ROSTER_CHANGED, ProblemError


@dataclass(frozen=True, slots=True, eq=False)
class FrozenPlan:
    """Each seat's arm (-1: not in the round) and group (-1: none), (n_seats,)."""

    arms: IntArray
    groups: IntArray

    @property
    def hash(self) -> str:
        """Return the hash by which the plan is frozen."""
        return plan_hash(self.arms, self.groups)

    def check(self, campaign: Campaign, occupied: BoolArray, offered: BoolArray) -> None:
        """Refuse a plan that breaks anonymity, counts empty seats or plays arms not on offer."""
        if self.arms.shape != (campaign.seats,) or self.groups.shape != (campaign.seats,):
            raise ProblemError(PLAN_REFUSED)
        if not np.array_equal(self.arms >= 0, occupied):
            raise ProblemError(ROSTER_CHANGED)
        if (self.groups[~occupied] != -1).any():
            raise ProblemError(PLAN_REFUSED)
        try:
            Plan(np.maximum(self.arms, 0), self.groups, problem=campaign.problem())
        except InvalidInputError:
            raise ProblemError(PLAN_REFUSED) from None
        if not offered[self.arms[occupied]].all():
            raise ProblemError(PLAN_REFUSED)
