"""The learner for large populations: users share a prior that is learnt from everyone.

Each user's posterior combines its evidence with a prior learnt from all evidence (``belief``,
``prior``). Users test the arms that are worth it (``lookahead``), a panel explores for all
as long as that pays (``panel``), users drawn at random try each new arm, and each arm's crowd is
cut into random groups. Nobody explores unseen. A round costs O(n_users), whatever happened before;
a user takes about a hundred bytes at ten arms.
"""

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import BoolArray, IntArray, SmallFloatArray
from shoal.grouping import RoundTotals, cut_crowds, group_size, safe_size
from shoal.model import Feedback, Plan, Problem, Stateful
from shoal.model.numbers import not_negative
from shoal.policies.base import ArmMeans, Choice, Policy, rounds_left
from shoal.policies.beliefs import Beliefs, best_chances
from shoal.policies.shoal.constants import POPULATION
from shoal.policies.shoal.population.belief import Decision, PopulationBelief
from shoal.policies.shoal.population.lookahead import (
    NO_ASSIGNMENTS,
    DecisionSchedule,
    Explorers,
    UserRange,
    decide,
    return_unseen,
)
from shoal.policies.shoal.population.panel import PANEL_ALL, best_panel_share
from shoal.policies.shoal.population.posterior import marginals
from shoal.policies.shoal.population.prior import learn_prior
from shoal.threads import in_ranges


class PopulationPolicy(Policy):
    """A learnt prior over users, lookahead, and a panel that explores for all.

    ``make_shoal`` says what ``drift`` is.
    """

    changing = (*Policy.changing, "shards")
    takes_merged = True
    takes_groups = True
    takes_shards = True

    def __init__(self, problem: Problem, *, rng: np.random.Generator, drift: float = 0.0) -> None:
        super().__init__(problem, rng=rng)
        self._drift = not_negative("drift", drift)
        self.shards = [PopulationShard(problem, rng) for _ in range(problem.n_shards)]

    def _allow(self, eligible: BoolArray) -> None:
        for index, shard in enumerate(self.shards):
            shard.allowed = eligible[self.problem.shard(index)].copy()

    def _choose(self) -> Choice:
        problem = self.problem
        arms = np.empty(problem.n_users, np.int32)
        groups = np.empty(problem.n_users, np.int32)
        left, number = self._rounds_left(self.rounds), 0
        for index, shard in enumerate(self.shards):
            users = problem.shard(index)
            number = shard.choose(self.rounds, left, number, groups[users], self.rng)
            np.maximum(shard.decision.arms, 0, out=arms[users])
        return arms, groups, 1

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        done, horizon = self.rounds + 1, self.problem.horizon
        # In the second half, what a panel learns comes too late to pay.
        early = horizon is None or 2 * done < horizon
        for index, shard in enumerate(self.shards):
            users = self.problem.shard(index)
            groups = plan.groups[users]
            first = int(groups.min(where=groups >= 0, initial=plan.n_groups))
            groups = np.where(groups < 0, -1, groups - first)
            numbers = slice(first, first + int(groups.max()) + 1)
            shard.learn(
                RoundTotals(
                    shard.decision.arms, groups, feedback.totals[numbers],
                    feedback.released[numbers], feedback.reported[users],
                )
            )  # fmt: skip
            if self._drift > 0:
                shard.belief.add_drift(self._drift)
            if done >= shard.next_refresh:
                shard.refresh(done, self._rounds_left(done), early, self.rng)

    def arm_means(self, present: ArrayLike) -> ArmMeans:
        """Return the population's mean on each arm, shards weighted by who is ``present``."""
        counts = self.check_present(present).reshape(len(self.shards), -1).sum(axis=1)
        shares = counts / (counts.sum() or math.nan)
        beliefs = [shard.belief for shard in self.shards]
        means = shares @ np.array([belief.means for belief in beliefs])
        variances = shares**2 @ np.array([belief.mean_variances for belief in beliefs])
        return ArmMeans.normal(means, np.sqrt(variances))

    def beliefs(self, *, users: ArrayLike | None = None) -> Beliefs:
        """Return what is believed of users, from the posterior of both kinds of them."""
        chosen = self.check_users(users)
        beliefs = [shard.belief for shard in self.shards]
        parts = [marginals(belief.prior(), belief.evidence) for belief in beliefs]
        chances, means, variances = (
            np.concatenate(part, axis=1)[:, chosen] for part in zip(*parts, strict=True)
        )
        mean = (chances * means).sum(axis=0)
        variance = (chances * (variances + (means - mean) ** 2)).sum(axis=0)
        best = best_chances(chances, means, np.sqrt(variances))
        return Beliefs(mean, np.sqrt(variance), best, chances[1])

    def _rounds_left(self, rounds: int) -> float:
        return rounds_left(
            self.problem, rounds, self._drift, POPULATION.unknown_rounds, POPULATION.unknown_growth
        )


