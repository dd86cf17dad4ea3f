"""References: policies that learn nothing, and policies that see every reward.

The latter are not anonymous: they play a problem with ``min_group_size = 1``, in groups of one.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import CountArray, FloatArray, IntArray
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.policies.base import Choice, Policy

MODELS = ("beta", "gaussian")


class RandomPlay(Policy):
    """Every user plays a random arm in every round: any learner must have less regret."""

    takes_groups = True  # it learns from none
    takes_shards = True

    def _choose(self) -> Choice:
        problem = self.problem
        arms = self.rng.integers(problem.n_arms, size=problem.n_users)
        return arms, np.full(problem.n_users, -1, np.int32), 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        """Nothing is observed."""


class BestArm(Policy):
    """Every user plays one fixed arm: the regret of a product without personalisation.

    Parameters
    ----------
    arm
        The arm, or one for each shard. ``simulate`` fills in the best single arm in hindsight.
    """

    takes_shards = True

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
        return self._arms, np.full(len(self._arms), -1, np.int32), self.problem.horizon or 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        """Nothing is observed."""


class Thompson(Policy):
    """Draw each arm's mean from its posterior and play the highest, each user alone.

    Parameters
    ----------
    model
        "beta": rewards in [0, 1], uniform prior. "gaussian": unit variance, standard normal prior.
    """

    anonymous = False
    takes_shards = True
    changing = (*Policy.changing, "_sums", "_counts")

    def __init__(self, problem: Problem, *, rng: np.random.Generator, model: str = "beta") -> None:
        super().__init__(problem, rng=rng)
        if model not in MODELS:
            raise UnknownNameError("model", model, MODELS)
        self._beta = model == "beta"
        self._sums = np.zeros((problem.n_users, problem.n_arms))
        self._counts = np.zeros((problem.n_users, problem.n_arms))
        self._users = np.arange(problem.n_users)

    def _choose(self) -> Choice:
        if self._beta:
            samples = self.rng.beta(1 + self._sums, 1 + self._counts - self._sums)
        else:
            precision = 1 + self._counts
            samples = self.rng.normal(self._sums / precision, 1 / np.sqrt(precision))
        return samples.argmax(axis=1), self._users, 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        rewards, reported = feedback.totals, feedback.reported
        if self._beta and not self.problem.bounded:
            raise InvalidInputError(
                "rewards must be in [0, 1] for model='beta'; got rewards that may be anything."
            )
        self._sums[self._users, plan.arms] += rewards
        self._counts[self._users, plan.arms] += reported


class UCB(Policy):
    """Play the arm with the highest mean + sqrt(2 log t / n), each user alone (Auer et al., 2002).

    It is algorithm 5 of the paper's Appendix B. An arm never played comes first.
    """

    anonymous = False
    takes_shards = True
    changing = (*Policy.changing, "_means", "_counts", "_widths")

    def __init__(self, problem: Problem, *, rng: np.random.Generator) -> None:
        super().__init__(problem, rng=rng)
        shape = (problem.n_users, problem.n_arms)
        self._means = np.zeros(shape)
        self._counts = np.zeros(shape)
        self._widths = np.full(shape, np.inf)  # 1 / sqrt(n), kept so that no round takes roots
        self._groups = np.arange(problem.n_users, dtype=np.int32)

    def _choose(self) -> Choice:
        bonus = math.sqrt(2 * math.log(max(2, self.rounds)))
        return _highest(self._means, self._widths, bonus), self._groups, 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        _add(plan.arms, feedback.totals, feedback.reported, self._means, self._counts, self._widths)


@kernel()
def _highest(means: FloatArray, widths: FloatArray, bonus: float) -> IntArray:
    n_users, n_arms = means.shape
    arms = np.empty(n_users, np.int32)
    for user in range(n_users):
        best, highest = 0, -np.inf
        for arm in range(n_arms):
            index = means[user, arm] + bonus * widths[user, arm]
            better = index > highest
            highest = index if better else highest
            best = arm if better else best
        arms[user] = best
    return arms


@kernel()
def _add(
    arms: IntArray, totals: FloatArray, reported: CountArray, means: FloatArray, counts: FloatArray,
    widths: FloatArray,
) -> None:  # fmt: skip
    for user in range(len(arms)):
        if reported[user]:
            arm = arms[user]
            counts[user, arm] += reported[user]
            n = counts[user, arm]
            means[user, arm] += (totals[user] - reported[user] * means[user, arm]) / n
            widths[user, arm] = 1 / math.sqrt(n)
