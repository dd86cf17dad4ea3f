"""A policy as somebody outside the package writes one, which other processes can import."""

from __future__ import annotations

import numpy as np

from shoal.model import Feedback, Plan, Problem
from shoal.policies import Policy
from shoal.policies.base import Choice


class Greedy(Policy):
    """Everyone plays the arm whose totals are best so far, or with ``epsilon`` a random one."""

    changing = (*Policy.changing, "sums", "counts")

    def __init__(self, problem: Problem, *, rng: np.random.Generator, epsilon: float = 0.1) -> None:
        super().__init__(problem, rng=rng)
        self.epsilon = epsilon
        self.sums = np.ones(problem.n_arms)
        self.counts = np.ones(problem.n_arms)

    def _choose(self) -> Choice:
        explores = self.rng.random() < self.epsilon
        arm = (
            self.rng.random(self.problem.n_arms) if explores else self.sums / self.counts
        ).argmax()
        groups = np.arange(self.problem.n_users) // self.problem.shard_size
        return np.full(self.problem.n_users, arm), groups, 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self.sums[plan.arms[0]] += feedback.totals.sum()
        self.counts[plan.arms[0]] += feedback.reported.sum()