class PopulationShard(Stateful):
    """One shard's users: what they believe, play and may play.

    ``panel_ranks`` are fixed random numbers in [0, 1): the panel is those below ``panel_share``, so
    that smaller panels are part of larger ones. ``report_rate`` is the share of group members who
    report. ``attempts_left`` counts the attempts to observe each arm, 0 once there was a total.
    """

    changing = (
        "belief", "allowed", "decision", "panel_ranks", "panel_share", "report_rate",
        "attempts_left", "next_refresh",
    )  # fmt: skip
    earlier_names: ClassVar = {
        "panel_ranks": "turns",
        "panel_share": "panel",
        "report_rate": "share",
        "attempts_left": "attempts",
    }

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        n_users, n_arms = problem.shard_size, problem.n_arms
        self.min_group_size = problem.min_group_size
        self.belief = PopulationBelief(n_users, n_arms, self.min_group_size)
        self.allowed: BoolArray = np.ones((n_users, n_arms), np.bool_)
        self.decision = Decision(
            np.full(n_users, -1, np.int32), *np.zeros((2, n_users), np.float32)
        )
        self.panel_ranks: SmallFloatArray = rng.random(n_users, np.float32)
        self.panel_share = PANEL_ALL
        self.report_rate = 1.0
        self.attempts_left = np.full(n_arms, POPULATION.attempts)
        self.next_refresh = 1

    def choose(
        self, rounds: int, left: float, first: int, groups: IntArray, rng: np.random.Generator
    ) -> int:
        """Decide arms, fill ``groups`` numbered from ``first``, return the next group number."""
        belief, prior, min_size = self.belief, self.belief.prior(), self.min_group_size
        n_arms = len(belief.means)
        decision_seed, group_seed = rng.integers(2**64, size=2, dtype=np.uint64)
        n_present = int(self.allowed.any(axis=1).sum())
        observed = self.panel_share * n_present >= min_size * n_arms  # else the panel is too small
        share = self.panel_share if observed else 0.0
        noise = belief.overdispersion * min_size
        noise[self.attempts_left > 0] = POPULATION.unknown_variance  # left to those who have to try
        assigned = self._assign(n_present, rng)
        explorers = Explorers(self.panel_ranks, share, assigned, decision_seed)
        parts = POPULATION.period_parts
        period = int(max(1, min(POPULATION.max_period, rounds // parts, left // parts)))
        schedule = DecisionSchedule(left, rounds, period)

        def decide_range(first: int, end: int) -> None:
            decide(
                prior, belief.evidence, self.allowed, explorers, noise, schedule, self.decision,
                UserRange(first, end),
            )  # fmt: skip

        in_ranges(len(self.allowed), decide_range)
        return_unseen(prior, belief.evidence, self.allowed, min_size, self.decision)
        size = group_size(min_size, self.report_rate, POPULATION.max_group_factor * min_size)
        return cut_crowds(self.decision.arms, n_arms, min_size, size, group_seed, first, groups)

    def _assign(self, n_present: int, rng: np.random.Generator) -> IntArray:
        """Return the arm that each user has to try, -1 for none; an arm gets its share of users."""
        min_size = self.min_group_size
        enough = safe_size(min_size, self.report_rate, POPULATION.max_group_factor * min_size)
        untried = np.flatnonzero(self.attempts_left)
        untried = untried[self.allowed[:, untried].sum(axis=0) >= enough]
        if not len(untried):
            return NO_ASSIGNMENTS
        size = max(enough, n_present // len(self.attempts_left))
        order = rng.permutation(len(self.allowed))
        assigned = np.full(len(order), -1, np.int32)
        for arm in rng.permutation(untried):
            able = order[(assigned[order] < 0) & self.allowed[order, arm]]
            if len(able) >= enough:
                assigned[able[:size]] = arm
                self.attempts_left[arm] -= 1
        return assigned

    def learn(self, played: RoundTotals) -> None:
        """Update by a round's totals, of groups numbered from 0."""
        self.belief.absorb(played, self.decision)
        grouped = played.groups >= 0
        released = played.released.astype(np.bool_)[played.groups[grouped]]
        if self.attempts_left.any():
            self.attempts_left[played.arms[grouped][released]] = 0
        n_members = np.count_nonzero(grouped)
        if n_members:
            # How many members of a withheld group reported is not known; fewer than enough.
            n_withheld = np.count_nonzero(~released)
            reports = np.count_nonzero(played.reported) + n_withheld * self.report_rate / 2
            change = reports / n_members - self.report_rate
            self.report_rate += POPULATION.report_rate_smoothing * change

    def refresh(self, rounds: int, left: float, early: bool, rng: np.random.Generator) -> None:
        """Learn the prior again, and, as long as it is ``early``, the panel's size from it."""
        self.next_refresh = max(rounds + 1, int(rounds * POPULATION.refresh_growth))
        present = self.allowed.any(axis=1)
        users = np.flatnonzero(present)
        max_users = POPULATION.max_prior_users
        if len(users) > max_users:  # the panel, which has most evidence, first
            users = users[np.argpartition(self.panel_ranks[users], max_users)[:max_users]]
        learn_prior(self.belief, users, self.min_group_size)
        rest = self.decision.predicted[present & (self.panel_ranks >= self.panel_share)]
        others = float(rest.mean()) if len(rest) else 0.0
        self.panel_share = 0.0
        if early:
            min_size = self.min_group_size
            self.panel_share = best_panel_share(self.belief, min_size, left, others, rng=rng)
