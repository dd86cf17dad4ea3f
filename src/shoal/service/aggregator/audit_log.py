"""The audit log: who did what and when, append-only, each entry chained to the one before.

An entry is written in the transaction of the act that it is about: there is no act without one. It
says nothing of reports, whose time would show a reporter, nor of rewards, and it names no user.

The digest of an entry is the SHA-256 of the digest before it and of the entry as JSON. So an entry
that was changed, taken out or put in breaks the chain from there on. That the last ones were cut
off shows only beside a copy: an export, or the witness where there is one.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from hashlib import sha256
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, insert, select, text

from shoal.service.store import aggregator as store
from shoal.service.store import system_clock
from shoal.wire import AuditEntry

SERVICE = "(service)"  # no token can have such a name

ACTOR: ContextVar[str] = ContextVar("actor", default=SERVICE)
"""The name of the token behind a request; set where the token is checked."""

ORIGIN = bytes(32)  # what the first entry's digest is chained to
_LOCK = 0x73686F616C6C6F67  # PostgreSQL's, for as long as an entry's transaction
_PAGE = 1_000  # rows in memory while the chain is checked


def append(
    connection: Connection,
    action: str,
    *,
    campaign: str | None = None,
    now: int | None = None,
    **details: Any,
) -> None:
    """Add an entry, as the last statement of the act's transaction."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    table = store.audit
    query = select(table.c.number, table.c.digest).order_by(table.c.number.desc()).limit(1)
    last = connection.execute(query).first()
    row = {
        "number": last.number + 1 if last else 1,
        "at": system_clock() if now is None else now,
        "actor": ACTOR.get(),
        "action": action,
        "campaign": campaign,
        "details": msgspec.json.encode(details).decode(),
    }
    digest = _chain(bytes(last.digest) if last else ORIGIN, row)
    connection.execute(insert(table).values(**row, digest=digest))


def head(connection: Connection) -> tuple[int, bytes]:
    """Return the last entry's number and digest."""
    table = store.audit
    query = select(table.c.number, table.c.digest).order_by(table.c.number.desc()).limit(1)
    row = connection.execute(query).first()
    return (row.number, bytes(row.digest)) if row else (0, ORIGIN)


def digest_of(connection: Connection, number: int) -> bytes | None:
    """Return an entry's digest, None where there is no such entry."""
    table = store.audit
    digest = connection.scalar(select(table.c.digest).where(table.c.number == number))
    return None if digest is None else bytes(digest)


def read(
    connection: Connection, *, after: int = 0, limit: int, campaigns: frozenset[str] | None = None
) -> list[AuditEntry]:
    """Return entries in order, those of some ``campaigns`` only where they are named."""
    table = store.audit
    query = select(table).where(table.c.number > after).order_by(table.c.number).limit(limit)
    if campaigns is not None:
        query = query.where(table.c.campaign.in_(campaigns))
    return [_entry(row) for row in connection.execute(query)]


def read_last(
    connection: Connection, *, limit: int, campaigns: frozenset[str] | None = None
) -> list[AuditEntry]:
    """Return the last entries, the newest first."""
    table = store.audit
    query = select(table).order_by(table.c.number.desc()).limit(limit)
    if campaigns is not None:
        query = query.where(table.c.campaign.in_(campaigns))
    return [_entry(row) for row in connection.execute(query)]


def names_token(connection: Connection, name: str) -> bool:
    """Return whether an entry is about a token of that name: whether there ever was one."""
    table = store.audit
    about = (
        table.c.action.startswith("token."),
        table.c.details.contains(f'"token":"{name}"', autoescape=True),
    )
    return connection.execute(select(table.c.number).where(*about).limit(1)).first() is not None


def check(connection: Connection) -> Iterator[str]:
    """Yield what is wrong with the chain; it ends at the first fault, after which all differs."""
    before, table = ORIGIN, store.audit
    query = select(table).order_by(table.c.number).execution_options(yield_per=_PAGE)
    with connection.execute(query) as result:
        for number, row in enumerate(result, 1):
            if row.number != number:
                yield f"entry {number} is missing"
                return
            before = _chain(before, {name: row._mapping[name] for name in _FIELDS})
            if before != bytes(row.digest):
                yield f"entry {number} was changed"
                return


_FIELDS = ("number", "at", "actor", "action", "campaign", "details")


def _chain(before: bytes, row: dict[str, Any]) -> bytes:
    return sha256(before + msgspec.json.encode([row[name] for name in _FIELDS])).digest()


def _entry(row: Row[Any]) -> AuditEntry:
    details = msgspec.json.decode(row.details, type=dict[str, Any])
    place = row.number, row.at, row.actor, row.action, row.campaign
    return AuditEntry(*place, details, bytes(row.digest).hex())
