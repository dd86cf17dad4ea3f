"""Environments by the name of their rewards: the only holders of individual rewards.

What leaves an environment is released totals.
"""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import FloatArray
from shoal.environments.stochastic import Bernoulli, Bounded, Deterministic, Environment, Gaussian
from shoal.errors import UnknownNameError
from shoal.model import Problem

__all__ = [
    "REWARDS",
    "Bernoulli",
    "Bounded",
    "Deterministic",
    "Environment",
    "Gaussian",
    "check_means",
    "make_environment",
]

REWARDS: Final[dict[str, type[Environment]]] = {
    environment.rewards: environment
    for environment in (Bernoulli, Gaussian, Bounded, Deterministic)
}


def make_environment(
    rewards: str,
    problem: Problem,
    means: ArrayLike,
    *,
    rng: np.random.Generator,
    participation: ArrayLike = 1.0,
) -> Environment:
    """Return the environment whose rewards have this name.

    >>> problem = Problem(n_users=2, n_arms=1, min_group_size=1)
    >>> make_environment("bernouli", problem, [[0.5], [0.5]], rng=np.random.default_rng(0))
    Traceback (most recent call last):
    shoal.errors.UnknownNameError: rewards must be a known name; got 'bernouli': \
did you mean 'bernoulli'?
    """
    return REWARDS[check_rewards(rewards)](problem, means, rng=rng, participation=participation)


def check_means(means: ArrayLike, *, rewards: str) -> FloatArray:
    """Return ``means`` as a matrix that these rewards can have, or say where they can't.

    >>> check_means([[0.2, 1.2]], rewards="bernoulli")
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: the mean of user 0 on arm 1 must be between 0 and 1 for \
bernoulli rewards; got 1.2.
    """
    return REWARDS[check_rewards(rewards)].check_means(means)


def check_rewards(rewards: str) -> str:
    """Return the name of rewards that there are."""
    if rewards not in REWARDS:
        raise UnknownNameError("rewards", rewards, REWARDS)
    return rewards
