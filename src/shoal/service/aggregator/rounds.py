"""A round's life: wanted, open with a frozen plan, released; or abandoned, never to be released.

The plan is frozen by its hash before the first report, and is checked by the ``Plan`` type: each
group has one arm and at least C users, and a seat is in one group at most, because a plan is one
group number per seat (threats 4 and 5).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, delete, func, insert, select, update

from shoal.arrays import BoolArray, IntArray
from shoal.errors import InvalidInputError
from shoal.model import Plan
from shoal.service.campaign import Campaign, plan_hash
from shoal.service.problems import (
    CAMPAIGN_OVER,
    PLAN_FROZEN,
    PLAN_REFUSED,
    ROSTER_CHANGED,
    ROUND_NOT_OPEN,
    ROUND_ORDER,
    UNKNOWN_ROUND,
    ProblemError,
)
from shoal.service.store import aggregator as store

WANTED, OPEN, RELEASED, ABANDONED = "wanted", "open", "released", "abandoned"


@dataclass(frozen=True, slots=True)
class Round:
    """A round without its plan."""

    id: int
    campaign: str
    number: int
    state: str
    plan_hash: str | None
    wanted_at: int
    opened_at: int | None
    closed_at: int | None


@dataclass(frozen=True, slots=True, eq=False)
class FrozenPlan:
    """A frozen plan: each seat's arm (-1: no part in the round) and group (-1: none)."""

    arms: IntArray
    groups: IntArray

    @property
    def hash(self) -> str:
        """Return the hash by which the plan is frozen."""
        return plan_hash(self.arms, self.groups)

    def check(self, campaign: Campaign, occupied: BoolArray, offered: BoolArray) -> None:
        """Refuse a plan that breaks anonymity, counts empty seats or plays arms not on offer."""
        if self.arms.shape != (campaign.seats,) or self.groups.shape != (campaign.seats,):
            raise ProblemError(PLAN_REFUSED)
        if not np.array_equal(self.arms >= 0, occupied):
            raise ProblemError(ROSTER_CHANGED)
        if (self.groups[~occupied] != -1).any():
            raise ProblemError(PLAN_REFUSED)
        try:
            Plan(np.maximum(self.arms, 0), self.groups, problem=campaign.problem())
        except InvalidInputError:
            raise ProblemError(PLAN_REFUSED) from None
        if not offered[self.arms[occupied]].all():
            raise ProblemError(PLAN_REFUSED)


_COLUMNS = [
    store.rounds.c[name]
    for name in (
        "id", "campaign", "number", "state", "plan_hash", "wanted_at", "opened_at", "closed_at",
    )
]  # fmt: skip


def find(connection: Connection, campaign: str, number: int, *, lock: bool = False) -> Round:
    """Return a round, or refuse its number; ``lock`` keeps others from changing it."""
    table = store.rounds
    query = select(*_COLUMNS).where(table.c.campaign == campaign, table.c.number == number)
    row = connection.execute(query.with_for_update() if lock else query).first()
    if row is None:
        raise ProblemError(UNKNOWN_ROUND)
    return Round(**row._asdict())


def state(connection: Connection, round_id: int) -> str:
    """Return a round's state and keep others from changing it until the transaction ends."""
    table = store.rounds
    query = select(table.c.state).where(table.c.id == round_id)
    found: str = connection.execute(query.with_for_update()).scalar_one()
    return found


def latest(connection: Connection, campaign: str) -> Round | None:
    """Return the last round, None before the first."""
    table = store.rounds
    query = select(*_COLUMNS).where(table.c.campaign == campaign)
    row = connection.execute(query.order_by(table.c.number.desc()).limit(1)).first()
    return None if row is None else Round(**row._asdict())


def want(connection: Connection, name: str, campaign: Campaign, number: int, *, now: int) -> bool:
    """Ask for the next round; return False where it is there already."""
    last = latest(connection, name)
    if last is not None and number <= last.number and number >= 1:
        return False
    if number != (last.number if last else 0) + 1:
        raise ProblemError(ROUND_ORDER)
    if last is not None and last.state in (WANTED, OPEN):
        raise ProblemError(ROUND_ORDER)
    if campaign.horizon is not None and number > campaign.horizon:
        raise ProblemError(CAMPAIGN_OVER)
    row = {"campaign": name, "number": number, "state": WANTED, "wanted_at": now}
    connection.execute(insert(store.rounds).values(row))
    return True


def freeze(
    connection: Connection,
    round_: Round,
    plan: FrozenPlan,
    campaign: Campaign,
    occupied: BoolArray,
    offered: BoolArray,
    *,
    now: int,
) -> bool:
    """Open a wanted round with its plan; return False where the same plan is frozen already."""
    if round_.plan_hash is not None:
        if round_.plan_hash != plan.hash:
            raise ProblemError(PLAN_FROZEN)
        return False
    if round_.state != WANTED:
        raise ProblemError(ROUND_NOT_OPEN)
    plan.check(campaign, occupied, offered)
    table = store.rounds
    connection.execute(
        update(table)
        .where(table.c.id == round_.id)
        .values(
            state=OPEN,
            plan_hash=plan.hash,
            arms=plan.arms.tobytes(),
            groups=plan.groups.tobytes(),
            opened_at=now,
        )
    )
    return True


def begin_by(connection: Connection, round_id: int, *, now: int) -> None:
    """Let a round that began in the future, by a clock that was wrong, begin now."""
    table = store.rounds
    for column in (table.c.wanted_at, table.c.opened_at):
        connection.execute(
            update(table).where(table.c.id == round_id, column > now).values({column: now})
        )


def load_plan(connection: Connection, round_id: int) -> FrozenPlan | None:
    """Return a round's frozen plan, None if it has none."""
    table = store.rounds
    row = connection.execute(
        select(table.c.arms, table.c.groups).where(table.c.id == round_id)
    ).one()
    if row.arms is None:
        return None
    return FrozenPlan(np.frombuffer(row.arms, np.int32), np.frombuffer(row.groups, np.int32))


def abandon(connection: Connection, round_id: int, *, now: int) -> None:
    """Give a round up: what was gathered is forgotten, nothing is ever released."""
    forget(connection, round_id)
    table = store.rounds
    connection.execute(
        update(table).where(table.c.id == round_id).values(state=ABANDONED, closed_at=now)
    )


def forget(connection: Connection, round_id: int) -> None:
    """Delete who has reported and the blinded sums."""
    for table in (store.reports, store.sums):
        connection.execute(delete(table).where(table.c.round_id == round_id))


def n_reports(connection: Connection, round_id: int) -> int:
    """Return how many users have reported in an open round; never told to anyone."""
    table = store.reports
    query = select(func.count()).select_from(table).where(table.c.round_id == round_id)
    return connection.scalar(query) or 0
