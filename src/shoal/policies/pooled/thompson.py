"""Thompson sampling from totals, as plain as it gets: sample, play, group at random, update.

Two rules beyond the textbook: nobody explores unseen (who would be in a crowd too small for a
group plays its favourite), and crowds are regrouped at random in every round, so that their
members can be told apart. Shards of up to ``JOINT`` users keep the joint posterior, larger ones
the mean-field.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import BoolArray, IntArray
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.policies.base import HALF_95, ArmMeans, Choice, Policy
from shoal.policies.pooled.least_squares import regroup
from shoal.policies.pooled.mean_field import MeanField
from shoal.policies.shoal.joint.posterior import JOINT, JointPosterior


class PooledThompson(Policy):
    """Thompson sampling on the joint posterior, or on the mean-field one in large shards.

    Parameters
    ----------
    drift
        Variance by which each user's mean may move in a round; old rounds fade accordingly.
    """

    changing = (*Policy.changing, "posterior")
    takes_merged = True

    def __init__(self, problem: Problem, *, rng: np.random.Generator, drift: float = 0.0) -> None:
        super().__init__(problem, rng=rng)
        kind = JointPosterior if problem.shard_size <= JOINT else MeanField
        self.posterior: JointPosterior | MeanField = kind(problem, drift=drift)

    def _choose(self) -> Choice:
        problem = self.problem
        arms = self.posterior.sample(self.rng)
        groups: IntArray = np.empty(problem.n_users, np.int32)
        estimates = self.posterior.estimates()
        uniforms = self.rng.random(problem.n_users)
        for shard in range(problem.n_shards):
            users, least = problem.shard(shard), problem.min_group_size
            never_unseen(estimates[users], arms[users], least)
            regroup(arms[users], problem.n_arms, least, users.start, uniforms[users], groups[users])
        return arms, groups, 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self.posterior.absorb(plan, feedback)

    def arm_means(self, present: BoolArray) -> ArmMeans:
        """Return each arm's mean over the users who are ``present``, from the posterior."""
        means, deviations = self.posterior.average(present)
        return ArmMeans(means, HALF_95 * deviations)


@kernel()
def never_unseen(estimates: NDArray[np.floating[Any]], arms: IntArray, min_group_size: int) -> None:
    """Send explorers in crowds that are too small for a group back to their favourites."""
    crowds = np.zeros(estimates.shape[1], np.int64)
    for arm in arms:
        crowds[arm] += 1
    for user in range(len(arms)):
        if crowds[arms[user]] < min_group_size:
            favourite = estimates[user].argmax()
            crowds[arms[user]] -= 1
            crowds[favourite] += 1
            arms[user] = favourite
