"""Tokens: bound to a role and to campaigns, with an end, stored as hashes.

A token is known by its name. Rotating it gives it a new secret, and the former one works for a
while beside it. A token of another name may succeed it: once the successor has reported in a
campaign, the one before it may not (``report_queue``).

Only the day of a token's last use is kept: the time of a report would show a reporter.
"""

import hmac
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, get_args

import msgspec
from sqlalchemy import Connection, delete, insert, select, update

from shoal.errors import InvalidInputError
from shoal.service import problems
from shoal.service.aggregator import audit_log
from shoal.service.aggregator.cache import Cache
from shoal.service.problems import ProblemError
from shoal.service.store import DAY, Clock, Database, system_clock
from shoal.service.store import aggregator as store
from shoal.wire import EVERY_CAMPAIGN, Role, TokenRecord

ROLES: tuple[Role, ...] = get_args(Role)

_SECRET_LENGTH = 43  # characters, for 32 random bytes
_NO_DIGEST = sha256(b"").digest()


@dataclass(frozen=True, slots=True)
class Holder:
    """A token without its secret; ``campaigns`` is None for all of them."""

    name: str
    role: Role
    digest: bytes
    campaigns: frozenset[str] | None = None
    created_at: int | None = None
    expires_at: int | None = None
    last_used: int | None = None
    succeeds: str | None = None
    former_digest: bytes | None = None
    former_until: int = 0

    def covers(self, campaign: str) -> bool:
        """Return whether the token is bound to a campaign."""
        return self.campaigns is None or campaign in self.campaigns

    def record(self, campaigns: frozenset[str] | None = None) -> TokenRecord:
        """Return what may be shown of it to a token of ``campaigns``, None for all of them."""
        scope = self.campaigns
        if scope is not None and campaigns is not None:
            scope &= campaigns
        return TokenRecord(
            self.role, scope_names(scope), self.created_at, self.expires_at, self.last_used,
            self.succeeds,
        )  # fmt: skip


def scope_names(campaigns: frozenset[str] | None) -> list[str]:
    """Return the campaigns of a token as they are written down."""
    return [EVERY_CAMPAIGN] if campaigns is None else sorted(campaigns)


def new_token(name: str) -> str:
    """Return a token that nobody knows yet."""
    return f"shoal.{name}.{secrets.token_urlsafe(32)}"


