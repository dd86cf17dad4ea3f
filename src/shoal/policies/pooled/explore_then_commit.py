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

from shoal.arrays import LongArray
from shoal.grouping import least_information
from shoal.model import Problem
from shoal.policies.paper.elicitor import Elicitor
from shoal.policies.paper.explore_then_commit import ExploreThenCommit
from shoal.policies.pooled.least_squares import Pooled


class PooledExploreThenCommit(ExploreThenCommit):
    """Explore all arms with everyone, solve all totals jointly, commit.

    Parameters
    ----------
    exploration
        The constant c in the length of the exploration, which never exceeds the horizon.
    """

    takes_merged = True

    def _make_elicitor(self) -> Elicitor:
        return Pooled(self.problem, rng=self.rng)

    def _plan_passes(self, exploration: float) -> LongArray:
        rounds = exploration_rounds(self.problem, self.need_horizon(), exploration)
        return np.full(self.problem.n_arms, rounds, np.int64)


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
