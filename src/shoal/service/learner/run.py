"""One campaign as the learner sees it: seats, plans and totals; no user and no reward.

A policy with ``allow`` plans for the users and arms that may play. Any other plans for every seat:
before a plan is frozen, absent seats leave it; a group that is then too small leaves it too. Where
a policy keeps a plan for several rounds (``repeats``), the same plan is frozen round after round,
and the totals are gathered until the last. Runs are kept in the learner's store, so that each
resumes at the exact round and state.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from sqlalchemy import delete, insert, select, update

from shoal.arrays import BoolArray, FloatArray, IntArray
from shoal.errors import ShoalError
from shoal.model import Feedback
from shoal.model.container import pack, unpack
from shoal.model.merging import merge_plan
from shoal.service.campaign import Campaign, plan_hash
from shoal.service.store import Database
from shoal.service.store.learner import deleted_campaigns, policies, runs
from shoal.wire import Estimates, LearnerProgress, Total

BELIEFS_USERS = 200  # that an answer about beliefs is of, if C is not more
BELIEFS_GROWTH = 0.1  # of the rounds, until it is given again

STATE_VERSION = 1
"""Of the form in which a policy's state is kept; 0.1 wrote none, and the same form."""

_STATE, _ROUNDS, _TO_TELL = 1, 2, 3  # what is to be forgotten, or was and is to be told
_IS_TO_TELL = runs.c.relearn == _TO_TELL


