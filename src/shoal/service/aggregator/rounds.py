"""A round's life: wanted, open with a frozen plan, released; or abandoned, never to be released.

A plan is one arm and one group number per seat: the learner's arms, and groups that are drawn here
(``draws``). It is frozen by its hash before the first report,
and is checked by the ``Plan`` type: each group has one arm and at least C users, and a seat is in
one group at most. So groups never overlap, and a round is never played with other groups.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select, update

from shoal.arrays import BoolArray, IntArray, LongArray, WholeArray
from shoal.errors import InvalidInputError
from shoal.model import Plan
from shoal.service import problems
from shoal.service.aggregator import audit_log, campaigns
from shoal.service.aggregator.cache import Cache
from shoal.service.aggregator.campaigns import Directory, offered
from shoal.service.aggregator.draws import WINDOW, draw
from shoal.service.aggregator.holdout import held_out
from shoal.service.campaign import Campaign, plan_hash
from shoal.service.notifier import Notifier
from shoal.service.problems import ProblemError
from shoal.service.store import Clock, Database
from shoal.service.store import aggregator as store

log = logging.getLogger("shoal.service")

WANTED, OPEN, RELEASED, ABANDONED = "wanted", "open", "released", "abandoned"
MAX_CACHED_SEATS = 2**24  # of all plans in memory


@dataclass(frozen=True, slots=True, eq=False)
class FrozenPlan:
    """Each seat's arm (-1: not in the round) and group (-1: none), (n_seats,)."""

    arms: IntArray
    groups: IntArray

    @property
    def hash(self) -> str:
        """Return the hash by which the plan is frozen."""
        return plan_hash(self.arms, self.groups)

    def group_arms(self) -> LongArray:
        """Return each group's arm, -1 for a number that no group has, (n_groups,)."""
        arms = np.full(self.groups.max(initial=-1) + 1, -1, np.int64)
        grouped = self.groups >= 0
        arms[self.groups[grouped]] = self.arms[grouped]
        return arms

    def check_shape(self, campaign: Campaign) -> None:
        """Refuse columns that do not have a number for each seat, or name groups beyond them."""
        seats = campaign.seats
        if self.arms.shape != (seats,) or self.groups.shape != (seats,):
            raise ProblemError(problems.PLAN_REFUSED)
        if self.groups.min(initial=0) < -1 or self.groups.max(initial=-1) >= seats:
            raise ProblemError(problems.PLAN_REFUSED)

    def check(self, campaign: Campaign, occupied: BoolArray, offered: BoolArray) -> None:
        """Refuse a plan that breaks anonymity, counts empty seats or plays arms not on offer."""
        if not np.array_equal(self.arms >= 0, occupied):
            raise ProblemError(problems.ROSTER_CHANGED)
        if (self.groups[~occupied] != -1).any():
            raise ProblemError(problems.PLAN_REFUSED)
        try:
            Plan(np.maximum(self.arms, 0), self.groups, problem=campaign.problem())
        except InvalidInputError:
            raise ProblemError(problems.PLAN_REFUSED) from None
        if not offered[self.arms[occupied]].all():
            raise ProblemError(problems.PLAN_REFUSED)

    def check_holdout(self, blocks: WholeArray) -> None:
        """Refuse a plan in which those held out play more than one arm."""
        if blocks.size and len(np.unique(self.arms[(blocks >= 0) & (self.arms >= 0)])) > 1:
            raise ProblemError(problems.PLAN_REFUSED)


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """A round without its plan."""

    id: int
    campaign: str
    number: int
    state: str
    plan_hash: str | None
    proposal: str | None
    wanted_at: int
    opened_at: int | None
    closed_at: int | None
    contested: int


_COLUMNS = [store.rounds.c[field.name] for field in fields(RoundRecord)]


