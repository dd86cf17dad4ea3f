"""The reward distributions: Bernoulli, Gaussian (the 1-subgaussian case), bounded, deterministic.

Each draws the sum of any number of rounds at once, exactly in distribution.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import FloatArray, IntArray, LongArray
from shoal.environments.base import Environment
from shoal.kernels import kernel
from shoal.model import Plan


class Bernoulli(Environment):
    """Rewards of 0 or 1: a user's n rounds sum to a binomial.

    >>> from shoal.model import Problem
    >>> problem = Problem(n_users=4, n_arms=2, min_group_size=2)
    >>> means = [[1.0, 0.0], [1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    >>> environment = Bernoulli(problem, means, rng=np.random.default_rng(0))
    >>> plan = Plan([0, 0, 1, 1], [0, 0, -1, -1], 10, problem=problem)
    >>> feedback = environment.play(plan)
    >>> feedback.totals, feedback.released, feedback.reported
    (array([20.]), array([10], dtype=int32), array([10, 10,  0,  0], dtype=int32))
    """

    rewards: ClassVar[str] = "bernoulli"

    @cached_property
    def _uniforms(self) -> FloatArray:
        return np.empty(self.problem.n_users)

    @cached_property
    def _users(self) -> LongArray:
        return np.arange(self.problem.n_users)

    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        totals = np.zeros(plan.n_groups)
        if plan.repeats == 1:
            # Policies that learn every round come here: the feedback is all that it allocates.
            self.rng.random(out=self._uniforms)
            _add_successes(self._uniforms, self.means, plan.arms, plan.groups, reported, totals)
        else:
            successes = self.rng.binomial(reported, self.means[self._users, plan.arms])
            _add_by_group(successes, plan.groups, totals)
        return totals


class Gaussian(Environment):
    """Normal rewards of unit variance and any finite means: one draw per group."""

    rewards: ClassVar[str] = "gaussian"
    bounded: ClassVar[bool] = False

    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        totals, variances = np.zeros(plan.n_groups), np.zeros(plan.n_groups)
        _add_means(self.means, plan.arms, plan.groups, reported, totals)
        _add_by_group(reported, plan.groups, variances)
        totals += np.sqrt(variances) * self.rng.standard_normal(plan.n_groups)
        return totals


class Bounded(Environment):
    """Rewards in [0, 1] from the Beta distribution with each user's mean on the arm.

    The Beta's two parameters sum to 2: the variance is mean (1 - mean) / 3, and a mean of one half
    makes the uniform distribution.
    """

    rewards: ClassVar[str] = "bounded"

    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        totals = np.zeros(plan.n_groups)
        _add_betas(self.rng, self.means, plan.arms, plan.groups, reported, totals)
        return totals


class Deterministic(Environment):
    """Every reward is its mean, as in the proof of Theorem 5."""

    rewards: ClassVar[str] = "deterministic"

    def _totals(self, plan: Plan, reported: IntArray) -> FloatArray:
        totals = np.zeros(plan.n_groups)
        _add_means(self.means, plan.arms, plan.groups, reported, totals)
        return totals


@kernel()
def _add_successes(
    uniforms: FloatArray, means: FloatArray, arms: IntArray, groups: IntArray, reported: IntArray,
    totals: FloatArray,
) -> None:  # fmt: skip
    for user in range(len(arms)):
        if reported[user]:
            totals[groups[user]] += uniforms[user] < means[user, arms[user]]


@kernel()
def _add_means(
    means: FloatArray, arms: IntArray, groups: IntArray, reported: IntArray, totals: FloatArray
) -> None:
    for user in range(len(arms)):
        if reported[user]:
            totals[groups[user]] += reported[user] * means[user, arms[user]]


@kernel()
def _add_betas(
    rng: np.random.Generator, means: FloatArray, arms: IntArray, groups: IntArray,
    reported: IntArray, totals: FloatArray,
) -> None:  # fmt: skip
    for user in range(len(arms)):
        if reported[user]:
            mean = means[user, arms[user]]
            a, b = 2.0 * mean, 2.0 * (1.0 - mean)
            if a == 0.0 or b == 0.0:
                totals[groups[user]] += reported[user] * mean
            else:
                for _ in range(reported[user]):
                    totals[groups[user]] += rng.beta(a, b)


@kernel()
def _add_by_group(amounts: NDArray[np.integer], groups: IntArray, totals: FloatArray) -> None:
    for user in range(len(groups)):
        if groups[user] >= 0:
            totals[groups[user]] += amounts[user]
