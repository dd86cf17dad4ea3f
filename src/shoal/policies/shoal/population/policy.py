"""The flagship for large populations: users teach each other what people are like.

Each user's posterior combines its own evidence with a prior learnt from everyone's
(``estimators.population`` and ``estimators.shared_prior``). Users play the arm of the best block
lookahead (``lookahead``), a panel explores for all as long as that pays (``panel``), and each
arm's crowd is cut into random groups (``crowds``). Nobody explores where no group forms. Of an arm
that is not known at all, no lookahead tells much: users drawn by lot try it, as many as make a
group at least, in the first round or whenever the arm is new. A round costs O(n_users), whatever
happened before; a user is about a hundred bytes at ten arms.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray, CountArray, FloatArray, IntArray, SmallFloatArray
from shoal.grouping.random_groups import cut_crowds, group_size, safe_size
from shoal.model import Feedback, Plan, Problem, State, Stateful
from shoal.model.numbers import not_negative
from shoal.policies.base import HALF_95, ArmMeans, Choice, Policy
from shoal.policies.shoal.joint.value_of_information import lesson_life
from shoal.policies.shoal.population.belief import PopulationBelief, absorb
from shoal.policies.shoal.population.lookahead import decide, never_unseen
from shoal.policies.shoal.population.panel import panel_share
from shoal.policies.shoal.population.prior import MOST_USERS, learn_prior

LEAST_LEFT = 100  # and as many as were played: rounds to come where the horizon is not known
RAREST = 4  # users outside the panel decide at least once in so many rounds: no loss was measured
OFTENER = 4  # or once in this part of the rounds played or left, if that is sooner
REFRESH = 1.15  # the prior is learnt anew whenever the rounds have grown by this factor
LARGEST = 3  # times the least size: beyond, merging does as well
HEARD = 0.2  # weight of one round's reports in the share of members who report
EVERYONE = 2.0  # a panel of all users
ATTEMPTS = 3  # rounds in which an arm is tried before it is given up: too few may report
NOBODY = np.empty(0, np.int32)


class Population(Policy):
    """A learnt prior over users, block lookahead, and a panel that explores for all.

    Parameters
    ----------
    drift
        Variance by which each user's mean may move in a round; old rounds fade accordingly.
    """

    takes_merged = True

    def __init__(self, problem: Problem, *, rng: np.random.Generator, drift: float = 0.0) -> None:
        super().__init__(problem, rng=rng)
        self._drift = not_negative("drift", drift)
        self._shards = [Shard(problem, rng) for _ in range(problem.n_shards)]

    def _allow(self, eligible: BoolArray) -> None:
        for index, shard in enumerate(self._shards):
            shard.allowed = eligible[self.problem.shard(index)].copy()

    def state(self) -> State:
        """Return everything that changes in a run, shard by shard."""
        return super().state() | {"shards": [shard.state() for shard in self._shards]}

    def restore(self, state: State) -> None:
        """Continue exactly where ``state`` was taken."""
        super().restore(state)
        for shard, kept in zip(self._shards, state["shards"], strict=True):
            shard.restore(kept)

    def _choose(self) -> Choice:
        problem = self.problem
        arms = np.empty(problem.n_users, np.int32)
        groups = np.empty(problem.n_users, np.int32)
        number = 0
        for index, shard in enumerate(self._shards):
            users = problem.shard(index)
            left = self._left(self.rounds)
            number = shard.choose(self.rounds, left, number, groups[users], self.rng)
            np.maximum(shard.arms, 0, out=arms[users])
        return arms, groups, 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        done, horizon = self.rounds + 1, self.problem.horizon
        # In the second half, what a panel finds comes too late to pay.
        early = horizon is None or 2 * done < horizon
        for index, shard in enumerate(self._shards):
            users = self.problem.shard(index)
            groups = plan.groups[users]
            first = int(groups.min(where=groups >= 0, initial=plan.n_groups))
            groups = np.where(groups < 0, -1, groups - first)
            end = first + int(groups.max()) + 1
            shard.learn(
                groups, feedback.totals[first:end], feedback.released[first:end],
                feedback.reported[users],
            )  # fmt: skip
            if self._drift > 0:
                shard.belief.fade(self._drift)
            if done >= shard.next_refresh:
                shard.refresh(done, self._left(done), early, self.rng)

    def arm_means(self, present: BoolArray) -> ArmMeans:
        """Return the population's mean on each arm, shards counted by who is ``present``."""
        counts = present.reshape(len(self._shards), -1).sum(axis=1)
        shares = counts / max(1, counts.sum())
        beliefs = [shard.belief for shard in self._shards]
        means = shares @ np.array([belief.means for belief in beliefs])
        variances = shares**2 @ np.array([belief.doubts for belief in beliefs])
        return ArmMeans(means, HALF_95 * np.sqrt(variances))

    def _left(self, rounds: int) -> float:
        """Return for how many rounds a lesson is worth having after ``rounds``."""
        horizon = self.problem.horizon
        left = float(rounds + LEAST_LEFT if horizon is None else horizon - rounds)
        if self._drift > 0:
            left = min(left, lesson_life(self.problem.min_group_size, self._drift))
        return left


