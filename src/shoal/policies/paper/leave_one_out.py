"""The feedback-eliciting sub-algorithm (Section 3.1): one user's reward as a difference of totals.

For an assignment, every crowd of at least C+1 users is split into groups of C+1 to 2C+1. One
round reports the whole groups; in the k-th of the next 2C+1 rounds every group leaves out its
k-th user. The difference of the two totals is an unbiased sample of that user's mean, the sum of
2|G|-1 independent rewards (Lemma 2).

An assignment with a repeat count n keeps each of its 2C+2 groupings for n rounds: n samples per
user at once, the same in distribution as n passes.

Where only some users report, a group's total is scaled to all its members (members / reporters),
which stays unbiased as long as all are equally likely to report; a sample needs both totals.
"""

from typing import ClassVar, NamedTuple

import numpy as np

from shoal.arrays import BoolArray, CountArray, FloatArray, IntArray, LongArray
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.policies.paper.elicitor import Elicitor


class Rota(NamedTuple):
    """The whole groups of some users, and the turn in which each user is left out."""

    groups: IntArray  # (n_users,) -1 for none
    places: IntArray  # (n_users,) 1, 2, ... in the group, 0 for none
    sizes: IntArray  # (n_users,) members of each group, by its number


class Tally(NamedTuple):
    """Who is left out when, and what the totals add up to; groups are those of the rota."""

    rota: Rota
    phases: LongArray  # (n_shards,) the place that is left out, 0 for none
    rounds: LongArray  # (n_shards,) of each phase
    whole: FloatArray  # (n_users, 3) total, reports and releases of each whole group
    part: FloatArray  # (n_users, 3) the same of each group in the current phase
    sums: FloatArray  # (n_users, n_arms) of the samples
    counts: FloatArray  # (n_users, n_arms) of the samples


