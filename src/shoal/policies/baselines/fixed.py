"""Two policies that learn nothing, for scale: random play and the best single arm in hindsight."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import InvalidInputError
from shoal.model import Feedback, Plan, Problem
from shoal.policies.base import Choice, Policy, ungrouped


class RandomPlay(Policy):
    """Every user plays a random arm in every round; nothing is observed."""

    def _choose(self) -> Choice:
        arms = self.rng.integers(self.problem.n_arms, size=self.problem.n_users)
        return arms, ungrouped(self.problem), 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        pass


class SingleArm(Policy):
    """Everyone plays one arm for ever; nothing is observed.

    Parameters
    ----------
    arm
        The arm, or one for each shard. ``simulate`` fills in the best single arm in hindsight.
    """

    def __init__(self, problem: Problem, *, rng: np.random.Generator, arm: ArrayLike = 0) -> None:
        super().__init__(problem, rng=rng)
        given = np.asarray(arm)
        if given.ndim > 1 or given.size not in (1, problem.n_shards):
            raise InvalidInputError(
                f"arm must be one number or one for each of {problem.n_shards} shards; got {arm!r}."
            )
        per_shard = np.broadcast_to(given, problem.n_shards)
        self._arms = np.repeat(per_shard, problem.shard_size)

    def _choose(self) -> Choice:
        horizon = self.problem.horizon
        return self._arms, ungrouped(self.problem), (horizon or 1)

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        pass
