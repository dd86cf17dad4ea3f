"""A guarantee around a learner: forced rounds show which arms are too bad, and it avoids them.

docs/theory.md, "A guarantee for any learner", has the theorem and its proof. With T the horizon,
an epoch starts at T/2, T/4, and so on, and each is as long as the time before it. It begins with
forced rounds, from whose totals alone every user's arms are judged; in its other rounds the
learner decides, among the arms that are left. While every arm can be home to 2C users of whom it
may be the best, the forced rounds are home and away, as in pooled elimination; else everyone plays
the same arm, arm after arm, as in pooled explore-then-commit. Epochs too short to exclude anything
have no forced rounds: there the bound exceeds the horizon.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import BoolArray, IntArray, WholeArray
from shoal.decompositions.demand import is_batched
from shoal.decompositions.home_away import home_away_decomposition
from shoal.grouping import least_information, regroup, round_totals
from shoal.model import Feedback, Plan
from shoal.model.numbers import positive_number
from shoal.policies.base import ArmMeans, Choice, Policy
from shoal.policies.beliefs import Beliefs
from shoal.policies.paper.elicitor import FOR_EVER
from shoal.policies.paper.successive_elimination import eliminate
from shoal.policies.pooled.least_squares import Pooled, add_totals

SHARE = 0.01
"""The theorem's c: about that share of an epoch's rounds is forced, or up to twice as much."""


class Guaranteed(Policy):
    """Any learner that can restrict arms and learns from any plan, with a bound on its regret.

    Parameters
    ----------
    learner
        Decides in all rounds that are not forced, and learns from all.
    share
        c: less forces fewer rounds, in longer epochs only, and makes the bound larger.
    gamma
        How far an arm must be behind to go, as in ``PooledElimination``; by default log(N·K·T), or
        four times that for rewards that are not in [0, 1], as the theorem asks.
    """

    changing = (*Policy.changing, "learner", "_forced", "_fence", "_eligible", "_next")
    takes_merged = True
    takes_shards = True

    def __init__(
        self, learner: Policy, *, share: float = SHARE, gamma: float | None = None
    ) -> None:
        problem = learner.problem
        super().__init__(problem, rng=learner.rng)
        self.need_spare_user()
        if gamma is None:
            pairs = problem.shard_size * problem.n_arms
            gamma = (1 if problem.bounded else 4) * math.log(pairs * self.need_horizon())
        self.learner = learner
        self._share = positive_number("share", share)
        self._gamma = positive_number("gamma", gamma)
        self._forced = ForcedRounds(problem, rng=learner.rng)
        self._fence: BoolArray = np.ones((problem.n_users, problem.n_arms), np.bool_)
        self._eligible = self._fence.copy()
        self._next = [self._next_epoch(shard) for shard in range(problem.n_shards)]

    def _allow(self, eligible: BoolArray) -> None:
        self._eligible = eligible.copy()
        self.learner.allow(self._allowed())
        for shard in self._forced.idle:
            self._next[shard] = self._next_epoch(shard)

    def _choose(self) -> Choice:
        for shard in tuple(self._forced.idle):
            if self.rounds >= self._next[shard]:
                self._force(shard)
        arms, groups, repeats = self.learner._choose()
        if len(self._forced.idle) < self.problem.n_shards:
            self._forced.fill(arms, groups, self._eligible)
            return arms, groups, 1
        return arms, groups, min(repeats, min(self._next) - self.rounds)

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        self.learner._learn(plan, feedback)
        self.learner.rounds += plan.repeats
        for shard in self._forced.take(plan, feedback):
            self._judge(shard, self.rounds + plan.repeats)

    def arm_means(self, present: ArrayLike) -> ArmMeans | None:
        """Return what the learner believes of each arm's mean over who is ``present``."""
        return self.learner.arm_means(self.check_present(present))

    def beliefs(self, *, users: ArrayLike | None = None) -> Beliefs | None:
        """Return what the learner believes of every user, or of these."""
        return self.learner.beliefs(users=self.check_users(users))

    def _allowed(self) -> BoolArray:
        """Return the eligible arms inside the fence, or all of them where none is."""
        inside = self._fence & self._eligible
        return np.where(inside.any(axis=1, keepdims=True), inside, self._eligible)

    def _force(self, shard: int) -> None:
        """Start the forced rounds of the epoch that begins now."""
        active = self._allowed()[self.problem.shard(shard)]
        length = self._next[shard]
        if self._is_clustered(active):
            present = active.any(axis=1)
            part = home_away_decomposition(
                active[present],
                self._demand(length),
                min_crowd=2 * self.problem.min_group_size,
                rng=self.rng,
            )
            assignments = np.full((len(part.repeats), len(active)), -1, np.int32)
            assignments[:, present] = part.assignments
            repeats = part.repeats
        else:
            arms = np.flatnonzero(active[active.sum(axis=1) > 1].any(axis=0)).astype(np.int32)
            assignments = np.repeat(arms[:, None], len(active), axis=1)
            repeats = np.full(len(arms), self._rounds_per_arm(active, length), np.int64)
        self._forced.forget(shard)
        self._forced.load(shard, assignments, repeats)

    def _judge(self, shard: int, rounds: int) -> None:
        """End the forced rounds: fence out what they show to be worse, and plan the next epoch."""
        users = self.problem.shard(shard)
        means, counts = self._forced.estimates(shard)
        self._fence[users] = eliminate(
            self._allowed()[users], means, counts, gamma=self._gamma, pairwise=True
        )
        self.learner.allow(self._allowed())
        self._next[shard] = self._next_epoch(shard, rounds)

    def _next_epoch(self, shard: int, rounds: int | None = None) -> int:
        """Return when the next epoch begins that has forced rounds; its length is the same."""
        active = self._allowed()[self.problem.shard(shard)]
        if not (active.sum(axis=1) > 1).any():
            return FOR_EVER
        clustered = self._is_clustered(active)
        now, horizon = self.rounds if rounds is None else rounds, self.need_horizon()
        for halvings in range(horizon.bit_length(), 0, -1):
            start = -(-horizon >> halvings)  # horizon / 2^halvings, rounded up
            if start < max(1, now):
                continue
            if clustered:
                threshold = 24 * self._gamma * self.problem.min_group_size * self.problem.n_arms
                pays = self._demand(start) > threshold
            else:
                information = self._information(active)
                pays = information > 0 and (
                    self._rounds_per_arm(active, start) > 8 * self._gamma / information
                )
            if pays:
                return start
        return FOR_EVER

    def _is_clustered(self, active: BoolArray) -> bool:
        """Tell whether every arm can be home to 2C of the users who may still prefer it."""
        inside = active[active.any(axis=1)][:, active.any(axis=0)]
        return len(inside) > 0 and is_batched(inside, 2 * self.problem.min_group_size)

    def _demand(self, length: int) -> int:
        """Return D, the demand of home and away."""
        return math.ceil(self._share * length)

    def _rounds_per_arm(self, active: BoolArray, length: int) -> int:
        """Return n, the rounds that everyone plays an arm."""
        noise = self._gamma / (2 * self._information(active))
        arm_length = length / self.problem.n_arms
        factor = 4 * self._share * arm_length
        return math.ceil(float(noise ** (1 / 3) * factor ** (2 / 3)))

    def _information(self, active: BoolArray) -> float:
        n_present = int(active.any(axis=1).sum())
        return least_information(n_present, self.problem.min_group_size) if n_present else 0.0


