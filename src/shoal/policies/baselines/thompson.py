"""Thompson sampling for each user alone: the best that a learner does that sees everyone.

It is not anonymous: a policy on a problem with ``min_group_size = 1``, in groups of one.
"""

from __future__ import annotations

import numpy as np

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.model import Feedback, Plan, Problem
from shoal.policies.base import Choice, Policy

MODELS = ("beta", "gaussian")


class Thompson(Policy):
    """Draw each arm's mean from its posterior and play the highest, each user alone.

    Parameters
    ----------
    model
        "beta": rewards in [0, 1], uniform prior. "gaussian": unit variance, standard normal prior.
    """

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
            drawn = self.rng.beta(1 + self._sums, 1 + self._counts - self._sums)
        else:
            precision = 1 + self._counts
            drawn = self.rng.normal(self._sums / precision, 1 / np.sqrt(precision))
        return drawn.argmax(axis=1), self._users, 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        rewards, reported = feedback.totals, feedback.reported
        if self._beta and not self.problem.bounded:
            raise InvalidInputError(
                "rewards must be in [0, 1] for model='beta'; got rewards that may be anything."
            )
        self._sums[self._users, plan.arms] += rewards
        self._counts[self._users, plan.arms] += reported