class Access:
    """The tokens of a store; a look-up waits for no change."""

    def __init__(self, database: Database, clock: Clock = system_clock) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()  # for changes
        self._holders: Cache[None, dict[str, Holder]] = Cache(database, _load)
        self._days: dict[str, int] = {}  # of tokens' last uses, those not stored among them

    def issue(
        self,
        name: str,
        role: Role,
        *,
        campaigns: Sequence[str] = (EVERY_CAMPAIGN,),
        expires_at: int | None = None,
        succeeds: str | None = None,
    ) -> str:
        """Make a token, in place of any of the same name; it is returned once, never stored."""
        token = new_token(name)
        self.adopt(name, role, token, campaigns=campaigns, expires_at=expires_at, succeeds=succeeds)
        return token

    def adopt(
        self,
        name: str,
        role: Role,
        token: str,
        *,
        campaigns: Sequence[str] = (EVERY_CAMPAIGN,),
        expires_at: int | None = None,
        succeeds: str | None = None,
    ) -> None:
        """Accept a token that was made elsewhere, in place of any of the same name."""
        secret = _secret_of(name, token)
        scope = sorted(set(campaigns))
        row = {
            "name": name, "role": role, "digest": _digest(secret),
            "campaigns": msgspec.json.encode(scope).decode(), "created_at": self._clock(),
            "expires_at": expires_at, "succeeds": succeeds,
        }  # fmt: skip
        with self._change() as connection:
            _keep_an_admin(connection, name, role=role)
            if succeeds is not None:
                _require_known(connection, succeeds)
            connection.execute(delete(store.tokens).where(store.tokens.c.name == name))
            connection.execute(insert(store.tokens).values(row))
            details = {"role": role, "campaigns": scope, "expires_at": expires_at}
            self._note(connection, "token.create", name, **details, succeeds=succeeds)
        self._days.pop(name, None)

    def rotate(self, name: str, *, grace: int) -> tuple[Holder, str]:
        """Give a token a new secret; the former one works for ``grace`` more milliseconds."""
        token = new_token(name)
        with self._change() as connection:
            holder = _load(connection).get(name)
            if holder is None:
                raise ProblemError(problems.UNKNOWN_TOKEN, f"Got {name!r}.")
            row = {
                "digest": _digest(_secret_of(name, token)),
                "former_digest": holder.digest,
                "former_until": self._clock() + grace,
            }
            connection.execute(update(store.tokens).where(store.tokens.c.name == name).values(row))
            self._note(connection, "token.rotate", name, former_until=row["former_until"])
        return self._holders.get(None)[name], token

    def revoke(self, name: str) -> None:
        """Delete a token; a repeat changes nothing, and the last of an admin stays."""
        with self._change() as connection:
            _keep_an_admin(connection, name)
            _require_known(connection, name)
            deleted = connection.execute(delete(store.tokens).where(store.tokens.c.name == name))
            if deleted.rowcount:
                self._note(connection, "token.revoke", name)

    def clear(self) -> None:
        """Delete all tokens."""
        with self._change() as connection:
            connection.execute(delete(store.tokens))
            audit_log.append(connection, "token.clear", now=self._clock())

    def _note(self, connection: Connection, action: str, name: str, **details: Any) -> None:
        audit_log.append(connection, action, now=self._clock(), token=name, **details)

    def roles(self) -> dict[str, Role]:
        """Return the role of each token by name."""
        return {name: holder.role for name, holder in self._holders.get(None).items()}

    def records(self, campaigns: frozenset[str] | None) -> dict[str, TokenRecord]:
        """Return what may be shown of the tokens of some campaigns, by name; None is all."""
        self.keep_uses()
        return {
            name: holder.record(campaigns)
            for name, holder in sorted(self._holders.get(None).items())
            if campaigns is None or any(map(holder.covers, campaigns))
        }

    def role_of(self, token: str) -> Role | None:
        """Return the role that a token is bound to, None for an unknown token."""
        holder = self.holder(token)
        return holder.role if holder else None

    def holder(self, token: str) -> Holder | None:
        """Return what is known of a token, None for one that is unknown or over."""
        name, _, secret = token.removeprefix("shoal.").rpartition(".")
        holder = self.find(name, _digest(secret))
        return holder if token.startswith("shoal.") else None

    def find(self, name: str, digest: bytes) -> Holder | None:
        """Return the token of that name, None if it was replaced, revoked or is over."""
        holder, now = self._holders.get(None).get(name), self._clock()
        same = hmac.compare_digest(digest, holder.digest if holder else _NO_DIGEST)
        if holder is None:
            return None
        if not same and holder.former_digest is not None and now < holder.former_until:
            same = hmac.compare_digest(digest, holder.former_digest)
        if not same or (holder.expires_at is not None and now >= holder.expires_at):
            return None
        self._days[name] = now - now % DAY
        return holder

    def keep_uses(self) -> None:
        """Store the days of last use that are not stored yet."""
        holders = self._holders.get(None)
        days = {
            name: day for name, day in list(self._days.items())
            if name in holders and holders[name].last_used != day
        }  # fmt: skip
        if not days:
            return
        table = store.tokens
        with self._change() as connection:
            for name, day in days.items():
                used = update(table).where(table.c.name == name).values(last_used=day)
                connection.execute(used)

    @contextmanager
    def _change(self) -> Iterator[Connection]:
        with self._lock:
            with self._holders.write(None, keep=True) as connection:
                yield connection
                holders = _load(connection)
            self._holders.put(None, holders)


def _keep_an_admin(connection: Connection, name: str, *, role: Role | None = None) -> None:
    """Refuse to take away the last admin token, without which no token can be made."""
    admins = {holder.name for holder in _load(connection).values() if holder.role == "admin"}
    if admins == {name} and role != "admin":
        raise ProblemError(problems.LAST_ADMIN, f"It is {name!r}.")


def _require_known(connection: Connection, name: str) -> None:
    """Refuse the name of a token that there never was; one that was revoked is known."""
    if name not in _load(connection) and not audit_log.names_token(connection, name):
        raise ProblemError(problems.UNKNOWN_TOKEN, f"Got {name!r}.")


def _load(connection: Connection, _: None = None) -> dict[str, Holder]:
    return {
        row.name: Holder(
            row.name, row.role, bytes(row.digest), _scope(row.campaigns), row.created_at,
            row.expires_at, row.last_used, row.succeeds,
            None if row.former_digest is None else bytes(row.former_digest), row.former_until or 0,
        )
        for row in connection.execute(select(store.tokens))
    }  # fmt: skip


def _scope(text: str) -> frozenset[str] | None:
    names = msgspec.json.decode(text, type=frozenset[str])
    return None if EVERY_CAMPAIGN in names else names


def _secret_of(name: str, token: str) -> str:
    before, _, secret = token.rpartition(".")
    if before != f"shoal.{name}" or len(secret) < _SECRET_LENGTH:
        raise InvalidInputError(
            f"token must be shoal.{name}. and at least {_SECRET_LENGTH} characters."
        )
    return secret


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
