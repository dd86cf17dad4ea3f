"""Everyone's arm in one round as one small, signed file, and look-ups in it without a network.

A file is its name (8 bytes), a signature (32 bytes) and the rest, compressed: a header as JSON with
its length in front, the users' names, each with a line feed behind it, and each user's arm as a
little-endian 16-bit number. The signature is an HMAC with a key that follows from the token of
whoever asked: nobody else could have made it, and another token does not read it.
"""

import hmac
import sys
import time
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import msgspec

from shoal.client.calls import ServiceError

TABLE_TYPE = "application/vnd.shoal.assignments"
MAX_AGE = 60.0  # seconds that a table is used without asking whether its round is still open

_MAGIC = b"SHOALAS1"
_SIGNATURE_BYTES = 32
_START = len(_MAGIC) + _SIGNATURE_BYTES


class TableHeader(msgspec.Struct, frozen=True):
    """What a file is of; ``plan`` is the plan's hash."""

    campaign: str
    round: int
    plan: str
    arms: list[str]
    n_users: int


@dataclass(frozen=True, eq=False, repr=False)
class AssignmentTable:
    """The arms of everyone in a round, for look-ups in this process's memory.

    ``arm`` refuses to answer once the table was not confirmed for ``max_age`` seconds, as its round
    may be over. ``client.assignment_table(name, known=table)`` confirms it, or returns another.
    """

    campaign: str
    round: int
    tag: str
    max_age: float
    _arms: dict[str, str] = field(repr=False)
    _confirmed_at: float = field(default_factory=time.monotonic)

    def __len__(self) -> int:
        return len(self._arms)

    def arm(self, user: str) -> str:
        """Return a user's arm, or refuse: a user without one, or a table that is too old."""
        if time.monotonic() - self._confirmed_at > self.max_age:
            raise ServiceError(
                "stale-table", 0,
                f"the table of round {self.round} must have been confirmed within {self.max_age:g} "
                "seconds; ask for it again.",
            )  # fmt: skip
        try:
            return self._arms[user]
        except KeyError:
            raise ServiceError("unknown-user", 404, "The user has no part in this round.") from None

    def confirmed(self) -> "AssignmentTable":
        """Return the same table, as of now."""
        return AssignmentTable(self.campaign, self.round, self.tag, self.max_age, self._arms)


def pack(header: TableHeader, users: Sequence[str], arms: bytes) -> bytes:
    """Return the part of a file that everyone gets; ``arms`` are uint16, little-endian."""
    head = msgspec.json.encode(header)
    names = "".join(f"{user}\n" for user in users).encode()
    return zlib.compress(len(head).to_bytes(4, "little") + head + names + arms, 1)


def tag_of(packed: bytes) -> str:
    """Return what identifies a packed table."""
    return sha256(packed).hexdigest()


def sign(packed: bytes, token: str) -> bytes:
    """Return the file for the holder of a token."""
    return _MAGIC + _signature(tag_of(packed), token) + packed


def read(content: bytes, token: str, *, max_age: float = MAX_AGE) -> AssignmentTable:
    """Read a file, or refuse one that was not made for this token or was changed."""
    packed, signature = content[_START:], content[len(_MAGIC) : _START]
    tag = tag_of(packed)
    if content[: len(_MAGIC)] != _MAGIC or not hmac.compare_digest(
        signature, _signature(tag, token)
    ):
        raise ServiceError("bad-signature", 0, "the table must be signed for this token.")
    plain = memoryview(zlib.decompress(packed))
    end = 4 + int.from_bytes(plain[:4], "little")
    header = msgspec.json.decode(plain[4:end], type=TableHeader)
    start = len(plain) - 2 * header.n_users
    numbers = array("H", plain[start:].tobytes())
    if sys.byteorder == "big":
        numbers.byteswap()
    users = str(plain[end:start], "utf-8").splitlines()
    arms = dict(zip(users, map(header.arms.__getitem__, numbers), strict=True))
    return AssignmentTable(header.campaign, header.round, tag, max_age, arms)


def _signature(tag: str, token: str) -> bytes:
    """Sign with what both sides know of a token: the service has its hash alone."""
    secret = token.rpartition(".")[2].encode()
    key = hmac.digest(sha256(secret).digest(), b"shoal assignments", "sha256")
    return hmac.digest(key, tag.encode(), "sha256")
