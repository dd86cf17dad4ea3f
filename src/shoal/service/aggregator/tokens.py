"""Tokens: bound to a role, stored as hashes, compared in constant time."""

import hmac
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import get_args

from sqlalchemy import Connection, delete, insert, select

from shoal.errors import InvalidInputError
from shoal.service.aggregator.cache import Cache
from shoal.service.store import Database
from shoal.service.store import aggregator as store
from shoal.wire import Role

ROLES: tuple[Role, ...] = get_args(Role)

_SECRET_LENGTH = 43  # characters, for 32 random bytes
_NO_DIGEST = sha256(b"").digest()


@dataclass(frozen=True, slots=True)
class Holder:
    """A token's name, role and hash."""

    name: str
    role: Role
    digest: bytes


class Access:
    """The tokens of a store; a look-up waits for no change."""

    def __init__(self, database: Database) -> None:
        self._lock = threading.Lock()  # for changes
        self._holders: Cache[None, dict[str, Holder]] = Cache(database, _load)

    def issue(self, name: str, role: Role) -> str:
        """Make a token, in place of any of the same name; it is returned once, never stored."""
        token = f"shoal.{name}.{secrets.token_urlsafe(32)}"
        self.adopt(name, role, token)
        return token

    def adopt(self, name: str, role: Role, token: str) -> None:
        """Accept a token that was made elsewhere, in place of any of the same name."""
        before, _, secret = token.rpartition(".")
        if before != f"shoal.{name}" or len(secret) < _SECRET_LENGTH:
            raise InvalidInputError(
                f"token must be shoal.{name}. and at least {_SECRET_LENGTH} characters."
            )
        with self._change() as connection:
            connection.execute(delete(store.tokens).where(store.tokens.c.name == name))
            row = {"name": name, "role": role, "digest": _digest(secret)}
            connection.execute(insert(store.tokens).values(row))

    def revoke(self, name: str) -> None:
        """Delete a token, if there is one."""
        with self._change() as connection:
            connection.execute(delete(store.tokens).where(store.tokens.c.name == name))

    def clear(self) -> None:
        """Delete all tokens."""
        with self._change() as connection:
            connection.execute(delete(store.tokens))

    def roles(self) -> dict[str, Role]:
        """Return the role of each token by name."""
        return {name: holder.role for name, holder in self._holders.get(None).items()}

    def role_of(self, token: str) -> Role | None:
        """Return the role that a token is bound to, None for an unknown token."""
        holder = self.holder(token)
        return holder.role if holder else None

    def holder(self, token: str) -> Holder | None:
        """Return a token's name, role and hash, None for an unknown token."""
        name, _, secret = token.removeprefix("shoal.").rpartition(".")
        holder = self._find(name, _digest(secret))
        return holder if token.startswith("shoal.") else None

    def still(self, name: str, digest: bytes) -> Role | None:
        """Return the role of the token of that name, None if it was replaced or revoked."""
        holder = self._find(name, digest)
        return holder.role if holder else None

    def _find(self, name: str, digest: bytes) -> Holder | None:
        holder = self._holders.get(None).get(name)
        same = hmac.compare_digest(digest, holder.digest if holder else _NO_DIGEST)
        return holder if same else None

    @contextmanager
    def _change(self) -> Iterator[Connection]:
        with self._lock:
            with self._holders.write(None, keep=True) as connection:
                yield connection
                holders = _load(connection)
            self._holders.put(None, holders)


def _load(connection: Connection, _: None = None) -> dict[str, Holder]:
    rows = connection.execute(select(store.tokens)).all()
    return {row.name: Holder(row.name, row.role, bytes(row.digest)) for row in rows}


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