class Rounds:
    """The rounds of all campaigns; the last ones and the plans last used are kept in memory."""

    def __init__(
        self,
        database: Database,
        directory: Directory,
        notifier: Notifier,
        clock: Clock,
        draw_seed: Callable[[str, int], bytes],
    ) -> None:
        self._draw_seed = draw_seed
        self._database = database
        self._directory = directory
        self._notifier = notifier
        self._clock = clock
        self.lock = threading.RLock()  # for changes; a look-up waits for none
        self._latest: Cache[str, RoundRecord | None] = Cache(database, _load_latest)
        self._plans: Cache[tuple[str, int], tuple[int, FrozenPlan]] = Cache(
            database, _load_plan, size_of=lambda row: row[1].arms.size, max_size=MAX_CACHED_SEATS
        )
        self._planned_for: dict[str, tuple[int, BoolArray]] = {}  # round and seats, by campaign

    @contextmanager
    def change(self, name: str) -> Iterator[Connection]:
        """Open a transaction that changes a campaign's rounds, and wake whoever waits for that."""
        try:
            with self.lock, self._latest.write(name) as connection:
                yield connection
        finally:
            self._notifier.notify()

    def latest(self, name: str) -> RoundRecord | None:
        """Return a campaign's last round, None before the first, or refuse the name."""
        return self._latest.get(name)

    def next_number(self, name: str) -> int:
        """Return the number of the round that has not been asked for."""
        last = self.latest(name)
        return last.number + 1 if last else 1

    def get(self, name: str, number: int) -> RoundRecord:
        """Return a round, or refuse its number."""
        self._directory.campaign(name)
        with self._database.read() as connection:
            return find(connection, name, number)

    def request(self, name: str, number: int) -> bool:
        """Ask the learner for the next round; return False where that has been done."""
        horizon = self._directory.campaign(name).horizon
        with self.change(name) as connection:
            last = latest(connection, name)
            if last is not None and 1 <= number <= last.number:
                return False
            campaigns.require_running(connection, name)
            if last is not None and last.state in (WANTED, OPEN):
                detail = f"Round {last.number} is {last.state}; got round {number}."
                raise ProblemError(problems.ROUND_ORDER, detail)
            expected = (last.number if last else 0) + 1
            if number != expected:
                detail = f"The next is round {expected}; got round {number}."
                raise ProblemError(problems.ROUND_ORDER, detail)
            if horizon is not None and number > horizon:
                raise ProblemError(problems.CAMPAIGN_OVER)
            row = {"campaign": name, "number": number, "state": WANTED, "wanted_at": self._clock()}
            connection.execute(insert(store.rounds).values(row))
            self._note(connection, "round.open", name, round=number)
        return True

    def _note(self, connection: Connection, action: str, name: str, **details: Any) -> None:
        audit_log.append(connection, action, campaign=name, now=self._clock(), **details)

    def eligible(self, name: str, number: int) -> tuple[BoolArray, BoolArray]:
        """Return who may play what in a round: seats, (n_seats,), and arms, (n_arms,)."""
        campaign = self._directory.campaign(name)
        if self.get(name, number).state == WANTED:
            occupied = self._directory.roster(name).occupied(campaign.seats)
            self._planned_for[name] = number, occupied
        else:
            occupied = self.plan(name, number)[1].arms >= 0
        return occupied, offered(self._directory.arms(name), number, campaign.n_arms)

    def freeze(self, name: str, number: int, proposal: FrozenPlan) -> bool:
        """Open a wanted round with the learner's plan; False where it is frozen already.

        Its groups are drawn here, unless the campaign leaves them to the learner (``draws``).
        """
        campaign = self._directory.campaign(name)
        proposal.check_shape(campaign)
        blocks = self._directory.blocks(name)
        plan = self._draw(name, number, proposal, campaign)
        with self.lock, self._directory.lock:  # nobody joins or leaves before the commit
            occupied = self._playing(name, number)
            arms = offered(self._directory.arms(name), number, campaign.n_arms)
            with self.change(name) as connection:
                round_ = find(connection, name, number, lock=True)
                new = round_.plan_hash is None
                if new:
                    if round_.state != WANTED:
                        raise ProblemError(problems.ROUND_NOT_OPEN)
                    plan.check(campaign, occupied, arms)
                    plan.check_holdout(blocks)
                    _open(connection, round_.id, plan, proposal.hash, now=self._clock())
                    self._note(connection, "round.plan", name, round=number, plan=plan.hash)
                elif proposal.hash not in (round_.proposal, round_.plan_hash):
                    raise ProblemError(problems.PLAN_FROZEN)
        self._planned_for.pop(name, None)
        if new:
            self._plans.put((name, number), (round_.id, plan))
        return new

    def _draw(self, name: str, number: int, proposal: FrozenPlan, campaign: Campaign) -> FrozenPlan:
        """Return the plan with the groups that the round is to have."""
        if campaign.grouping is None:  # of version 0.1
            return proposal
        seed = self._draw_seed(name, number)
        earlier = self._earlier_groups(name, number)
        groups = draw(
            proposal.arms, proposal.groups, campaign, seed=seed, earlier=earlier,
            blocks=self._directory.blocks(name),
        )  # fmt: skip
        return FrozenPlan(proposal.arms, groups)

    def _earlier_groups(self, name: str, number: int) -> Iterator[IntArray]:
        for before in range(number - 1, max(0, number - 1 - WINDOW), -1):
            with suppress(ProblemError):  # abandoned before it had a plan
                yield self.plan(name, before)[1].groups

    def _playing(self, name: str, number: int) -> BoolArray:
        """Return who plays a wanted round: whoever joins while the learner plans plays the next."""
        occupied = self._directory.roster(name).occupied(self._directory.campaign(name).seats)
        planned, seats = self._planned_for.get(name, (0, occupied))
        return seats if planned == number and not (seats & ~occupied).any() else occupied

    def plan(self, name: str, number: int) -> tuple[int, FrozenPlan]:
        """Return a round's row and its frozen plan, or refuse its number."""
        return self._plans.get((name, number))

    def drop_plans(self, name: str) -> None:
        """Forget the plans of a campaign, which are not stored any more."""
        self._plans.drop_all(lambda place: place[0] == name)

    def cached_round(self, name: str, number: int | None) -> int | None:
        """Return a round's number, by default the last's, if no look-up in it needs the store."""
        if number is None:
            last = self._latest.find(name)
            number = last.number if last else 0
        cached = self._directory.is_cached(name) and (name, number) in self._plans
        return number if cached else None

    def fetch(self, name: str, number: int | None) -> int:
        """Load all that look-ups in a round need, by default the last; return its number."""
        if number is None:
            last = self.latest(name)
            if last is None:
                raise ProblemError(problems.ROUND_NOT_OPEN)
            number = last.number
        self.plan(name, number)
        self._directory.fetch(name)
        return number

    def keep_estimates(self, name: str, number: int, millionths: bytes) -> None:
        """Keep what the learner believes of the arms before a round, over those who play it."""
        _, plan = self.plan(name, number)
        min_reporters = self._directory.campaign(name).min_reporters
        apart = held_out(self._directory.blocks(name), len(plan.arms))
        if ((plan.arms >= 0) & ~apart).sum() < min_reporters:
            raise ProblemError(
                problems.INVALID, f"estimates must be of at least {min_reporters} users."
            )
        table, place = store.estimates, {"campaign": name, "number": number}
        with self.lock, self._database.write() as connection:  # the last ones count
            connection.execute(delete(table).filter_by(**place))
            connection.execute(insert(table).values(**place, millionths=millionths))

    def all_reported(self, round_: RoundRecord) -> bool:
        """Return whether everyone in an open round has reported; for the schedule only."""
        _, plan = self.plan(round_.campaign, round_.number)
        query = select(func.count()).where(store.reports.c.round_id == round_.id)
        with self._database.read() as connection:
            return connection.scalar(query) == int((plan.arms >= 0).sum())

    def give_up(self, round_id: int, *, why: str) -> None:
        """Abandon an open round of which nothing can be released."""
        with self._database.read() as connection:
            table = store.rounds
            query = select(table.c.campaign).where(table.c.id == round_id)
            campaign: str = connection.execute(query).scalar_one()
        with self.change(campaign) as connection:
            if lock_state(connection, round_id) == OPEN:
                give_up(connection, round_id, now=self._clock(), why=why)

    def begin_by(self, round_: RoundRecord, *, now: int) -> RoundRecord | None:
        """Let rounds that began or ended in the future, by a wrong clock, have done so now."""
        table = store.rounds
        with self.change(round_.campaign) as connection:
            for column in (table.c.wanted_at, table.c.opened_at, table.c.closed_at):
                late = update(table).where(table.c.campaign == round_.campaign, column > now)
                connection.execute(late.values({column: now}))
        return self.latest(round_.campaign)


