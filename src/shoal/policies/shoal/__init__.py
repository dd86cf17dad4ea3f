"""The policy ``shoal``: the learner that fits the size of the population.

In a small shard every user counts, crowds are thin, and the joint posterior of all users is
affordable: ``JointPolicy``. In a large one rounds are few against users, and what people have in
common must be learnt: ``PopulationPolicy``.
"""

import numpy as np

from shoal.model import Problem
from shoal.policies.base import Policy
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.policy import JointPolicy
from shoal.policies.shoal.population.policy import PopulationPolicy


def make_shoal(problem: Problem, *, rng: np.random.Generator, drift: float = 0.0) -> Policy:
    """Return the best anonymous learner known for the problem.

    Parameters
    ----------
    drift
        Variance by which each user's mean may move in a round; old rounds count less accordingly.
    """
    kind = JointPolicy if problem.shard_size <= JOINT.max_users else PopulationPolicy
    return kind(problem, rng=rng, drift=drift)
