"""The pooled estimator: regroup every crowd at random in every round, solve for all users at once.

A total over the group G is a row 1_G with weight 1/|G| of one weighted least-squares problem per
arm. For a crowd of 2C users or more, a round is worth about one sample, where the paper has one per
2C+2 rounds: docs/theory.md, "Pooled samples".
"""

import numpy as np

from shoal.arrays import FloatArray, IntArray
from shoal.grouping import RoundTotals, order_by, regroup, round_totals
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.policies.paper.elicitor import FOR_EVER, Elicitor
from shoal.threads import one_thread

RIDGE = 1e-9
"""Information added to every user, so that users never separated have a huge variance."""


class Pooled(Elicitor):
    """Play each assignment with fresh random groups and keep the least-squares sums.

    Over the released totals, ``information`` is the sum of ``1_G 1_G' / |G|``, (n_shards, n_arms,
    shard_size, shard_size), and ``evidence`` that of ``1_G total / |G|``.
    """

    changing = (*Elicitor.changing, "information", "evidence")

    def __init__(self, problem: Problem, *, rng: np.random.Generator) -> None:
        super().__init__(problem)
        self.rounds_per_sample = 1
        self.min_crowd = min(2 * problem.min_group_size, problem.shard_size)
        shape = (problem.n_shards, problem.n_arms, problem.shard_size)
        self.information: FloatArray = np.zeros((*shape, problem.shard_size))
        self.evidence: FloatArray = np.zeros(shape)
        self._rng = rng  # the policy's, saved and restored with the policy

    def _begin(self, shard: int, repeats: int) -> None:
        self._left[shard] = repeats

    def choose(self) -> tuple[IntArray, IntArray, int]:
        """Return new random groups for one round, or none once all shards have committed."""
        problem = self._problem
        groups = np.full(problem.n_users, -1, np.int32)
        learning = (~self._committed).nonzero()[0].tolist()  # flatnonzero is slower, every round
        if not learning:
            return self._arms, groups, FOR_EVER
        uniforms = self._rng.random(problem.n_users)
        for shard in learning:
            users = problem.shard(shard)
            regroup(
                self._arms[users], problem.n_arms, problem.min_group_size, users.start,
                uniforms[users], groups[users],
            )  # fmt: skip
        return self._arms, groups, 1

    def learn(self, plan: Plan, feedback: Feedback) -> None:
        """Add each total's row to its arm's least squares."""
        add_totals(round_totals(plan, feedback), self.information, self.evidence)
        self._left -= plan.repeats
        for shard in (self._left <= 0).nonzero()[0].tolist():
            self._next(shard)

    def forget(self, shard: int) -> None:
        """Drop all totals of a shard, so that later estimates do not depend on them."""
        self.information[shard] = 0.0
        self.evidence[shard] = 0.0

    @one_thread
    def estimates(self, shard: int) -> tuple[FloatArray, FloatArray]:
        """Solve each arm's least squares; a mean is worth 1 / its variance samples."""
        size, n_arms = self._problem.shard_size, self._problem.n_arms
        means, counts = np.zeros((size, n_arms)), np.zeros((size, n_arms))
        for arm in range(n_arms):
            information = self.information[shard, arm]
            users = np.flatnonzero(information.diagonal() > 0)
            if len(users):
                ridge = RIDGE * np.eye(len(users))
                covariance = np.linalg.inv(information[np.ix_(users, users)] + ridge)
                means[users, arm] = covariance @ self.evidence[shard, arm, users]
                counts[users, arm] = 1.0 / covariance.diagonal()
        return means, counts


@kernel()
def add_totals(played: RoundTotals, information: FloatArray, evidence: FloatArray) -> None:
    """Add 1_G 1_G' / |G| and 1_G total / |G| for every released total, G its reporters."""
    n_groups, shard_size = len(played.totals), evidence.shape[2]
    reporters = np.where(played.reported > 0, played.groups, np.int32(-1))
    order, starts = order_by(reporters, n_groups)
    for group in range(n_groups):
        if played.released[group]:
            members = order[starts[group] : starts[group + 1]]
            shard, arm = members[0] // shard_size, played.arms[members[0]]
            weight = 1.0 / len(members)
            for one in members:
                row = one - shard * shard_size
                evidence[shard, arm, row] += weight * played.totals[group]
                for other in members:
                    information[shard, arm, row, other - shard * shard_size] += weight