def find(connection: Connection, campaign: str, number: int, *, lock: bool = False) -> RoundRecord:
    """Return a round, or refuse its number; ``lock`` keeps others from changing it."""
    # Of rounds that were abandoned at once the last alone has a row, which stands for all of them.
    table = store.rounds
    query = select(*_COLUMNS).where(table.c.campaign == campaign, table.c.number >= number)
    query = query.order_by(table.c.number).limit(1)
    row = connection.execute(query.with_for_update() if lock else query).first()
    if row is None or number < 1 or (row.number > number and row.state != ABANDONED):
        last = latest(connection, campaign)
        rule = f"The last is round {last.number}" if last else "None was asked for yet"
        raise ProblemError(problems.UNKNOWN_ROUND, f"{rule}; got round {number}.")
    return replace(RoundRecord(*row), number=number)


def latest(connection: Connection, campaign: str) -> RoundRecord | None:
    """Return the last round, None before the first."""
    table = store.rounds
    query = select(*_COLUMNS).where(table.c.campaign == campaign)
    row = connection.execute(query.order_by(table.c.number.desc()).limit(1)).first()
    return None if row is None else RoundRecord(*row)


def lock_state(connection: Connection, round_id: int) -> str:
    """Return a round's state and keep others from changing it until the transaction ends."""
    table = store.rounds
    query = select(table.c.state).where(table.c.id == round_id)
    state: str = connection.execute(query.with_for_update()).scalar_one()
    return state


