"""Pseudo-regret (Section 2.1): what each round costs against every user's best arm.

A plan that is repeated costs the same in each of its rounds, so that its curve is a straight
line and the value at every checkpoint is exact.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import FloatArray, IntArray, LongArray
from shoal.kernels import kernel
from shoal.model import Plan, Problem, Stateful


class RegretMeter(Stateful):
    """Adds up pseudo-regret per shard and records it at checkpoints.

    Parameters
    ----------
    means
        Expected rewards, (n_users, n_arms).
    problem
        The problem with its horizon and shards.
    checkpoints
        Increasing rounds at which the regret is recorded; the last is the horizon.
    """

    changing = ("_so_far", "_per_round", "_rounds", "_ahead", "curves")

    def __init__(self, means: FloatArray, problem: Problem, checkpoints: LongArray) -> None:
        self._gaps = np.ascontiguousarray(means.max(axis=1, keepdims=True) - means)
        self._so_far = np.zeros(problem.n_shards)
        self._per_round = np.zeros(problem.n_shards)
        self._rounds = 0
        self._ahead = checkpoints.tolist()[::-1]  # the next checkpoint is the last
        self.curves: FloatArray = np.zeros((problem.n_shards, len(checkpoints)))

    def add(self, plan: Plan) -> None:
        """Count the rounds of ``plan``."""
        _add_regret(self._gaps, plan.arms, plan.repeats, self._per_round, self._so_far)
        self._rounds += plan.repeats
        while self._ahead and self._ahead[-1] <= self._rounds:
            column = self.curves.shape[1] - len(self._ahead)
            rounds_ago = self._rounds - self._ahead.pop()
            self.curves[:, column] = self._so_far - rounds_ago * self._per_round


@kernel()
def _add_regret(
    gaps: FloatArray, arms: IntArray, repeats: int, per_round: FloatArray, so_far: FloatArray
) -> None:
    """Set each shard's regret of a round, and add ``repeats`` times it to that so far."""
    shard_size = len(arms) // len(so_far)
    for shard in range(len(so_far)):
        cost = 0.0
        for user in range(shard * shard_size, (shard + 1) * shard_size):
            cost += gaps[user, arms[user]]
        per_round[shard] = cost
        so_far[shard] += repeats * cost


def spread_checkpoints(horizon: int, n_checkpoints: int) -> LongArray:
    """Return at most ``n_checkpoints`` evenly spread rounds, the last one the horizon.

    >>> spread_checkpoints(10, 4).tolist()
    [3, 5, 8, 10]
    """
    even = np.linspace(0, horizon, min(horizon, n_checkpoints) + 1)[1:]
    return np.unique(np.ceil(even - 1e-9).astype(np.int64))
