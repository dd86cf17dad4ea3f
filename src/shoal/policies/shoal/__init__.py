"""The policy ``shoal``: the learner that fits the size of the population.

In a small shard every user counts, crowds are thin, and the joint posterior of all users is
affordable: ``JointPolicy``. In a large one rounds are few against users, and what people have in
common must be learnt: ``PopulationPolicy``.
"""

import numpy as np

from shoal.errors import InvalidInputError
from shoal.model import Problem
from shoal.policies.base import Policy
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.guarantee import Guaranteed
from shoal.policies.shoal.joint.policy import JointPolicy
from shoal.policies.shoal.population.policy import PopulationPolicy


def make_shoal(
    problem: Problem, *, rng: np.random.Generator, drift: float = 0.0, guarantee: bool = False
) -> Policy:
    """Return the best anonymous learner known for the problem.

    Parameters
    ----------
    drift
        Variance by which each user's mean may move in a round; old rounds count less accordingly.
    guarantee
        Force some rounds, so that regret has a bound on every instance (``guarantee``). Needs a
        horizon, means that stay, and shards of at most ``JOINT.max_users`` users.
    """
    if guarantee and (drift > 0 or problem.shard_size > JOINT.max_users):
        raise InvalidInputError(
            f"guarantee must be False with drift or shards of more than {JOINT.max_users} users; "
            f"got {drift=} and {problem.shard_size} users."
        )
    if guarantee and problem.horizon is None:
        raise InvalidInputError("policy 'shoal' with guarantee=true needs a horizon; got None.")
    kind = JointPolicy if problem.shard_size <= JOINT.max_users else PopulationPolicy
    learner = kind(problem, rng=rng, drift=drift)
    return Guaranteed(learner) if guarantee else learner