def load_plan(connection: Connection, round_id: int) -> FrozenPlan | None:
    """Return a round's frozen plan, None if it has none."""
    table = store.rounds
    query = select(table.c.arms, table.c.groups).where(table.c.id == round_id)
    row = connection.execute(query).one()
    if row.arms is None:
        return None
    return FrozenPlan(np.frombuffer(row.arms, np.int32), np.frombuffer(row.groups, np.int32))


def _load_latest(connection: Connection, campaign: str) -> RoundRecord | None:
    campaigns.require(connection, campaign)
    return latest(connection, campaign)


def _load_plan(connection: Connection, place: tuple[str, int]) -> tuple[int, FrozenPlan]:
    campaign, number = place
    campaigns.require(connection, campaign)
    round_ = find(connection, campaign, number)
    plan = load_plan(connection, round_.id)
    if plan is None:
        campaigns.require_running(connection, campaign)
        abandoned = round_.state == ABANDONED
        raise ProblemError(problems.ROUND_ABANDONED if abandoned else problems.ROUND_NOT_OPEN)
    return round_.id, plan


def _open(
    connection: Connection, round_id: int, plan: FrozenPlan, proposal: str, *, now: int
) -> None:
    row = {
        "state": OPEN,
        "plan_hash": plan.hash,
        "proposal": proposal,
        "arms": plan.arms.tobytes(),
        "groups": plan.groups.tobytes(),
        "opened_at": now,
    }
    connection.execute(update(store.rounds).where(store.rounds.c.id == round_id).values(row))


def abandon(connection: Connection, round_id: int, *, now: int) -> None:
    """Give a round up: delete what was gathered and never release anything."""
    delete_reports(connection, round_id)
    table = store.rounds
    abandoned = update(table).where(table.c.id == round_id)
    connection.execute(abandoned.values(state=ABANDONED, closed_at=now))


def give_up(connection: Connection, round_id: int, *, now: int, why: str) -> None:
    """Abandon an open round without being asked to, and say why in both logs."""
    abandon(connection, round_id, now=now)
    columns = store.rounds.c
    place = select(columns.campaign, columns.number).where(columns.id == round_id)
    campaign, number = connection.execute(place).one()
    log.warning("an open round is abandoned: %s", why)
    details = {"through": number, "rounds": 1, "state": OPEN, "why": why}
    audit_log.append(connection, "round.abandon", campaign=campaign, now=now, **details)


def delete_reports(connection: Connection, round_id: int) -> None:
    """Delete who has reported and the blinded sums."""
    for table in (store.reports, store.sum_blocks, store.sums):
        connection.execute(delete(table).where(table.c.round_id == round_id))
