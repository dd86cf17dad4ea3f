"""The policy ``shoal``: the learner that fits the size of the population.

In a small shard every user counts, crowds are thin, and the joint posterior of all users is
affordable: ``Shoal``. In a large one rounds are few against users, and what people have in common
must be learnt: ``Population``.
"""

from __future__ import annotations

import numpy as np

from shoal.model import Problem
from shoal.policies.base import Policy
from shoal.policies.shoal.joint.policy import Shoal
from shoal.policies.shoal.joint.posterior import JOINT
from shoal.policies.shoal.population.policy import Population


def flagship(problem: Problem, *, rng: np.random.Generator, drift: float = 0.0) -> Policy:
    """Return the best anonymous learner known for the problem.

    Parameters
    ----------
    problem, rng
        As for every policy.
    drift
        Variance by which each user's mean may move in a round; old rounds fade accordingly.
    """
    kind = Shoal if problem.shard_size <= JOINT else Population
    return kind(problem, rng=rng, drift=drift)
