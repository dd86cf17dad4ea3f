"""Tokens: bound to a role, stored as hashes, compared in constant time (threat 20)."""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal, get_args

from sqlalchemy import Connection, delete, insert, select

from shoal.errors import InvalidInputError
from shoal.service.store import Database
from shoal.service.store import aggregator as store

Role = Literal["operator", "app", "analyst", "learner"]
ROLES: tuple[Role, ...] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Holder:
    """A token's name, role and hash."""

    name: str
    role: Role
    digest: bytes


Known = dict[str, tuple[Role, bytes]]  # by name

_SECRET = 43  # characters, for 32 random bytes
_NOBODY = sha256(b"").digest()


def issue(connection: Connection, name: str, role: Role) -> str:
    """Make a token, in place of any of the same name; it is shown once and never stored."""
    token = f"shoal.{name}.{secrets.token_urlsafe(32)}"
    adopt(connection, name, role, token)
    return token


def adopt(connection: Connection, name: str, role: Role, token: str) -> None:
    """Store the hash of a token that was made elsewhere, in place of any of the same name."""
    before, _, secret = token.rpartition(".")
    if before != f"shoal.{name}" or len(secret) < _SECRET:
        raise InvalidInputError(f"token must be shoal.{name}. and at least {_SECRET} characters.")
    revoke(connection, name)
    row = {"name": name, "role": role, "digest": _digest(secret)}
    connection.execute(insert(store.tokens).values(row))


def revoke(connection: Connection, name: str) -> None:
    """Forget a token, if there is one."""
    connection.execute(delete(store.tokens).where(store.tokens.c.name == name))


def load(connection: Connection) -> Known:
    """Read the hashes of all tokens."""
    rows = connection.execute(select(store.tokens)).all()
    return {row.name: (row.role, bytes(row.digest)) for row in rows}


def role_of(token: str, known: Known) -> Role | None:
    """Return the role that a token is bound to, None for one that is not known."""
    name, _, secret = token.removeprefix("shoal.").rpartition(".")
    role, digest = known.get(name, (None, _NOBODY))
    same = hmac.compare_digest(_digest(secret), digest)
    return role if same and role is not None and token.startswith("shoal.") else None


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


class Access:
    """The tokens of a store, with their hashes in memory."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()  # for changes; a look-up waits for none
        self._known: Known | None = None

    def issue(self, name: str, role: Role) -> str:
        """Make a token, in place of any of the same name, and return it this once."""
        with self._change() as connection:
            return issue(connection, name, role)

    def adopt(self, name: str, role: Role, token: str) -> None:
        """Let in a token that was made elsewhere, in place of any of the same name."""
        with self._change() as connection:
            adopt(connection, name, role, token)

    def revoke(self, name: str) -> None:
        """Forget a token, if there is one."""
        with self._change() as connection:
            revoke(connection, name)

    def clear(self) -> None:
        """Forget all tokens."""
        with self._change() as connection:
            connection.execute(delete(store.tokens))

    def roles(self) -> dict[str, Role]:
        """Return the role of each token by name."""
        return {name: role for name, (role, _) in self._load().items()}

    def role_of(self, token: str) -> Role | None:
        """Return the role that a token is bound to, None for one that is not known."""
        return role_of(token, self._load())

    def holder(self, token: str) -> Holder | None:
        """Return what is known of a token, None for one that is not."""
        known = self._load()
        role = role_of(token, known)
        if role is None:
            return None
        name, _, _ = token.removeprefix("shoal.").rpartition(".")
        return Holder(name, role, known[name][1])

    def still(self, name: str, digest: bytes) -> Role | None:
        """Return the role of the token of that name, None if it is another by now, or gone."""
        role, current = self._load().get(name, (None, _NOBODY))
        return role if hmac.compare_digest(digest, current) else None

    @contextmanager
    def _change(self) -> Iterator[Connection]:
        with self._lock:
            known: Known | None = None  # to be read again, where the commit's fate is not known
            try:
                with self._database.write() as connection:
                    yield connection
                    after = load(connection)
                known = after
            finally:
                self._known = known

    def _load(self) -> Known:
        known = self._known
        if known is None:
            with self._lock, self._database.read() as connection:
                known = self._known = load(connection)
        return known
