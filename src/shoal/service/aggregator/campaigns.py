"""Campaigns, their arms and the users in their seats: the operator's, never the learner's.

They are kept in memory, as this process alone changes them. An arm has a slot for good, and the
rounds that may play it are settled when a round is asked for: a change counts from the round after.
So what may be played in a round follows from the store alone, and what was learnt in a slot is
always about one arm.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection, bindparam, insert, select, update

from shoal.arrays import BoolArray, IntArray, WholeArray
from shoal.policies.tuned import resolve_options
from shoal.service import problems
from shoal.service.aggregator import audit_log
from shoal.service.aggregator.cache import Cache
from shoal.service.aggregator.holdout import NO_BLOCKS, draw_blocks
from shoal.service.campaign import Campaign
from shoal.service.problems import ProblemError
from shoal.service.store import Clock, Database
from shoal.service.store import aggregator as store
from shoal.wire import ArmState, Moved

ARCHIVED, DELETED = "archived", "deleted"
_CHUNK = 500  # users in one statement
_SEATS_AT_ONCE = 10_000  # that become Python numbers: a page needs few of them


def offered(arms: Sequence[ArmState], number: int, n_slots: int) -> BoolArray:
    """Return which slots a round may play, (n_slots,).

    >>> offered([ArmState("a", 1, None), ArmState("b", 1, 3)], 3, 3).tolist()
    [True, False, False]
    """
    mask = np.zeros(n_slots, bool)
    for slot, arm in enumerate(arms):
        mask[slot] = arm.since <= number and (arm.until is None or number < arm.until)
    return mask


def _insert_arms(
    connection: Connection, campaign: str, names: Iterable[str], *, first: int, since: int
) -> None:
    """Give arms the slots from ``first`` on."""
    rows = [
        {"campaign": campaign, "slot": slot, "name": name, "since": since}
        for slot, name in enumerate(names, first)
    ]
    connection.execute(insert(store.arms), rows)


@dataclass
class SeatedUsers:
    """The seats of a campaign, in memory: O(1) from a user to a seat."""

    users: list[str] = field(default_factory=list)  # by seat
    seats: dict[str, int] = field(default_factory=dict)
    active: list[bool] = field(default_factory=list)  # by seat
    files: dict[int, tuple[bytes, str]] = field(default_factory=dict)  # by round, with their tags

    def occupied(self, n_seats: int) -> BoolArray:
        """Return which of all seats hold an active user, (n_seats,)."""
        mask = np.zeros(n_seats, bool)
        mask[: len(self.active)] = self.active
        return mask

    def named(self, arms: IntArray, *, after: int = 0) -> Iterator[int]:
        """Return the seats from ``after`` on that play an arm and whose users are not erased."""
        playing = np.flatnonzero(arms[after:] >= 0) + after
        for start in range(0, len(playing), _SEATS_AT_ONCE):
            for seat in playing[start : start + _SEATS_AT_ONCE].tolist():
                if self.seats.get(self.users[seat]) == seat:
                    yield seat

    def select(self, users: Iterable[str], *, active: bool) -> list[str]:
        """Return those of the users, each once, who have a seat and are active, or are not."""
        seated = (user for user in dict.fromkeys(users) if user in self.seats)
        return [user for user in seated if self.active[self.seats[user]] == active]

    def apply(self, join: list[str], leave: list[str], *, erase: bool) -> None:
        """Follow a change that is stored."""
        self.files.clear()  # names may go
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
    """Return what replaces the name of a user who was erased; no user can have that name."""
    return f"(erased {seat})"


class Directory:
    """All campaigns, none with a C below ``floor``, their arms and their users."""

    def __init__(self, database: Database, *, floor: int, clock: Clock) -> None:
        self._database = database
        self.floor = floor
        self._clock = clock
        self.lock = threading.RLock()  # for changes; a look-up waits for none
        self._campaigns: Cache[str, tuple[Campaign, list[ArmState]]] = Cache(database, load)
        self._rosters: Cache[str, SeatedUsers] = Cache(database, _load_roster)
        self._blocks: Cache[str, WholeArray] = Cache(database, load_blocks)

    def create(self, name: str, campaign: Campaign) -> bool:
        """Store a campaign for good; return False where the same one is there already.

        The policy's tuned options, and how groups are drawn, become part of it where it does not
        say so itself.
        """
        options = resolve_options(campaign.policy, campaign.options)
        tuned = campaign.model_copy(update={"options": options})
        tuned = tuned.resolved()
        if campaign.min_group_size < self.floor:
            rule = f"It must be at least {self.floor}; got {campaign.min_group_size}."
            raise ProblemError(problems.GROUP_FLOOR, rule)
        with self.lock, self._database.write() as connection:
            if ending_of(connection, name) == DELETED:
                raise ProblemError(problems.CAMPAIGN_DELETED, f"Got {name!r}: take another name.")
            definition = _definition(connection, name)
            if definition is not None:
                present = Campaign.model_validate_json(definition)
                if present not in (tuned, campaign):
                    raise ProblemError(problems.CAMPAIGN_EXISTS, _difference(name, present, tuned))
                return False
            definition = tuned.model_dump_json()
            row = {"name": name, "definition": definition, "roster": 0, "created_at": self._clock()}
            if tuned.holdout:
                row["holdout"] = draw_blocks(tuned.seats, tuned.n_held_out).tobytes()
            connection.execute(insert(store.campaigns).values(row))
            _insert_arms(connection, name, campaign.arms, first=0, since=1)
            promise = {"min_group_size": campaign.min_group_size, "colluders": campaign.colluders}
            self._note(connection, "campaign.create", name, **promise)
        return True

    def _note(self, connection: Connection, action: str, name: str, **details: Any) -> None:
        audit_log.append(connection, action, campaign=name, now=self._clock(), **details)

    def names(self) -> list[str]:
        """Return all campaigns' names."""
        with self._database.read() as connection:
            return names(connection)

    def is_deleted(self, name: str) -> bool:
        """Return whether there was a campaign of that name."""
        with self._database.read() as connection:
            return ending_of(connection, name) == DELETED

    def is_archived(self, name: str) -> bool:
        """Return whether a campaign has ended."""
        with self._database.read() as connection:
            return ending_of(connection, name) == ARCHIVED

    def archived(self) -> set[str]:
        """Return the names of the campaigns that were archived."""
        table = store.campaigns
        with self._database.read() as connection:
            return set(connection.scalars(select(table.c.name).where(table.c.ending == ARCHIVED)))

    def created_at(self, name: str) -> int:
        """Return when a campaign was created."""
        table = store.campaigns
        with self._database.read() as connection:
            query = select(table.c.created_at).where(table.c.name == name)
            return int(connection.execute(query).scalar_one())

    def drop(self, name: str) -> None:
        """Forget what is in memory of a campaign."""
        for cache in (self._campaigns, self._rosters, self._blocks):
            cache.drop(name)

    def campaign(self, name: str) -> Campaign:
        """Return a campaign with all arms that it has ever had, or refuse the name."""
        return self._campaigns.get(name)[0]

    def blocks(self, name: str) -> WholeArray:
        """Return who is held out, and in which block."""
        return self._blocks.get(name)

    def arms(self, name: str) -> list[ArmState]:
        """Return all arms that a campaign has ever had, by slot."""
        return self._campaigns.get(name)[1]

    def add_arm(self, name: str, arm: str, *, number: int) -> bool:
        """Offer a new arm from round ``number`` on; return False where it is offered already."""
        with self.lock, self._campaigns.write(name) as connection:
            campaign, known = load(connection, name)
            require_running(connection, name)
            until = {state.name: state.until for state in known}
            if until.get(arm) is not None:
                raise ProblemError(problems.ARM_RETIRED, f"Got {arm!r}: take another name.")
            if arm in until:
                return False
            if len(known) >= campaign.n_arms:
                raise ProblemError(problems.ARMS_FULL, f"arm_slots is {campaign.n_arms}.")
            _insert_arms(connection, name, [arm], first=len(known), since=number)
            self._note(connection, "arm.add", name, arm=arm, since=number)
        return True

    def retire_arm(self, name: str, arm: str, *, number: int) -> bool:
        """Play an arm no more from round ``number`` on; False where it is retired already."""
        with self.lock, self._campaigns.write(name) as connection:
            campaign, known = load(connection, name)
            require_running(connection, name)
            until = {state.name: state.until for state in known}
            if arm not in until:
                raise ProblemError(problems.UNKNOWN_ARM, f"Got {arm!r}.")
            if until[arm] is not None:
                return False
            if not campaign.is_flexible():
                raise ProblemError(problems.ARMS_FIXED, f"It is {campaign.policy!r}.")
            if list(until.values()).count(None) == 1:
                raise ProblemError(problems.LAST_ARM, f"Got {arm!r}.")
            table = store.arms
            of_arm = (table.c.campaign == name, table.c.name == arm)
            connection.execute(update(table).where(*of_arm).values(until=number))
            self._note(connection, "arm.retire", name, arm=arm, until=number)
        return True

    def roster(self, name: str) -> SeatedUsers:
        """Return the users and their seats, or refuse the name."""
        return self._rosters.get(name)

    def fetch(self, name: str) -> None:
        """Load a campaign and its roster."""
        self._campaigns.get(name)
        self._rosters.get(name)

    def is_cached(self, name: str) -> bool:
        """Return whether a campaign and its roster are in memory."""
        return name in self._campaigns and name in self._rosters

    def enrol(self, name: str, users: list[str]) -> int:
        """Let users join from the next round on; return how many are new or back."""
        return self.move(name, users, []).joined

    def move(self, name: str, join: list[str], leave: list[str], *, erase: bool = False) -> Moved:
        """Let users join and leave from the next round on, all or nobody; return how many did.

        New users get the next seats, returning ones their former seats. Whoever joins and leaves
        stays. With ``erase``, the names of those who leave, or have left before, are deleted:
        their seats stay empty for good.
        """
        staying = set(join)
        leave = [user for user in leave if user not in staying]
        with self.lock:
            roster = self.roster(name)
            new = [user for user in dict.fromkeys(join) if user not in roster.seats]
            n_seats = self.campaign(name).seats
            n_free = n_seats - len(roster.users)
            if len(new) > n_free:
                with self._database.read() as connection:
                    require_running(connection, name)
                rule = f"New users must be at most {n_free:,} of its {n_seats:,}; got {len(new):,}."
                raise ProblemError(problems.CAMPAIGN_FULL, rule)
            returning = roster.select(join, active=False)
            leaving = roster.select(leave, active=True)
            unknown = [user for user in dict.fromkeys(leave) if user not in roster.seats]
            with self._rosters.write(name, keep=True) as connection:
                require_running(connection, name)
                _set_active(connection, name, leaving, active=False)
                _insert_users(connection, name, new, first=len(roster.users))
                _set_active(connection, name, returning, active=True)
                _count_changes(connection, name, bool(leaving) + bool(new or returning))
                seats = {roster.seats[user] for user in leave if user in roster.seats and erase}
                _erase(connection, name, seats)
                joined = len(new) + len(returning)
                if joined or leaving or seats:
                    counts = {"joined": joined, "left": len(leaving), "erased": len(seats)}
                    self._note(connection, "users.move", name, **counts)
            roster.apply(join, leave, erase=erase)
            self._rosters.put(name, roster)
        return Moved(joined, len(leaving), len(seats), unknown)