class CampaignRun:
    """A campaign's policy, and the feedback gathered for the plan in play.

    Attributes
    ----------
    planned, learnt, reading : int
        The last round whose plan is frozen, the last whose release has been learnt, and the last
        whose release may have been read.
    policy_has_plan : bool
        Whether the policy has been asked for the plan in play; a restored one has not.
    plan_round : int
        The round that a plan was last drawn for.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.planned = 0
        self.learnt = 0
        self.reading = 0
        self.policy_has_plan = False
        self.plan_round = 0
        self._arms = self._groups = np.empty(0, np.int32)  # as they were proposed
        self._numbers: set[int] = set()  # of the groups that are learnt from
        self._held_out = np.zeros(campaign.seats, bool)
        self._beliefs: tuple[int, tuple[FloatArray, FloatArray]] | None = None  # since which round
        self.policy = campaign.make_policy()
        self._gathered: dict[str, Any] | None = None  # None at the start of a plan

    def follow(self, progress: LearnerProgress) -> None:
        """Go on from what is known of how far the campaign is."""
        self.planned, self.learnt = progress.planned, progress.learnt
        self.reading = progress.reading

    def plan(
        self,
        number: int,
        occupied: BoolArray,
        offered: BoolArray,
        held_out: BoolArray | None = None,
    ) -> tuple[IntArray, IntArray]:
        """Return each seat's arm and group for a round; -1 for absent, -1 for none.

        ``occupied`` (n_seats,) seats may play ``offered`` (n_arms,) arms. To the policy, those
        ``held_out`` are absent: they play the arm that it estimates highest over all others, and
        are grouped by the aggregator. The same state and the same arguments give the same plan.
        """
        self._held_out = np.zeros(len(occupied), bool) if held_out is None else held_out
        playing = occupied & ~self._held_out
        if not self.policy_has_plan and self.campaign.is_flexible():
            self.policy.allow(playing[:, None] & offered)
        plan = self.policy.ask()
        self.policy_has_plan = True
        groups = np.where(playing, plan.groups, -1).astype(np.int32)
        sizes = np.bincount(groups[groups >= 0], minlength=plan.n_groups + 1)
        groups[(groups >= 0) & (sizes[groups] < self.campaign.min_reporters)] = -1
        arms = np.where(playing, plan.arms, -1).astype(np.int32)
        if self._held_out.any():
            arms[occupied & self._held_out] = self._best_arm(playing, offered)
        self.plan_round, self._arms, self._groups = number, arms, groups
        self._numbers = set(groups.tolist())
        return arms, groups

    def _best_arm(self, playing: BoolArray, offered: BoolArray) -> int:
        """Return the arm on offer that has the highest mean so far, the first of equals."""
        arm_means = self.policy.arm_means(playing)
        assert arm_means is not None  # of a policy that a campaign with a holdout may have
        return int(np.where(offered, arm_means[0], -np.inf).argmax())

    def adopt(self, groups: IntArray, frozen: str) -> bool:
        """Take over the groups of the plan in play; False where it is not this run's.

        Its hash is ``frozen``. Where the learner draws the groups, others than its own are of users
        that it left out: nothing is learnt of them.
        """
        if plan_hash(self._arms, groups) != frozen:
            return False
        chosen, groups = self._groups >= 0, np.where(self._held_out, -1, groups).astype(np.int32)
        if self.campaign.grouping == "aggregator":
            self.policy.regroup(groups)
            self._numbers = set(groups.tolist())
            return True
        return bool(((groups[chosen] == self._groups[chosen]) | (groups[chosen] == -1)).all())

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
            if not self._numbers.issuperset(total.parts):  # of users whom the learner left out
                continue
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
        self._gathered, self.policy_has_plan = None, False
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

        def shown(part: FloatArray) -> list[float | None]:
            values = part.clip(0, 1).tolist()
            return [x if on else None for x, on in zip(values, offered, strict=True)]

        believed = self._believed(occupied)
        if believed is None:
            return Estimates(*map(shown, arm_means))
        best, spread = believed
        among = best / best[offered].sum()  # of the arms on offer
        means, half_widths = map(shown, arm_means)
        return Estimates(means, half_widths, shown(among), shown(spread))

    def _believed(self, occupied: BoolArray) -> tuple[FloatArray, FloatArray] | None:
        """Return for which share of users each arm is the best, and how users differ on it.

        It is of a sample of the ``occupied`` seats, and computed again when a tenth more rounds
        have been learnt: it takes longer than a plan.
        """
        known, rounds = self._beliefs, self.policy.rounds
        if known is None or rounds > (1 + BELIEFS_GROWTH) * known[0]:
            users = np.flatnonzero(occupied)
            n_users = max(BELIEFS_USERS, self.campaign.min_reporters)
            if len(users) > n_users:
                users = np.random.default_rng(rounds).choice(users, n_users, replace=False)
            beliefs = self.policy.beliefs(users=users)
            if beliefs is None:
                return None
            within = (beliefs.deviations**2).mean(axis=0)
            spread = np.sqrt(beliefs.means.var(axis=0) + within)
            known = self._beliefs = rounds, (beliefs.best.mean(axis=0), spread)
        return known[1]

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


class DamagedStateError(ShoalError):
    """A campaign's stored state can't be read."""


class UndefinedError(DamagedStateError):
    """A campaign that is to be learnt again has no readable definition here."""


class Records:
    """The runs in a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self) -> list[str]:
        """Return the campaigns that there are runs of."""
        with self._database.read() as connection:
            return list(connection.scalars(select(runs.c.campaign)))

    def delete(self, name: str) -> None:
        """Forget a campaign that was deleted, all but how far it was."""
        last = self.progress(name).furthest
        with self._database.write() as connection:
            for table in (policies, runs, deleted_campaigns):
                connection.execute(delete(table).where(table.c.campaign == name))
            row = {"campaign": name, "last_round": last}
            connection.execute(insert(deleted_campaigns).values(row))

    def deleted(self) -> dict[str, int]:
        """Return the last round of each campaign that was deleted."""
        with self._database.read() as connection:
            rows = connection.execute(select(deleted_campaigns)).all()
        return {row.campaign: row.last_round for row in rows}

    def progress(self, name: str) -> LearnerProgress:
        """Return how far a campaign is, whatever became of its state."""
        query = select(runs.c.planned, runs.c.learnt, runs.c.reading)
        with self._database.read() as connection:
            return LearnerProgress(*connection.execute(query.where(runs.c.campaign == name)).one())

    def load(self, name: str) -> CampaignRun:
        """Return a run as it was last kept, or say that its state is damaged."""
        columns = (policies.c.state, policies.c.version, policies.c.digest)
        query = select(runs, *columns).outerjoin(policies).where(runs.c.campaign == name)
        with self._database.read() as connection:
            row = connection.execute(query).one()
        if not row.definition:
            raise UndefinedError("its definition is lost")
        if (row.version or 0) > STATE_VERSION:
            raise DamagedStateError("a later release of Shoal has written it")
        for state, digest in ((row.state, row.digest), (row.feedback, row.feedback_digest)):
            if state is not None and digest not in (None, sha256(state).digest()):
                raise DamagedStateError("it is not what was written")
        try:
            run = CampaignRun(Campaign.model_validate_json(row.definition))
            run.restore(row.state, row.feedback)
        except Exception as error:  # bytes that decode to anything at all
            raise DamagedStateError(f"it can't be read: {type(error).__name__}") from error
        run.follow(LearnerProgress(row.planned, row.learnt, row.reading))
        return run

    def ask_to_relearn(self, name: str, *, forget_rounds: bool = False) -> bool:
        """Ask for a campaign to be learnt again from its releases; False for an unknown one.

        The learner that serves the store does it, at once or when it starts. With
        ``forget_rounds`` it also forgets how far the campaign is.
        """
        request = (
            update(runs)
            .where(runs.c.campaign == name)
            .values(relearn=_ROUNDS if forget_rounds else _STATE)
        )
        with self._database.write() as connection:
            return bool(connection.execute(request).rowcount)

    def forget_requested(self) -> list[str]:
        """Forget the states of campaigns that are to be learnt again; return their names."""
        with self._database.read() as connection:
            requests = connection.execute(
                select(runs.c.campaign, runs.c.relearn, runs.c.definition).where(
                    runs.c.relearn.in_((_STATE, _ROUNDS))
                )
            ).all()
        for name, extent, definition in requests:
            row: dict[str, Any] = {"learnt": 0, "relearn": 0, **_feedback_columns(pack(None))}
            if extent == _ROUNDS:
                row |= {"planned": 0, "reading": 0, "relearn": _TO_TELL}
            if not _is_definition(definition):
                row["definition"] = ""
            with self._database.write() as connection:
                connection.execute(delete(policies).where(policies.c.campaign == name))
                connection.execute(update(runs).where(runs.c.campaign == name).values(row))
        return [name for name, *_ in requests]

    def forgotten(self) -> list[str]:
        """Return the campaigns whose rounds were forgotten, which the aggregator is to be told."""
        with self._database.read() as connection:
            return list(connection.scalars(select(runs.c.campaign).where(_IS_TO_TELL)))

    def keep_told(self) -> None:
        """Keep that the aggregator knows which rounds were forgotten."""
        with self._database.write() as connection:
            connection.execute(update(runs).where(_IS_TO_TELL).values(relearn=0))

    def define(self, name: str, run: CampaignRun) -> None:
        """Keep a definition in place of one that could not be read."""
        row = {"definition": run.campaign.model_dump_json()}
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.campaign == name).values(row))

    def add(self, name: str, run: CampaignRun) -> None:
        """Keep a new run, or one of a campaign whose deletion a restored aggregator has forgotten.

        Its policy's first state follows from the definition.
        """
        row = {
            "campaign": name,
            "definition": run.campaign.model_dump_json(),
            "planned": run.planned,
            "learnt": run.learnt,
            "reading": run.reading,
            **_feedback_columns(run.feedback_state()),
        }
        forgotten = delete(deleted_campaigns).where(deleted_campaigns.c.campaign == name)
        with self._database.write() as connection:
            connection.execute(insert(runs).values(row))
            connection.execute(forgotten)

    def keep_progress(self, name: str, run: CampaignRun) -> None:
        """Keep that a plan is frozen, or that a release is about to be read.

        From then on the round can't be played again.
        """
        row = {"planned": run.planned, "reading": run.reading}
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.campaign == name).values(row))

    def keep_learnt(self, name: str, run: CampaignRun, *, moved_on: bool) -> None:
        """Keep what was learnt; the policy's state only where it has ``moved_on``."""
        feedback = _feedback_columns(run.feedback_state())
        row = {"planned": run.planned, "learnt": run.learnt, **feedback}
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.campaign == name).values(row))
            if moved_on:
                connection.execute(delete(policies).where(policies.c.campaign == name))
                state = run.policy_state()
                row = {"campaign": name, "state": state, "digest": sha256(state).digest()}
                connection.execute(insert(policies).values(**row, version=STATE_VERSION))


def _is_definition(text: str) -> bool:
    try:
        Campaign.model_validate_json(text)
    except ValueError:
        return False
    return True


def _feedback_columns(feedback: bytes) -> dict[str, bytes]:
    return {"feedback": feedback, "feedback_digest": sha256(feedback).digest()}
