"""Environments: the only holders of individual rewards; what leaves them is released totals."""

from shoal.environments.registry import REWARDS, check_means, make_environment
from shoal.environments.stochastic import Bernoulli, Bounded, Deterministic, Environment, Gaussian

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