def names(connection: Connection) -> list[str]:
    """Return the names of all campaigns, in order."""
    table = store.campaigns
    query = select(table.c.name).where(table.c.definition != "").order_by("name")
    return list(connection.scalars(query))


def ending_of(connection: Connection, name: str) -> str | None:
    """Return how a campaign has ended, None for one that has not or is not there."""
    table = store.campaigns
    return connection.scalar(select(table.c.ending).where(table.c.name == name))


def source_of(connection: Connection, campaign: str) -> str | None:
    """Return the token that reports in a campaign, None before the first report."""
    table = store.campaigns
    return connection.scalar(select(table.c.source).where(table.c.name == campaign))


def require_running(connection: Connection, name: str) -> None:
    """Refuse a campaign that was archived."""
    if ending_of(connection, name) == ARCHIVED:
        raise ProblemError(problems.CAMPAIGN_ARCHIVED, f"Got {name!r}.")


def load(connection: Connection, name: str) -> tuple[Campaign, list[ArmState]]:
    """Return a campaign and all arms that it has ever had, by slot, or refuse the name."""
    definition = require(connection, name)
    table = store.arms
    query = select(table.c.name, table.c.since, table.c.until).where(table.c.campaign == name)
    known = [ArmState(*row) for row in connection.execute(query.order_by(table.c.slot))]
    changed = {"arms": [arm.name for arm in known]}
    return Campaign.model_validate_json(definition).model_copy(update=changed), known


