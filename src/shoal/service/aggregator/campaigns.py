"""Campaigns and who sits in their seats. Both belong to the operator, never to the learner."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import Connection, bindparam, insert, select, update

from shoal.arrays import BoolArray
from shoal.service.aggregator import arms
from shoal.service.campaign import Campaign
from shoal.service.problems import CAMPAIGN_EXISTS, CAMPAIGN_FULL, UNKNOWN_CAMPAIGN, ProblemError
from shoal.service.store import aggregator as store


@dataclass
class Roster:
    """The seats of a campaign, in memory: O(1) from a user to a seat."""

    version: int = 0
    users: list[str] = field(default_factory=list)  # by seat
    seats: dict[str, int] = field(default_factory=dict)
    active: list[bool] = field(default_factory=list)  # by seat

    def occupied(self, n_seats: int) -> BoolArray:
        """Return which of all seats hold an active user, (n_seats,)."""
        mask = np.zeros(n_seats, bool)
        mask[: len(self.active)] = self.active
        return mask

    def apply(self, join: list[str], leave: list[str], *, erase: bool, version: int) -> None:
        """Take in what was stored."""
        self.version = version
        for user in leave:
            seat = self.seats.get(user)
            if seat is not None:
                self.active[seat] = False
                if erase:
                    self.users[seat] = erased(seat)
                    del self.seats[user]
        for user in join:
            if user not in self.seats:
                self.seats[user] = len(self.users)
                self.users.append(user)
                self.active.append(True)
            self.active[self.seats[user]] = True


def erased(seat: int) -> str:
    """Return what stands for the name of a user who was erased; no user can have it."""
    return f"(erased {seat})"


def create(connection: Connection, name: str, campaign: Campaign, *, now: int) -> bool:
    """Store a campaign; return False where the same one is there already."""
    known = connection.scalar(
        select(store.campaigns.c.definition).where(store.campaigns.c.name == name)
    )
    if known is not None:
        if Campaign.model_validate_json(known) != campaign:
            raise ProblemError(CAMPAIGN_EXISTS)
        return False
    definition = campaign.model_dump_json()
    row = {"name": name, "definition": definition, "roster": 0, "created_at": now}
    connection.execute(insert(store.campaigns).values(row))
    arms.insert_arms(connection, name, campaign.arms, first=0, since=1)
    return True


def load(connection: Connection, name: str) -> Campaign:
    """Return a campaign with all arms that it has ever had, or refuse the name."""
    definition = connection.scalar(
        select(store.campaigns.c.definition).where(store.campaigns.c.name == name)
    )
    if definition is None:
        raise ProblemError(UNKNOWN_CAMPAIGN)
    names = [arm.name for arm in arms.load(connection, name)]
    return Campaign.model_validate_json(definition).model_copy(update={"arms": names})


def names(connection: Connection) -> list[str]:
    """Return the names of all campaigns, in order."""
    return list(connection.scalars(select(store.campaigns.c.name).order_by("name")))


def load_roster(connection: Connection, name: str) -> Roster:
    """Read who sits where."""
    table = store.seats
    version = connection.scalar(
        select(store.campaigns.c.roster).where(store.campaigns.c.name == name)
    )
    rows = connection.execute(
        select(table.c.user_id, table.c.active)
        .where(table.c.campaign == name)
        .order_by(table.c.seat)
    ).all()
    users = [row[0] for row in rows]
    places = {user: seat for seat, user in enumerate(users) if user != erased(seat)}
    return Roster(version or 0, users, places, [row[1] for row in rows])


def enrol(
    connection: Connection, name: str, campaign: Campaign, roster: Roster, users: list[str]
) -> int:
    """Give each new user the next seat and returning ones their own; return how many changed."""
    table = store.seats
    wanted = dict.fromkeys(users)
    new = [user for user in wanted if user not in roster.seats]
    if len(roster.users) + len(new) > campaign.seats:
        raise ProblemError(CAMPAIGN_FULL)
    back = [
        user for user in wanted if user in roster.seats and not roster.active[roster.seats[user]]
    ]
    if new:
        first = len(roster.users)
        connection.execute(
            insert(table),
            [
                {"campaign": name, "seat": first + i, "user_id": user, "active": True}
                for i, user in enumerate(new)
            ],
        )
    _set_active(connection, name, back, active=True)
    _next_version(connection, name, len(new) + len(back))
    return len(new) + len(back)


def withdraw(connection: Connection, name: str, roster: Roster, users: list[str]) -> int:
    """Let users leave from the next round on; their seats stay theirs."""
    gone = [u for u in dict.fromkeys(users) if u in roster.seats and roster.active[roster.seats[u]]]
    _set_active(connection, name, gone, active=False)
    _next_version(connection, name, len(gone))
    return len(gone)


def erase(connection: Connection, name: str, roster: Roster, users: list[str]) -> None:
    """Forget the names of users; their seats are never given to anyone else."""
    table = store.seats
    rows = [
        {"one": roster.seats[user], "nobody": erased(roster.seats[user])}
        for user in dict.fromkeys(users)
        if user in roster.seats
    ]
    if rows:
        place = (table.c.campaign == name, table.c.seat == bindparam("one"))
        connection.execute(update(table).where(*place).values(user_id=bindparam("nobody")), rows)


def _set_active(connection: Connection, name: str, users: list[str], *, active: bool) -> None:
    table = store.seats
    for start in range(0, len(users), 500):
        connection.execute(
            update(table)
            .where(table.c.campaign == name, table.c.user_id.in_(users[start : start + 500]))
            .values(active=active)
        )


def _next_version(connection: Connection, name: str, changes: int) -> None:
    if changes:
        table = store.campaigns
        connection.execute(
            update(table).where(table.c.name == name).values(roster=table.c.roster + 1)
        )
