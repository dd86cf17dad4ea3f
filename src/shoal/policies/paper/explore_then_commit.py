"""Algorithm 2: explore every arm with all users, then commit; it works whenever N > C.

Exploration takes T_exp = c·C^(2/3)·K^(1/3)·T^(2/3)·(log NKT)^(1/3) rounds (line 2), with c = 10 in
the paper. All users play the same arm, arm after arm (line 6), and the feedback-eliciting
sub-algorithm gives one sample per user every 2C+2 rounds (line 7). Then each user plays its best
arm (line 12).
"""

import math

import numpy as np

from shoal.arrays import LongArray
from shoal.model import Feedback, Plan, Problem
from shoal.model.numbers import positive_number
from shoal.policies.base import Choice, Policy
from shoal.policies.paper.elicitor import Elicitor
from shoal.policies.paper.leave_one_out import LeaveOneOut
from shoal.policies.paper.successive_elimination import best_arms


class ExploreThenCommit(Policy):
    """Algorithm 2.

    Parameters
    ----------
    exploration
        The constant c in the length of the exploration. At practical sizes the paper's 10
        explores until the horizon, which exploration never exceeds.
    """

    changing = (*Policy.changing, "_samples", "_explored")
    takes_shards = True

    def __init__(
        self, problem: Problem, *, rng: np.random.Generator, exploration: float = 1.0
    ) -> None:
        super().__init__(problem, rng=rng)
        self.need_spare_user()
        self._passes = self._plan_passes(positive_number("exploration", exploration))
        self._samples = self._make_elicitor()
        self._explored = False

    def _make_elicitor(self) -> Elicitor:
        return LeaveOneOut(self.problem)

    def _plan_passes(self, exploration: float) -> LongArray:
        """Return how often each arm is explored, a sample at a time."""
        problem, horizon = self.problem, self.need_horizon()
        c, k, n = problem.min_group_size, problem.n_arms, problem.shard_size
        rounds = exploration * (c**2 * k * horizon**2 * math.log(n * k * horizon)) ** (1 / 3)
        passes = min(math.ceil(rounds / (2 * c + 2)), horizon // (2 * c + 2))
        # Pass r plays arm r mod K; passes of one arm are run together.
        return np.array([(passes + k - 1 - arm) // k for arm in range(k)], np.int64)

    def _choose(self) -> Choice:
        if self._samples.idle:
            if not self._explored and self._passes.any():
                self._explore()
            else:
                self._commit()
            self._explored = True
        return self._samples.choose()

    def _explore(self) -> None:
        arms = np.flatnonzero(self._passes)
        assignments = np.repeat(arms.astype(np.int32)[:, None], self.problem.shard_size, axis=1)
        for shard in range(self.problem.n_shards):
            self._samples.load(shard, assignments, self._passes[arms])

    def _commit(self) -> None:
        for shard in range(self.problem.n_shards):
            means, counts = self._samples.estimates(shard)
            best = best_arms(np.ones(means.shape, bool), means, counts)
            self._samples.commit(shard, np.maximum(best, 0))

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self._samples.learn(plan, feedback)
