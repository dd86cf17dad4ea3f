"""Sums at rest are blinded: the total of a group's first reporter is an individual reward.

A stored sum is the sum plus a keyed mask, modulo 2^64. The key lies in a file of its own, never
in the database, and every write uses a fresh salt. So the database, its log, its free pages and
its backups show neither a sum nor the difference of two sums (threat 19). Each round has a key of
its own, which follows from this one (``round_keys``).

Another key would turn sums into nonsense. So the store remembers the key's fingerprint, and an
aggregator whose store has sums starts with their key or not at all.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from shoal.errors import ShoalError
from shoal.service.aggregator import rounds
from shoal.service.store import Database
from shoal.service.store import aggregator as store

SALT_BYTES = 16
KEY_BYTES = 32


def claim_key(
    database: Database, path: Path, *, now: int, abandon_open_rounds: bool = False
) -> bytes:
    """Return the key of a store; a store without sums takes any key, or a new one.

    ``abandon_open_rounds`` is for a key that is lost: what it has blinded is given up.
    """
    with database.write() as connection:
        open_rounds = connection.scalars(select(store.rounds.c.id).where(with_sums())).all()
        key = read_key(path)
        if open_rounds and not fits(connection, key):
            if not abandon_open_rounds:
                raise ShoalError(
                    f"key_file must hold the key of this store, which has an open round; {path} "
                    f"{'is missing' if key is None else 'holds another'}. Put it back, or give the "
                    "open rounds up with --abandon-open-rounds."
                )
            for round_id in open_rounds:
                rounds.abandon(connection, round_id, now=now)
        key = key or make_key(path)
        connection.execute(delete(store.keys))
        connection.execute(insert(store.keys).values(fingerprint=fingerprint(key)))
    return key


def with_sums() -> ColumnElement[bool]:
    """Return the condition on rounds that their sums are still needed."""
    table = store.rounds
    return (table.c.state == rounds.OPEN) & table.c.id.in_(select(store.sums.c.round_id))


def fits(connection: Connection, key: bytes | None) -> bool:
    """Return whether a key is the store's; any is where the store remembers none."""
    known = connection.scalar(select(store.keys.c.fingerprint))
    return key is not None and known in (None, fingerprint(key))


def fingerprint(key: bytes) -> bytes:
    """Return what tells keys apart and tells nothing else about them."""
    return blake2b(b"shoal key", key=key, digest_size=16).digest()


def read_key(path: Path) -> bytes | None:
    """Read the key, None where there is no file."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        raise ShoalError(f"key_file must hold {KEY_BYTES} bytes; {path} does not.")
    return key


def make_key(path: Path) -> bytes:
    """Make a new key for this user's eyes; it is on the disk, whole, before anything needs it."""
    if not path.parent.is_dir():
        path.parent.mkdir(mode=0o700, parents=True)
        _sync(path.parent.parent)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)  # of one who was killed
    key = os.urandom(KEY_BYTES)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    os.link(part, path)  # never over another key
    part.unlink()
    _sync(path.parent)
    return key


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def blind(total: int, *, key: bytes, salt: bytes, group: int) -> int:
    """Return the total as it may be stored."""
    return _signed(total + _mask(key, salt, group))


def reveal(blinded: int, *, key: bytes, salt: bytes, group: int) -> int:
    """Return the total that was blinded."""
    return _signed(blinded - _mask(key, salt, group))


def _mask(key: bytes, salt: bytes, group: int) -> int:
    digest = blake2b(salt + group.to_bytes(8, "little"), key=key, digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _signed(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63
