"""The pooled estimator: regroup every crowd at random in every round, solve for all users at once.

The paper spends 2C+2 rounds on one difference per user. Here every round's totals count: a total
over the group G is a row 1_G with weight 1/|G| of one weighted least-squares problem per arm. For
a crowd of n users in g = floor(n/C) random groups a round's expected information has eigenvalue 1
on the all-ones vector and (g-1)/(n-1) on every contrast, so that for n ≥ 2C a user's variance
after R rounds is that of C/R to 3C/R rewards: one sample per round, where the paper has one per
2C+2.
For C < n < 2C one group of C random users gives contrast information (n-C)/(n(n-1)).

See docs/theory.md for the statement and its proof.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import CountArray, FloatArray, IntArray
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.policies.paper.elicitor import FOR_EVER, Elicitor
from shoal.threads import one_thread

BARELY = 1e-9
"""Information added to every user, so that what was never told apart has a huge variance."""


class Pooled(Elicitor):
    """Play each assignment with fresh random groups and keep the least-squares sums.

    Attributes
    ----------
    information : array of shape (n_shards, n_arms, shard_size, shard_size)
        Sum of 1_G 1_G' / |G| over the totals seen.
    evidence : array of shape (n_shards, n_arms, shard_size)
        Sum of 1_G total / |G|.
    """

    changing = (*Elicitor.changing, "information", "evidence")

    def __init__(self, problem: Problem, *, rng: np.random.Generator) -> None:
        super().__init__(problem)
        self.rounds_per_sample = 1
        self.min_crowd = min(2 * problem.min_group_size, problem.shard_size)
        shape = (problem.n_shards, problem.n_arms, problem.shard_size)
        self.information: FloatArray = np.zeros((*shape, problem.shard_size))
        self.evidence: FloatArray = np.zeros(shape)
        self._rng = rng  # the policy's own, saved and restored with the policy

    def _begin(self, shard: int, repeats: int) -> None:
        self._left[shard] = repeats

    def choose(self) -> tuple[IntArray, IntArray, int]:
        """Return new random groups for one round, or for ever once all shards have committed."""
        problem = self._problem
        groups = np.full(problem.n_users, -1, np.int32)
        if self._committed.all():
            return self._arms, groups, FOR_EVER
        uniforms = self._rng.random(problem.n_users)
        for shard in np.flatnonzero(~self._committed).tolist():
            users = problem.shard(shard)
            regroup(
                self._arms[users], problem.n_arms, problem.min_group_size, users.start,
                uniforms[users], groups[users],
            )  # fmt: skip
        return self._arms, groups, 1

    def learn(self, plan: Plan, feedback: Feedback) -> None:
        """Add each total's row to its arm's least squares."""
        add_totals(
            plan.arms, plan.groups, feedback.totals, feedback.released, feedback.reported,
            self.information, self.evidence,
        )  # fmt: skip
        self._left -= plan.repeats
        for shard in np.flatnonzero(self._left <= 0).tolist():
            self._next(shard)

    @one_thread
    def estimates(self, shard: int) -> tuple[FloatArray, FloatArray]:
        """Solve each arm's least squares; a mean is worth 1 / its variance samples."""
        size, n_arms = self._problem.shard_size, self._problem.n_arms
        means, counts = np.zeros((size, n_arms)), np.zeros((size, n_arms))
        for arm in range(n_arms):
            information = self.information[shard, arm]
            seen = np.flatnonzero(information.diagonal() > 0)
            if len(seen):
                covariance = np.linalg.inv(
                    information[np.ix_(seen, seen)] + BARELY * np.eye(len(seen))
                )
                means[seen, arm] = covariance @ self.evidence[shard, arm, seen]
                counts[seen, arm] = 1.0 / covariance.diagonal()
        return means, counts


@kernel()
def regroup(
    arms: IntArray,
    n_arms: int,
    min_group_size: int,
    first_group: int,
    uniforms: FloatArray,
    groups: IntArray,
) -> None:
    """Split every crowd at random into as many groups as fit; fills ``groups``, -1 for none.

    A crowd of less than twice ``min_group_size`` has one group, of that size exactly: leaving the
    others out at random is what tells its users apart.
    """
    ends = np.zeros(n_arms + 1, np.int64)
    for arm in arms:
        ends[arm + 1] += 1
    ends = np.cumsum(ends)
    order = np.empty(len(arms), np.int32)
    place = ends[:-1].copy()
    for user in range(len(arms)):
        order[place[arms[user]]] = user
        place[arms[user]] += 1
    number = first_group
    for arm in range(n_arms):
        first, end = ends[arm], ends[arm + 1]
        for last in range(end - 1, first, -1):  # Fisher and Yates
            other = first + np.int64(uniforms[last] * (last - first + 1))
            order[last], order[other] = order[other], order[last]
        crowd = end - first
        n_groups = crowd // min_group_size
        members = min_group_size if n_groups == 1 else crowd
        for index in range(crowd):
            joins = index < members and n_groups > 0
            groups[order[first + index]] = number + index % n_groups if joins else -1
        number += n_groups


@kernel()
def add_totals(
    arms: IntArray,
    groups: IntArray,
    totals: FloatArray,
    released: CountArray,
    reported: CountArray,
    information: FloatArray,
    evidence: FloatArray,
) -> None:
    """Add 1_G 1_G' / |G| and 1_G total / |G| for every released total, G its reporters."""
    n_groups, shard_size = len(totals), evidence.shape[2]
    ends = np.zeros(n_groups + 1, np.int64)
    for user in range(len(groups)):
        if groups[user] >= 0 and reported[user]:
            ends[groups[user] + 1] += 1
    ends = np.cumsum(ends)
    members = np.empty(ends[-1], np.int64)
    place = ends[:-1].copy()
    for user in range(len(groups)):
        if groups[user] >= 0 and reported[user]:
            members[place[groups[user]]] = user
            place[groups[user]] += 1
    for group in range(n_groups):
        if released[group]:
            inside = members[ends[group] : ends[group + 1]]
            shard, arm = inside[0] // shard_size, arms[inside[0]]
            weight = 1.0 / len(inside)
            for one in inside:
                row = one - shard * shard_size
                evidence[shard, arm, row] += weight * totals[group]
                for other in inside:
                    information[shard, arm, row, other - shard * shard_size] += weight