class ForcedRounds(Pooled):
    """Assignments of single shards, over a plan that others have made, and their totals.

    Arm -1 leaves a user with that plan's arm, in no group.
    """

    def fill(self, arms: WholeArray, groups: WholeArray, eligible: BoolArray) -> None:
        """Replace arms and groups in the shards that have assignments left."""
        problem = self._problem
        for shard in self._busy():
            users = problem.shard(shard)
            forced = self._arms[users]
            plays = (forced >= 0) & eligible[users][np.arange(len(forced)), forced]
            # Who plays nothing here is on an arm of its own, whose groups are then dissolved.
            crowds: IntArray = np.where(plays, forced, problem.n_arms).astype(np.int32)
            numbers: IntArray = np.empty(len(forced), np.int32)
            regroup(
                crowds, problem.n_arms + 1, problem.min_group_size, users.start,
                self._rng.random(len(forced)), numbers,
            )  # fmt: skip
            groups[users] = np.where(plays, numbers, -1)
            arms[users] = np.where(plays, forced, arms[users])

    def take(self, plan: Plan, feedback: Feedback) -> list[int]:
        """Learn from the totals of these shards; return those whose assignments are all played."""
        busy = self._busy()
        if busy:  # totals of other shards do no harm: ``forget`` comes before the next forced round
            add_totals(round_totals(plan, feedback), self.information, self.evidence)
        for shard in busy:
            self._left[shard] -= plan.repeats
            if self._left[shard] <= 0:
                self._next(shard)
        return [shard for shard in busy if shard in self.idle]

    def _busy(self) -> list[int]:
        return [shard for shard in range(self._problem.n_shards) if shard not in self.idle]
