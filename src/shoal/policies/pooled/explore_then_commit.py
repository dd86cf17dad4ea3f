"""Pooled explore-then-commit: everyone plays each arm in turn, in random groups, then commits.

Algorithm 2 with the pooled estimator. All N users of a shard play the same arm for n rounds, arm
after arm, cut into new random groups in every round; then each plays the arm of its highest
least-squares estimate. With sigma² the variance proxy of a reward (1/4 for rewards in [0, 1], 1 for
1-subgaussian ones), L = log(N·K·T) and b the least information of a round (``least_information``),

    n = c · (2·sigma²·L / b)^(1/3) · (T/K)^(2/3),    c = ``exploration``,

and c = 1 is the length of the theorem in docs/theory.md, "Pooled explore-then-commit".
"""

import math

import numpy as np

from shoal.grouping import least_information
from shoal.model import Feedback, Plan, Problem
from shoal.model.numbers import positive_number
from shoal.policies.base import Choice, Policy
from shoal.policies.paper.successive_elimination import best_arms
from shoal.policies.pooled.least_squares import Pooled


class PooledExploreThenCommit(Policy):
    """Explore all arms with everyone, solve all totals jointly, commit.

    Parameters
    ----------
    exploration
        The constant c in the length of the exploration, which never exceeds the horizon.
    """

    changing = (*Policy.changing, "_samples", "_explored")
    takes_merged = True

    def __init__(
        self, problem: Problem, *, rng: np.random.Generator, exploration: float = 1.0
    ) -> None:
        super().__init__(problem, rng=rng)
        self.need_spare_user()
        self.rounds_per_arm = exploration_rounds(
            problem, self.need_horizon(), positive_number("exploration", exploration)
        )
        self._samples = Pooled(problem, rng=rng)
        self._explored = False

    def _choose(self) -> Choice:
        if self._samples.idle:
            if self._explored or self.rounds_per_arm == 0:
                self._commit()
            else:
                self._explore()
            self._explored = True
        return self._samples.choose()

    def _explore(self) -> None:
        problem = self.problem
        arms = np.arange(problem.n_arms, dtype=np.int32)
        assignments = np.repeat(arms[:, None], problem.shard_size, axis=1)
        repeats = np.full(problem.n_arms, self.rounds_per_arm, np.int64)
        for shard in range(problem.n_shards):
            self._samples.load(shard, assignments, repeats)

    def _commit(self) -> None:
        for shard in range(self.problem.n_shards):
            means, counts = self._samples.estimates(shard)
            best = best_arms(np.ones(means.shape, bool), means, counts)
            self._samples.commit(shard, np.maximum(best, 0))

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self._samples.learn(plan, feedback)


def exploration_rounds(problem: Problem, horizon: int, exploration: float) -> int:
    """Return n, the rounds of exploration on each arm: at most horizon / n_arms.

    >>> exploration_rounds(Problem(50, 5, 4), 100_000, 1.0)
    2476
    """
    k, n = problem.n_arms, problem.shard_size
    variance_proxy = 0.25 if problem.bounded else 1.0
    information = least_information(n, problem.min_group_size)
    noise = 2 * variance_proxy * math.log(n * k * horizon) / information
    rounds = float(exploration * noise ** (1 / 3) * (horizon / k) ** (2 / 3))
    return min(math.ceil(rounds), horizon // k)
