"""The feedback-eliciting sub-algorithm (Section 3.1): one user's reward as a difference of totals.

For an assignment, every crowd of at least C+1 users is split into groups of C+1 to 2C+1. One
round reports the whole groups; in the k-th of the next 2C+1 rounds every group leaves out its
k-th user. The difference of the two totals is an unbiased sample of that user's mean, the sum of
2|G|-1 independent rewards (Lemma 2).

All shards run side by side, each through its queue of assignments. An assignment with a repeat
count n keeps each of its 2C+2 groupings for n rounds: n samples per user at once, the same in
distribution as n passes.

Where only some users report, a group's total is scaled to all its members (members / reporters),
which stays unbiased as long as all are equally likely to report; a sample needs both totals.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray, CountArray, FloatArray, IntArray, LongArray
from shoal.grouping.leave_one_out import Rota, empty_rota, leave_out, split_crowds
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem, State
from shoal.policies.paper.elicitor import Elicitor


class LeaveOneOut(Elicitor):
    """Run assignments through the sub-algorithm and add up the samples.

    Attributes
    ----------
    sums, counts : arrays of shape (n_users, n_arms)
        Sum and number of the samples of each user on each arm.
    """

    changing = (
        *Elicitor.changing, "sums", "counts", "_rota", "_phases", "_times", "_whole", "_part",
    )  # fmt: skip

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.rounds_per_sample = 2 * problem.min_group_size + 2
        self.min_crowd = problem.min_group_size + 1
        n_users, n_shards = problem.n_users, problem.n_shards
        self.sums: FloatArray = np.zeros((n_users, problem.n_arms))
        self.counts: FloatArray = np.zeros((n_users, problem.n_arms))
        self._rota = empty_rota(n_users)
        self._phases: LongArray = np.zeros(n_shards, np.int64)  # the place left out, 0 for none
        self._times: LongArray = np.ones(n_shards, np.int64)  # rounds of each phase
        # Total, reports and releases of each whole group, and of the group in this phase.
        self._whole: FloatArray = np.zeros((n_users, 3))
        self._part: FloatArray = np.zeros((n_users, 3))

    def _begin(self, shard: int, repeats: int) -> None:
        users = self._problem.shard(shard)
        self._phases[shard] = 0
        self._times[shard] = self._left[shard] = repeats
        rota = Rota(*(column[users] for column in self._rota))
        split_crowds(self._arms[users], self._problem.n_arms, self.min_crowd, users.start, rota)
        self._part[users] = 0.0

    def choose(self) -> tuple[IntArray, IntArray, int]:
        """Return the groups of this phase, for as long as no shard's phase ends."""
        groups = leave_out(self._rota, self._phases, self._committed)
        return self._arms, groups, int(self._left.min())

    def learn(self, plan: Plan, feedback: Feedback) -> None:
        """Add up the totals; where a phase has ended, turn them into samples."""
        _add_totals(plan.groups, feedback.totals, feedback.released, feedback.reported, self._part)
        self._left -= plan.repeats
        ended = self._left <= 0
        if not ended.any():
            return
        _add_samples(
            self._rota, self._arms, self._phases, ended, self._whole, self._part,
            self.sums, self.counts,
        )  # fmt: skip
        self._left[ended] = self._times[ended]
        self._phases[ended] += 1
        for shard in np.flatnonzero(self._phases == self.rounds_per_sample).tolist():
            self._phases[shard] = 0
            self._next(shard)

    def estimates(self, shard: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean and number of each user's samples."""
        users = self._problem.shard(shard)
        sums, counts = self.sums[users], self.counts[users]
        return sums / np.maximum(counts, 1.0), counts

    def restore(self, state: State) -> None:
        """Continue exactly where ``state`` was taken; version 0.1 kept the rota in three parts."""
        if "_rota" not in state:
            state = state | {"_rota": {name: state[f"_{name}"] for name in Rota._fields}}
        super().restore(state)


@kernel()
def _add_totals(
    groups: IntArray,
    totals: FloatArray,
    released: CountArray,
    reported: CountArray,
    part: FloatArray,
) -> None:
    """Add a plan's totals, reports and releases to those of the groups in this phase."""
    for group in range(len(totals)):
        part[group, 0] += totals[group]
        part[group, 2] += released[group]
    for user in range(len(groups)):
        if groups[user] >= 0:
            part[groups[user], 1] += reported[user]


@kernel()
def _add_samples(
    rota: Rota,
    arms: IntArray,
    phases: LongArray,
    ended: BoolArray,
    whole: FloatArray,
    part: FloatArray,
    sums: FloatArray,
    counts: FloatArray,
) -> None:
    """Turn the totals of each phase that has ``ended``, (n_shards,), into samples."""
    shard_size = len(arms) // len(phases)
    for shard in np.flatnonzero(ended):
        first, end = shard * shard_size, (shard + 1) * shard_size
        if phases[shard] == 0:
            whole[first:end] = part[first:end]
        else:
            for user in range(first, end):
                group = rota.groups[user]
                if rota.places[user] == phases[shard]:
                    n = min(whole[group, 2], part[group, 2])
                    if n > 0:
                        size = rota.sizes[group]
                        sample = (
                            size * whole[group, 0] / whole[group, 1]
                            - (size - 1) * part[group, 0] / part[group, 1]
                        )
                        sums[user, arms[user]] += n * sample
                        counts[user, arms[user]] += n
        part[first:end] = 0.0
