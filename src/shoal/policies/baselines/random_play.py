"""Random play: the regret that any learner must stay below."""

from __future__ import annotations

from shoal.model import Feedback, Plan
from shoal.policies.base import Choice, Policy, ungrouped


class RandomPlay(Policy):
    """Every user plays a random arm in every round; nothing is observed."""

    def _choose(self) -> Choice:
        arms = self.rng.integers(self.problem.n_arms, size=self.problem.n_users)
        return arms, ungrouped(self.problem), 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        pass
