"""UCB1 for each user alone: what a learner does that sees everyone (Appendix B, algorithm 5).

It is not anonymous: a policy on a problem with ``min_group_size = 1``, in groups of one.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.arrays import CountArray, FloatArray, IntArray
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.policies.base import Choice, Policy


class UCB(Policy):
    """Play the arm with the highest mean + sqrt(2 log t / n), each user alone (Auer et al., 2002).

    An arm never played comes first.
    """

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
    arms: IntArray,
    totals: FloatArray,
    reported: CountArray,
    means: FloatArray,
    counts: FloatArray,
    widths: FloatArray,
) -> None:
    for user in range(len(arms)):
        if reported[user]:
            arm = arms[user]
            counts[user, arm] += reported[user]
            n = counts[user, arm]
            means[user, arm] += (totals[user] - reported[user] * means[user, arm]) / n
            widths[user, arm] = 1 / math.sqrt(n)
