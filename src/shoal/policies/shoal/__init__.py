"""The policy ``shoal``: the learner that fits the size of the population.

In a small shard every user counts, crowds are thin, and the joint posterior of all users is
affordable: ``JointPolicy``. In a large one rounds are few against users, and what people have in
common must be learnt: ``PopulationPolicy``. Where rounds are many, a large shard is as many small
ones: ``BlockPolicy``.
"""

import numpy as np

from shoal.errors import InvalidInputError
from shoal.model import Problem
from shoal.policies.base import Policy
from shoal.policies.shoal.blocks import BlockPolicy, block_shape
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
            f"got {drift=} and {problem.shard_size}."
        )
    learner: Policy
    if problem.shard_size <= JOINT.max_users:
        learner = JointPolicy(problem, rng=rng, drift=drift)
    elif pays_in_blocks(problem):
        learner = BlockPolicy(problem, rng=rng, drift=drift, max_size=JOINT.max_users)
    else:
        learner = PopulationPolicy(problem, rng=rng, drift=drift)
    return Guaranteed(learner) if guarantee else learner


def pays_in_blocks(problem: Problem) -> bool:
    """Tell whether a large shard should learn in blocks: thick crowds, many rounds, not too large.

    A block needs two groups on every arm to tell its users apart, and rounds enough to learn alone
    what a whole population would teach it sooner.
    """
    each_arm = problem.min_group_size * problem.n_arms
    n_blocks, size = block_shape(problem.shard_size, JOINT.max_users)
    return (
        problem.horizon is not None
        and problem.horizon >= JOINT.block_rounds * each_arm
        and size >= 2 * each_arm
        and n_blocks <= JOINT.max_blocks
    )
