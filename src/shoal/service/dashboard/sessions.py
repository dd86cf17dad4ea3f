"""Sessions: a random cookie in the browser, its hash in the store, and a token behind it.

A session has no rights of its own. At every request its token is looked up anew: a token that was
revoked or replaced ends its sessions at once.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import delete, insert, select

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.tokens import Role
from shoal.service.clock import HOUR
from shoal.service.store import aggregator as store

LIFE = 12 * HOUR
ROLES: tuple[Role, ...] = ("operator", "analyst")
MOST_FAILURES = 10  # a minute, from one address
MINUTE = 60_000


@dataclass(frozen=True, slots=True)
class Session:
    """Someone who has logged in: the token's name and role, and the secret in the cookie."""

    token: str
    role: Role
    secret: str

    @property
    def csrf(self) -> str:
        """Return what a form of this session carries; nobody else can know it."""
        return hmac.new(self.secret.encode(), b"form", sha256).hexdigest()

    def signed(self, given: str) -> bool:
        """Return whether a form is this session's own."""
        return hmac.compare_digest(given.encode(), self.csrf.encode())


class Sessions:
    """The sessions of one store."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator

    def begin(self, token: str) -> Session | None:
        """Log in with a token, None if it is not known or its role has no pages."""
        holder = self._aggregator.access.holder(token)
        if holder is None or holder.role not in ROLES:
            return None
        secret, now = secrets.token_urlsafe(32), self._aggregator.clock()
        row = {
            "digest": _digest(secret),
            "token": holder.name,
            "token_digest": holder.digest,
            "expires_at": now + LIFE,
        }
        table = store.sessions
        with self._aggregator.database.write() as connection:
            connection.execute(delete(table).where(table.c.expires_at <= now))
            connection.execute(insert(table).values(row))
        return Session(holder.name, holder.role, secret)

    def find(self, secret: str) -> Session | None:
        """Return the session of a cookie, None if it is over."""
        table = store.sessions
        with self._aggregator.database.read() as connection:
            row = connection.execute(
                select(table).where(table.c.digest == _digest(secret))
            ).one_or_none()
        if row is None or row.expires_at <= self._aggregator.clock():
            return None
        role = self._aggregator.access.still(row.token, bytes(row.token_digest))
        return Session(row.token, role, secret) if role in ROLES else None

    def end(self, secret: str) -> None:
        """Log out."""
        table = store.sessions
        with self._aggregator.database.write() as connection:
            connection.execute(delete(table).where(table.c.digest == _digest(secret)))


class Attempts:
    """Counts failed logins by address, a minute at a time, so that nobody guesses quickly."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._minute = 0
        self._failures: dict[str, int] = {}

    def too_many(self, address: str, now: int) -> bool:
        """Return whether an address must wait for the next minute."""
        with self._lock:
            self._turn(now)
            return self._failures.get(address, 0) >= MOST_FAILURES

    def failed(self, address: str, now: int) -> None:
        """Count a failure."""
        with self._lock:
            self._turn(now)
            self._failures[address] = self._failures.get(address, 0) + 1

    def _turn(self, now: int) -> None:
        if now // MINUTE != self._minute:
            self._minute = now // MINUTE
            self._failures.clear()


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
