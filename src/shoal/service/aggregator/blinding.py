"""Sums at rest are blinded: the total of a group's first reporter is an individual reward.

A stored sum is the sum plus a keyed mask, modulo 2^64. The key lies in a file of its own, never
in the database, and every write uses a fresh salt. So the database, its log, its free pages and
its backups show neither a sum nor the difference of two sums (threat 19).
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from shoal.errors import ShoalError

SALT_BYTES = 16
KEY_BYTES = 32


def load_key(path: Path) -> bytes:
    """Read the key, or make one that only this user can read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        key = path.read_bytes()
        if len(key) != KEY_BYTES:
            raise ShoalError(f"key_file must hold {KEY_BYTES} bytes; {path} does not.") from None
        return key
    key = os.urandom(KEY_BYTES)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return key


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