def load_blocks(connection: Connection, name: str) -> WholeArray:
    """Return who is held out of a campaign, and in which block."""
    table = store.campaigns
    packed = connection.scalar(select(table.c.holdout).where(table.c.name == name))
    return np.frombuffer(packed, np.int8) if packed else NO_BLOCKS


def require(connection: Connection, name: str) -> str:
    """Return a campaign's stored definition, or refuse the name."""
    definition = _definition(connection, name)
    if definition is None:
        raise ProblemError(problems.UNKNOWN_CAMPAIGN, f"Got {name!r}.")
    return definition


def _definition(connection: Connection, name: str) -> str | None:
    table = store.campaigns
    definition = connection.scalar(select(table.c.definition).where(table.c.name == name))
    return definition or None  # of one that was deleted, nothing is left


def _difference(name: str, present: Campaign, other: Campaign) -> str:
    """Return in which fields a definition differs from a stored one."""
    stored, sent = present.model_dump(), other.model_dump()
    fields = ", ".join(field for field in stored if stored[field] != sent[field])
    return f"{name!r} differs in {fields}."


def _load_roster(connection: Connection, name: str) -> SeatedUsers:
    require(connection, name)
    table = store.seats
    query = select(table.c.user_id, table.c.active).where(table.c.campaign == name)
    rows = connection.execute(query.order_by(table.c.seat)).all()
    users = [row[0] for row in rows]
    seats = {user: seat for seat, user in enumerate(users) if user != erased(seat)}
    return SeatedUsers(users, seats, [row[1] for row in rows])


def _insert_users(connection: Connection, name: str, users: list[str], *, first: int) -> None:
    rows = [
        {"campaign": name, "seat": seat, "user_id": user, "active": True}
        for seat, user in enumerate(users, first)
    ]
    if rows:
        connection.execute(insert(store.seats), rows)


def _set_active(connection: Connection, name: str, users: list[str], *, active: bool) -> None:
    table = store.seats
    for start in range(0, len(users), _CHUNK):
        chunk = (table.c.campaign == name, table.c.user_id.in_(users[start : start + _CHUNK]))
        connection.execute(update(table).where(*chunk).values(active=active))


def _count_changes(connection: Connection, name: str, n_changes: int) -> None:
    table = store.campaigns
    if n_changes:
        value = table.c.roster + n_changes
        connection.execute(update(table).where(table.c.name == name).values(roster=value))


def _erase(connection: Connection, name: str, seats: Iterable[int]) -> None:
    table = store.seats
    rows = [{"one": seat, "nobody": erased(seat)} for seat in seats]
    if rows:
        place = (table.c.campaign == name, table.c.seat == bindparam("one"))
        connection.execute(update(table).where(*place).values(user_id=bindparam("nobody")), rows)
