"""The feedback-eliciting sub-algorithm (Section 3.1): one user's reward as a difference of totals.

For an assignment, every crowd of at least C+1 users is split into groups of C+1 to 2C+1. One
round reports the whole groups; in the k-th of the next 2C+1 rounds every group leaves out its
k-th user. The difference of the two totals is an unbiased sample of that user's mean, the sum of
2|G|-1 independent rewards (Lemma 2).

All shards run side by side, each through its own queue of assignments. An assignment with a
repeat count n keeps each of its 2C+2 groupings for n rounds: n samples per user at once, the
same in distribution as n passes.

Where only some users report, a group's total is scaled to all its members (members / reporters),
which stays unbiased as long as everyone is equally likely to report; a sample needs both totals.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray, CountArray, FloatArray, IntArray, LongArray
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.policies.paper.elicitor import Elicitor


class LeaveOneOut(Elicitor):
    """Run assignments through the sub-algorithm and add up the samples.

    Attributes
    ----------
    sums, counts : arrays of shape (n_users, n_arms)
        Sum and number of the samples of each user on each arm.
    """

    changing = (
        *Elicitor.changing, "sums", "counts", "_groups", "_places", "_sizes", "_phases", "_times",
        "_whole", "_part",
    )  # fmt: skip

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.rounds_per_sample = 2 * problem.min_group_size + 2
        self.min_crowd = problem.min_group_size + 1
        n_users, n_shards = problem.n_users, problem.n_shards
        self.sums: FloatArray = np.zeros((n_users, problem.n_arms))
        self.counts: FloatArray = np.zeros((n_users, problem.n_arms))
        self._groups: IntArray = np.full(n_users, -1, np.int32)  # whole groups
        self._places: IntArray = np.zeros(n_users, np.int32)  # 1, 2, ... in a group, 0 in none
        self._sizes: IntArray = np.zeros(n_users, np.int32)  # of each whole group
        self._phases: LongArray = np.zeros(n_shards, np.int64)  # the place left out, 0 for none
        self._times: LongArray = np.ones(n_shards, np.int64)  # rounds of each phase
        # Total, reports and releases of each whole group, and of the group in this phase.
        self._whole: FloatArray = np.zeros((n_users, 3))
        self._part: FloatArray = np.zeros((n_users, 3))

    def _begin(self, shard: int, repeats: int) -> None:
        users = self._problem.shard(shard)
        self._phases[shard] = 0
        self._times[shard] = self._left[shard] = repeats
        split_crowds(
            self._arms[users], self._problem.n_arms, self.min_crowd, users.start,
            self._groups[users], self._places[users], self._sizes[users],
        )  # fmt: skip
        self._part[users] = 0.0

    def choose(self) -> tuple[IntArray, IntArray, int]:
        """Return the groups of this phase, for as long as no shard's phase ends."""
        groups = _leave_out(
            self._groups, self._places, self._phases, self._committed, self._problem.shard_size
        )
        return self._arms, groups, int(self._left.min())

    def learn(self, plan: Plan, feedback: Feedback) -> None:
        """Add up the totals; where a phase has ended, turn them into samples."""
        last_phase = self.rounds_per_sample - 1
        done = _take_in(
            plan.groups, feedback.totals, feedback.released, feedback.reported, plan.repeats,
            self._arms, self._groups, self._places, self._sizes, self._phases, self._times,
            self._left, self._whole, self._part, self.sums, self.counts, last_phase,
        )  # fmt: skip
        if done:
            for shard in np.flatnonzero(self._phases > last_phase).tolist():
                self._phases[shard] = 0
                self._next(shard)

    def estimates(self, shard: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean and number of each user's samples."""
        users = self._problem.shard(shard)
        sums, counts = self.sums[users], self.counts[users]
        return sums / np.maximum(counts, 1.0), counts


@kernel()
def split_crowds(
    arms: IntArray, n_arms: int, least: int, first_group: int,
    groups: IntArray, places: IntArray, sizes: IntArray,
) -> None:  # fmt: skip
    """Split every crowd of at least ``least`` users into as many groups of that size as fit.

    Sizes differ by at most one, so they lie between ``least`` and 2·least-1. Fills ``groups``
    (numbered from ``first_group``, -1 for none), ``places`` (1, 2, ... in the group, 0 for none)
    and the groups' ``sizes``.
    """
    crowds = np.zeros(n_arms, np.int32)
    for arm in arms:
        crowds[arm] += 1
    n_groups = crowds // least
    start = np.empty(n_arms, np.int32)
    number = 0
    for arm in range(n_arms):
        start[arm] = number
        number += n_groups[arm]
    sizes[:] = 0
    seen = np.zeros(n_arms, np.int32)
    for user in range(len(arms)):
        arm = arms[user]
        if n_groups[arm] == 0:
            groups[user] = -1
            places[user] = 0
        else:
            group = start[arm] + seen[arm] % n_groups[arm]
            sizes[group] += 1
            groups[user] = first_group + group
            places[user] = sizes[group]
            seen[arm] += 1


@kernel()
def _leave_out(
    groups: IntArray,
    places: IntArray,
    phases: LongArray,
    committed: BoolArray,
    shard_size: int,
) -> IntArray:
    shown = np.full_like(groups, -1)
    for shard in range(len(phases)):
        if not committed[shard]:
            for user in range(shard * shard_size, (shard + 1) * shard_size):
                if places[user] != phases[shard]:
                    shown[user] = groups[user]
    return shown


@kernel()
def _take_in(
    shown: IntArray, totals: FloatArray, released: CountArray, reported: CountArray, repeats: int,
    arms: IntArray, groups: IntArray, places: IntArray, sizes: IntArray, phases: LongArray,
    times: LongArray, left: LongArray, whole: FloatArray, part: FloatArray,
    sums: FloatArray, counts: FloatArray, last_phase: int,
) -> bool:  # fmt: skip
    """Add the totals to each group's tally; turn finished phases into samples."""
    for group in range(len(totals)):
        part[group, 0] += totals[group]
        part[group, 2] += released[group]
    for user in range(len(shown)):
        if shown[user] >= 0:
            part[shown[user], 1] += reported[user]
    shard_size = len(arms) // len(phases)
    done = False
    for shard in range(len(phases)):
        left[shard] -= repeats
        if left[shard] > 0:
            continue
        first, end = shard * shard_size, (shard + 1) * shard_size
        phase = phases[shard]
        if phase == 0:
            whole[first:end] = part[first:end]
        else:
            for user in range(first, end):
                if places[user] == phase:
                    group = groups[user]
                    n = min(whole[group, 2], part[group, 2])
                    if n > 0:
                        size = sizes[group]
                        sample = (
                            size * whole[group, 0] / whole[group, 1]
                            - (size - 1) * part[group, 0] / part[group, 1]
                        )
                        sums[user, arms[user]] += n * sample
                        counts[user, arms[user]] += n
        part[first:end] = 0.0
        left[shard] = times[shard]
        phases[shard] += 1
        done = done or phases[shard] > last_phase
    return done