class LeaveOneOut(Elicitor):
    """Run assignments through the sub-algorithm and add up the samples in ``tally``."""

    changing = (*Elicitor.changing, "tally")
    earlier_names: ClassVar = {"rounds": "_times"}

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.rounds_per_sample = 2 * problem.min_group_size + 2
        self.min_crowd = problem.min_group_size + 1
        n_users, n_shards, n_arms = problem.n_users, problem.n_shards, problem.n_arms
        self.tally = Tally(
            rota=Rota(np.full(n_users, -1, np.int32), *np.zeros((2, n_users), np.int32)),
            phases=np.zeros(n_shards, np.int64),
            rounds=np.ones(n_shards, np.int64),
            whole=np.zeros((n_users, 3)),
            part=np.zeros((n_users, 3)),
            sums=np.zeros((n_users, n_arms)),
            counts=np.zeros((n_users, n_arms)),
        )

    def _begin(self, shard: int, repeats: int) -> None:
        users, tally = self._problem.shard(shard), self.tally
        tally.phases[shard] = 0
        tally.rounds[shard] = self._left[shard] = repeats
        rota = Rota(*(column[users] for column in tally.rota))
        split_crowds(self._arms[users], self._problem.n_arms, self.min_crowd, users.start, rota)
        tally.part[users] = 0.0

    def choose(self) -> tuple[IntArray, IntArray, int]:
        """Return the groups of this phase, for as long as no shard's phase ends."""
        groups = leave_out(self.tally.rota, self.tally.phases, self._committed)
        return self._arms, groups, int(self._left.min())

    def learn(self, plan: Plan, feedback: Feedback) -> None:
        """Add up the totals; where a phase has ended, turn them into samples."""
        n_phases = self.rounds_per_sample
        last_phase = _add_totals(
            plan.groups, feedback.totals, feedback.released, feedback.reported, plan.repeats,
            self._arms, self._left, self.tally,
        )  # fmt: skip
        if last_phase == n_phases:
            for shard in np.flatnonzero(self.tally.phases == n_phases).tolist():
                self.tally.phases[shard] = 0
                self._next(shard)

    def estimates(self, shard: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean and number of each user's samples."""
        users = self._problem.shard(shard)
        sums, counts = self.tally.sums[users], self.tally.counts[users]
        return sums / np.maximum(counts, 1.0), counts


@kernel()
def split_crowds(arms: IntArray, n_arms: int, min_crowd: int, first_group: int, rota: Rota) -> None:
    """Split every crowd of at least ``min_crowd`` users into as many groups of that size as fit.

    Sizes differ by at most one, so they lie between ``min_crowd`` and 2·min_crowd-1. Fills
    ``rota``, its groups numbered from ``first_group`` and its sizes from 0.
    """
    crowds = np.zeros(n_arms, np.int32)
    for arm in arms:
        crowds[arm] += 1
    n_groups = crowds // min_crowd
    start = np.empty(n_arms, np.int32)
    number = 0
    for arm in range(n_arms):
        start[arm] = number
        number += n_groups[arm]
    rota.sizes[:] = 0
    n_placed = np.zeros(n_arms, np.int32)
    for user in range(len(arms)):
        arm = arms[user]
        if n_groups[arm] == 0:
            rota.groups[user] = -1
            rota.places[user] = 0
        else:
            group = start[arm] + n_placed[arm] % n_groups[arm]
            rota.sizes[group] += 1
            rota.groups[user] = first_group + group
            rota.places[user] = rota.sizes[group]
            n_placed[arm] += 1


@kernel()
def leave_out(rota: Rota, turns: LongArray, committed: BoolArray) -> IntArray:
    """Return the groups without the users whose turn it is in each shard; turn 0 is nobody's.

    Users of shards that have ``committed``, (n_shards,), are in no group.
    """
    groups = np.full_like(rota.groups, -1)
    shard_size = len(groups) // len(turns)
    for shard in range(len(turns)):
        if not committed[shard]:
            for user in range(shard * shard_size, (shard + 1) * shard_size):
                if rota.places[user] != turns[shard]:
                    groups[user] = rota.groups[user]
    return groups


@kernel()
def _add_totals(
    groups: IntArray, totals: FloatArray, released: CountArray, reported: CountArray, repeats: int,
    arms: IntArray, left: LongArray, tally: Tally,
) -> int:  # fmt: skip
    """Add a plan's totals, and the samples of the phases that end; return the highest phase."""
    for group in range(len(totals)):
        tally.part[group, 0] += totals[group]
        tally.part[group, 2] += released[group]
    for user in range(len(groups)):
        if groups[user] >= 0:
            tally.part[groups[user], 1] += reported[user]
    last_phase = 0
    shard_size = len(arms) // len(left)
    for shard in range(len(left)):
        left[shard] -= repeats
        if left[shard] <= 0:
            users = slice(shard * shard_size, (shard + 1) * shard_size)
            if tally.phases[shard] == 0:
                tally.whole[users] = tally.part[users]
            else:
                _add_samples(users, tally.phases[shard], arms, tally)
            tally.part[users] = 0.0
            left[shard] = tally.rounds[shard]
            tally.phases[shard] += 1
            last_phase = max(last_phase, tally.phases[shard])
    return last_phase


@kernel()
def _add_samples(users: slice, phase: int, arms: IntArray, tally: Tally) -> None:
    """Add a sample of each of these users who was left out in this phase."""
    rota, whole, part = tally.rota, tally.whole, tally.part
    for user in range(users.start, users.stop):
        group = rota.groups[user]
        if rota.places[user] == phase:
            n = min(whole[group, 2], part[group, 2])
            if n > 0:
                size = rota.sizes[group]
                sample = (
                    size * whole[group, 0] / whole[group, 1]
                    - (size - 1) * part[group, 0] / part[group, 1]
                )
                tally.sums[user, arms[user]] += n * sample
                tally.counts[user, arms[user]] += n
