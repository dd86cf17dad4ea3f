"""Sessions: a random cookie in the browser, its hash in the store, and a token behind it.

A session has no rights of its own: every request looks up its token, so a token that was revoked
or replaced ends its sessions at once.
"""

import hmac
import secrets
from collections import Counter
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import delete, insert, select

from shoal.service.aggregator import Aggregator, audit_log
from shoal.service.aggregator.audit_log import ACTOR
from shoal.service.aggregator.tokens import Holder
from shoal.service.store import HOUR
from shoal.service.store import aggregator as store
from shoal.wire import Role

LIFETIME = 12 * HOUR
READER_ROLES: tuple[Role, ...] = ("operator", "analyst")  # that see campaigns
VIEWER_ROLES: tuple[Role, ...] = ("admin", *READER_ROLES)
MAX_FAILURES = 10  # a minute, from one address
MINUTE = 60_000

_table = store.sessions


@dataclass(frozen=True, slots=True)
class Session:
    """Someone who has logged in: the token, and the secret in the cookie."""

    holder: Holder
    secret: str

    @property
    def token(self) -> str:
        """Return the token's name."""
        return self.holder.name

    @property
    def role(self) -> Role:
        """Return the token's role."""
        return self.holder.role

    @property
    def csrf(self) -> str:
        """Return the value that this session's forms carry and nobody else can know."""
        return hmac.new(self.secret.encode(), b"form", sha256).hexdigest()

    def accepts(self, csrf: str) -> bool:
        """Return whether a form with this value is from a page of this session."""
        return hmac.compare_digest(csrf.encode(), self.csrf.encode())


def begin_session(aggregator: Aggregator, token: str) -> Session | None:
    """Log in with a token, None if it is not known or its role has no pages."""
    holder = aggregator.access.holder(token)
    if holder is None or holder.role not in VIEWER_ROLES:
        return None
    secret, now = secrets.token_urlsafe(32), aggregator.clock()
    row = {
        "digest": _digest(secret), "token": holder.name, "token_digest": holder.digest,
        "expires_at": now + LIFETIME,
    }  # fmt: skip
    with aggregator.database.write() as connection:
        connection.execute(delete(_table).where(_table.c.expires_at <= now))
        connection.execute(insert(_table), row)
        ACTOR.set(holder.name)
        audit_log.append(connection, "session.begin", now=now)
    return Session(holder, secret)


def read_session(aggregator: Aggregator, secret: str) -> Session | None:
    """Return the session of a cookie, None if it is over."""
    with aggregator.database.read() as connection:
        query = select(_table).where(_table.c.digest == _digest(secret))
        row = connection.execute(query).one_or_none()
    if row is None or row.expires_at <= aggregator.clock():
        return None
    holder = aggregator.access.find(row.token, bytes(row.token_digest))
    return Session(holder, secret) if holder and holder.role in VIEWER_ROLES else None


def end_session(aggregator: Aggregator, secret: str) -> None:
    """Log out."""
    with aggregator.database.write() as connection:
        connection.execute(delete(_table).where(_table.c.digest == _digest(secret)))


class LoginAttempts:
    """Counts failed logins by address in each minute, so that nobody guesses quickly.

    Only the event loop uses it.
    """

    def __init__(self) -> None:
        self._minute = 0
        self._failures: Counter[str] = Counter()

    def too_many(self, address: str, now: int) -> bool:
        """Return whether an address must wait for the next minute."""
        return now // MINUTE == self._minute and self._failures[address] >= MAX_FAILURES

    def add_failure(self, address: str, now: int) -> None:
        """Count a failed login."""
        if now // MINUTE != self._minute:
            self._minute = now // MINUTE
            self._failures.clear()
        self._failures[address] += 1


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