class Shard(Stateful):
    """One shard's users: what they believe, play and may play.

    ``turns`` are fixed random numbers in [0, 1): the panel is those below its share, so that
    smaller panels are part of larger ones. ``share`` is that of group members who report.
    ``attempts`` are left to hear of each arm, none once there was a total.
    """

    changing = (
        "belief", "allowed", "turns", "arms", "predicted", "variances", "panel", "share",
        "attempts", "next_refresh",
    )  # fmt: skip

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        n_users, n_arms = problem.shard_size, problem.n_arms
        self.least = problem.min_group_size
        self.belief = PopulationBelief(n_users, n_arms, self.least)
        self.allowed: BoolArray = np.ones((n_users, n_arms), np.bool_)
        self.turns: SmallFloatArray = rng.random(n_users, np.float32)
        self.arms: IntArray = np.full(n_users, -1, np.int32)
        self.predicted: SmallFloatArray = np.zeros(n_users, np.float32)
        self.variances: SmallFloatArray = np.zeros(n_users, np.float32)
        self.panel = EVERYONE
        self.share = 1.0
        self.attempts = np.full(n_arms, ATTEMPTS)
        self.next_refresh = 1

    def choose(
        self, rounds: int, left: float, first: int, groups: IntArray, rng: np.random.Generator
    ) -> int:
        """Decide arms, fill ``groups`` numbered from ``first``, return the next group number."""
        belief, prior = self.belief, self.belief.prior()
        n_arms = len(belief.means)
        deciding, dealing = rng.integers(2**64, size=2, dtype=np.uint64)
        n_present = int(self.allowed.any(axis=1).sum())
        seen = self.panel * n_present >= self.least * n_arms  # too few panellists are never seen
        decide(
            prior, belief.precision, belief.value, self.allowed, self.turns,
            self.panel if seen else 0.0, self._send(n_present, rng), belief.misfit * self.least,
            left, rounds, int(max(1, min(RAREST, rounds // OFTENER, left // OFTENER))), deciding,
            self.arms, self.predicted, self.variances,
        )  # fmt: skip
        never_unseen(
            prior, belief.precision, belief.value, self.allowed, self.least, self.arms,
            self.predicted, self.variances,
        )  # fmt: skip
        size = group_size(self.least, self.share, LARGEST * self.least)
        return cut_crowds(self.arms, n_arms, self.least, size, dealing, first, groups)

    def _send(self, n_present: int, rng: np.random.Generator) -> IntArray:
        """Return the arm that each user has to try, -1 for none; an arm gets its share of users."""
        enough = safe_size(self.least, self.share, LARGEST * self.least)
        untried = np.flatnonzero(self.attempts)
        untried = untried[self.allowed[:, untried].sum(axis=0) >= enough]
        if not len(untried):
            return NOBODY
        size = max(enough, n_present // len(self.attempts))
        order = rng.permutation(len(self.arms))
        sent = np.full(len(order), -1, np.int32)
        for arm in rng.permutation(untried):
            able = order[(sent[order] < 0) & self.allowed[order, arm]]
            if len(able) >= enough:
                sent[able[:size]] = arm
                self.attempts[arm] -= 1
        return sent

    def learn(
        self, groups: IntArray, totals: FloatArray, released: CountArray, reported: CountArray
    ) -> None:
        """Take in a round's totals, of groups numbered from 0."""
        absorb(self.belief, self.arms, groups, totals, reported, self.predicted, self.variances)
        inside = groups >= 0
        heard = released.astype(np.bool_)[groups[inside]]
        if self.attempts.any():
            self.attempts[self.arms[inside][heard]] = 0
        withheld = np.count_nonzero(~heard)
        members = np.count_nonzero(inside)
        if members:
            # Who is withheld reported less than enough: how many did is not told.
            reports = np.count_nonzero(reported) + withheld * self.share / 2
            self.share += HEARD * (reports / members - self.share)

    def refresh(self, rounds: int, left: float, early: bool, rng: np.random.Generator) -> None:
        """Learn the prior anew, and, as long as it is ``early``, the panel's size from it."""
        self.next_refresh = max(rounds + 1, int(rounds * REFRESH))
        present = self.allowed.any(axis=1)
        users = np.flatnonzero(present)
        if len(users) > MOST_USERS:  # the panel, which knows most, first
            users = users[np.argpartition(self.turns[users], MOST_USERS)[:MOST_USERS]]
        learn_prior(self.belief, users)
        rest = self.predicted[present & (self.turns >= self.panel)]
        others = float(rest.mean()) if len(rest) else 0.0
        self.panel = panel_share(self.belief, self.least, left, others, rng=rng) if early else 0.0
