"""One campaign as the learner sees it: seats, plans and totals; no user and no reward.

A policy with ``allow`` plans for the users and arms that may play. Any other plans for every seat:
before a plan is frozen, absent seats leave it; a group that is then too small leaves it too. Where
a policy keeps a plan for several rounds (``repeats``), the same plan is frozen round after round,
and the totals are gathered until the last. Runs are kept in the learner's store, so that each
resumes at the exact round and state.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import delete, insert, select, update

from shoal.arrays import BoolArray, IntArray
from shoal.model import Feedback
from shoal.model.merging import merge_plan
from shoal.service.campaign import Campaign, plan_hash
from shoal.service.learner.container import pack, unpack
from shoal.service.store import Database
from shoal.service.store.learner import policies, runs
from shoal.wire import Estimates, Total


class CampaignRun:
    """A campaign's policy, and the feedback gathered for the plan in play.

    Attributes
    ----------
    planned, learnt, reading : int
        The last round whose plan is frozen, the last whose release has been learnt, and the last
        whose release may have been read.
    asked : bool
        Whether the policy has been asked for the plan in play; a restored one has not.
    plan_round, plan_hash : int, str
        The round that a plan was last drawn for, and the hash by which it is frozen.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.planned = 0
        self.learnt = 0
        self.reading = 0
        self.asked = False
        self.plan_round, self.plan_hash = 0, ""
        self.policy = campaign.make_policy()
        self._gathered: dict[str, Any] | None = None  # None at the start of a plan

    def plan(
        self, number: int, occupied: BoolArray, offered: BoolArray
    ) -> tuple[IntArray, IntArray]:
        """Return each seat's arm and group for a round; -1 for absent, -1 for none.

        ``occupied`` (n_seats,) seats may play ``offered`` (n_arms,) arms. The same state and the
        same arguments give the same plan.
        """
        if not self.asked and self.campaign.is_flexible():
            self.policy.allow(occupied[:, None] & offered)
        plan = self.policy.ask()
        self.asked = True
        groups = np.where(occupied, plan.groups, -1).astype(np.int32)
        sizes = np.bincount(groups[groups >= 0], minlength=plan.n_groups + 1)
        groups[(groups >= 0) & (sizes[groups] < self.campaign.min_reporters)] = -1
        arms = np.where(occupied, plan.arms, -1).astype(np.int32)
        self.plan_round, self.plan_hash = number, plan_hash(arms, groups)
        return arms, groups

    def learn(self, totals: Sequence[Total], counted: BoolArray) -> bool:
        """Learn from one round's totals; return whether the policy has moved on to a new plan.

        ``counted`` are the seats behind the totals. Where a plan is kept for several rounds, a
        total of merged groups can't be added to another round's: they count as withheld.
        """
        plan = self.policy.ask()
        sums = self._gathered or {
            "rounds": 0,
            "totals": np.zeros(plan.n_groups),
            "released": np.zeros(plan.n_groups, np.int32),
            "reported": np.zeros(len(plan.groups), np.int32),
        }
        self._gathered = sums
        into = np.full(plan.n_groups, -1)
        for total in totals:
            if plan.repeats == 1 or len(total.parts) == 1:
                into[list(total.parts)] = total.parts[0]
                sums["totals"][total.parts[0]] += total.total / self.campaign.reward_steps
        in_total = np.append(into >= 0, False)
        sums["released"] += into == np.arange(plan.n_groups)
        sums["reported"] += counted & in_total[plan.groups]
        sums["rounds"] += 1
        self.learnt += 1
        if sums["rounds"] < plan.repeats:
            return False
        if plan.repeats == 1:
            plan = merge_plan(plan, into)
        n = plan.n_groups
        self.policy.tell(Feedback(sums["totals"][:n], sums["released"][:n], sums["reported"], plan))
        self._gathered, self.asked = None, False
        return True

    def estimates(self, occupied: BoolArray, offered: BoolArray) -> Estimates | None:
        """Return the estimates of the arms, with None for each arm that is not ``offered``.

        None altogether before the first round has been learnt, where the policy has no estimate,
        and where it would be of fewer users than a total may be of.
        """
        if self.policy.rounds == 0 or occupied.sum() < self.campaign.min_reporters:
            return None
        arm_means = self.policy.arm_means(occupied)
        if arm_means is None:
            return None
        means, half_widths = (
            [x if on else None for x, on in zip(part.clip(0, 1).tolist(), offered, strict=True)]
            for part in arm_means
        )
        return Estimates(means, half_widths)

    def policy_state(self) -> bytes:
        """Return the policy's exact state."""
        return pack(self.policy.state())

    def feedback_state(self) -> bytes:
        """Return what was gathered for the plan in play."""
        return pack(self._gathered)

    def restore(self, policy: bytes | None, feedback: bytes) -> None:
        """Continue exactly where the states were taken; None is a policy's first state."""
        if policy is not None:
            self.policy.restore(unpack(policy))
        self._gathered = unpack(feedback)


class Records:
    """The runs in a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self) -> list[str]:
        """Return the campaigns that there are runs of."""
        with self._database.read() as connection:
            return list(connection.scalars(select(runs.c.campaign)))

    def load(self, name: str) -> CampaignRun:
        """Return a run as it was last kept."""
        query = select(runs, policies.c.state).outerjoin(policies).where(runs.c.campaign == name)
        with self._database.read() as connection:
            row = connection.execute(query).one()
        run = CampaignRun(Campaign.model_validate_json(row.definition))
        run.restore(row.state, row.feedback)
        run.planned, run.learnt, run.reading = row.planned, row.learnt, row.reading
        return run

    def add(self, name: str, run: CampaignRun) -> None:
        """Keep a new run; its policy's first state follows from the definition."""
        row = {
            "campaign": name,
            "definition": run.campaign.model_dump_json(),
            "planned": run.planned,
            "learnt": run.learnt,
            "feedback": run.feedback_state(),
        }
        with self._database.write() as connection:
            connection.execute(insert(runs).values(row))

    def keep_progress(self, name: str, run: CampaignRun) -> None:
        """Keep that a plan is frozen, or that a release is about to be read.

        From then on the round can't be played again.
        """
        row = {"planned": run.planned, "reading": run.reading}
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.campaign == name).values(row))

    def keep_learnt(self, name: str, run: CampaignRun, *, moved_on: bool) -> None:
        """Keep what was learnt; the policy's state only where it has ``moved_on``."""
        row = {"planned": run.planned, "learnt": run.learnt, "feedback": run.feedback_state()}
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.campaign == name).values(row))
            if moved_on:
                connection.execute(delete(policies).where(policies.c.campaign == name))
                state = {"campaign": name, "state": run.policy_state()}
                connection.execute(insert(policies).values(state))
