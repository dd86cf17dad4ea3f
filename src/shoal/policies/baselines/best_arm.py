"""The best single arm in hindsight: the regret of a product without personalisation."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shoal.errors import InvalidInputError
from shoal.model import Feedback, Plan, Problem
from shoal.policies.base import Choice, Policy, ungrouped


class BestArm(Policy):
    """Every user plays one fixed arm in every round; nothing is observed.

    Parameters
    ----------
    arm
        The arm, or one for each shard. ``simulate`` fills in the best single arm in hindsight.
    """

    def __init__(self, problem: Problem, *, rng: np.random.Generator, arm: ArrayLike = 0) -> None:
        super().__init__(problem, rng=rng)
        shard_arms = np.asarray(arm)
        if shard_arms.ndim > 1 or shard_arms.size not in (1, problem.n_shards):
            raise InvalidInputError(
                f"arm must be one number or one for each of {problem.n_shards} shards; got {arm!r}."
            )
        shard_arms = np.broadcast_to(shard_arms, problem.n_shards)
        self._arms = np.repeat(shard_arms, problem.shard_size)

    def _choose(self) -> Choice:
        return self._arms, ungrouped(self.problem), self.problem.horizon or 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        pass
