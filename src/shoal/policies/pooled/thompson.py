"""Thompson sampling from totals: sample, play, group at random, update.

Two rules beyond the textbook: nobody explores unseen (who would be in a crowd too small for a
group plays its favourite), and crowds are regrouped at random in every round, so that their
members can be told apart. Small shards keep the joint posterior, larger ones the mean-field.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.arrays import IntArray
from shoal.grouping import play_favourites, regroup, small_crowds
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.policies.base import ArmMeans, Choice, Policy
from shoal.policies.pooled.mean_field import MeanField
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.posterior import JointPosterior


class PooledThompson(Policy):
    """Thompson sampling on the joint posterior, or on the mean-field one in large shards.

    Parameters
    ----------
    drift
        Variance by which each user's mean may move in a round; old rounds count less accordingly.
    """

    changing = (*Policy.changing, "posterior")
    takes_merged = True
    takes_groups = True
    takes_shards = True

    def __init__(self, problem: Problem, *, rng: np.random.Generator, drift: float = 0.0) -> None:
        super().__init__(problem, rng=rng)
        kind = JointPosterior if problem.shard_size <= JOINT.max_users else MeanField
        self.posterior: JointPosterior | MeanField = kind(problem, drift=drift)

    def _choose(self) -> Choice:
        problem = self.problem
        n_arms, min_group_size = problem.n_arms, problem.min_group_size
        arms = self.posterior.sample(self.rng)
        groups: IntArray = np.empty(problem.n_users, np.int32)
        estimates = self.posterior.estimates()
        uniforms = self.rng.random(problem.n_users)
        for shard in range(problem.n_shards):
            users = problem.shard(shard)
            _return_unseen(estimates[users], arms[users], min_group_size)
            regroup(
                arms[users], n_arms, min_group_size, users.start, uniforms[users], groups[users]
            )
        return arms, groups, 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self.posterior.absorb(plan, feedback)

    def arm_means(self, present: ArrayLike) -> ArmMeans:
        """Return each arm's mean over the users who are ``present``, from the posterior."""
        return self.posterior.arm_means(self.check_present(present))


@kernel()
def _return_unseen(
    estimates: NDArray[np.floating[Any]], arms: IntArray, min_group_size: int
) -> None:
    """Let users of crowds that are too small for a group play their favourites."""
    everyone = np.ones(len(arms), np.bool_)
    crowds, users = small_crowds(arms, everyone, estimates.shape[1], min_group_size)
    favourites = np.empty(len(users), np.int64)
    for place in range(len(users)):
        favourites[place] = estimates[users[place]].argmax()
    play_favourites(users, favourites, arms, crowds, min_group_size)
