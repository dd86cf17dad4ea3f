"""The sums of each group so far, blinded, and written in the transaction that marks the reporters.

The total of a group's first reporter is an individual reward. So a stored sum is the sum plus a
keyed mask, modulo 2^64, and every write uses a new salt; the key is not in the database (``keys``).
The database, its log, its free pages and its backups show neither a sum nor the difference of two
sums.

These are the hot statements, written for each dialect by hand, and as few as can be: after each
of them this thread waits for Python's lock, which the one that answers requests has. Numbers go in
as one list, and SQLite's rows come back as one list too: its driver would otherwise hand the lock
back and forth for every row.
"""

import os
from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import Connection

from shoal.arrays import IntArray, LongArray

SALT_BYTES = 16

Sums = dict[int, tuple[int, int]]  # group: total, reporters


class SeatReports(NamedTuple):
    """What was reported, by seats that differ."""

    seats: LongArray  # (n_reports,)
    steps: LongArray


_NEW = {
    "sqlite": "SELECT json_group_array(value) FROM json_each(?2) "
    "WHERE value NOT IN (SELECT seat FROM reports WHERE round_id = ?1 AND seat = value)",
    "postgresql": "INSERT INTO reports (round_id, seat) SELECT %s, unnest(%s::int[]) "
    "ON CONFLICT DO NOTHING RETURNING seat",
}
_MARK_NEW = "INSERT INTO reports (round_id, seat) SELECT ?, value FROM json_each(?)"  # SQLite's
_READ = {
    "sqlite": "SELECT json_group_array(json_array(group_number, reporters, hex(salt), blinded)) "
    "FROM sums WHERE round_id = ? AND group_number IN (SELECT value FROM json_each(?))",
    "postgresql": "SELECT group_number, reporters, encode(salt, 'hex'), blinded "
    "FROM sums WHERE round_id = %s AND group_number = ANY(%s::int[])",
}
_UPDATE = (
    "ON CONFLICT (round_id, group_number) DO UPDATE SET "
    "reporters = excluded.reporters, salt = excluded.salt, blinded = excluded.blinded"
)
_WRITE = {
    "sqlite": "INSERT INTO sums (round_id, salt, group_number, reporters, blinded) "
    f"SELECT ?, ?, value ->> 0, value ->> 1, value ->> 2 FROM json_each(?) WHERE true {_UPDATE}",
    "postgresql": "INSERT INTO sums (round_id, salt, group_number, reporters, blinded) "
    f"SELECT %s, %s, * FROM unnest(%s::int[], %s::int[], %s::bigint[]) {_UPDATE}",
}


def add_reports(
    connection: Connection, round_id: int, groups: IntArray, reports: SeatReports, key: bytes
) -> None:
    """Count each seat's steps once: a seat that is marked already changes nothing.

    The caller holds the round's lock and knows that it is open.
    """
    seats, steps = reports
    dialect = connection.dialect.name
    new = _rows(connection, _NEW, round_id, seats.tolist())
    if not new:
        return
    if len(new) < seats.size:
        is_new = np.isin(seats, np.ravel(new))
        seats, steps = seats[is_new], steps[is_new]
    if dialect == "sqlite":
        connection.exec_driver_sql(_MARK_NEW, (round_id, _list_text(dialect, seats.tolist())))
    grouped = groups[seats] >= 0
    changed, place = np.unique(groups[seats[grouped]], return_inverse=True)
    if not changed.size:
        return
    totals = np.zeros(changed.size, np.int64)
    np.add.at(totals, place, steps[grouped])
    before = read_sums(connection, round_id, changed.tolist(), key)
    salt = os.urandom(SALT_BYTES)
    rows = []
    for group, total, n_new in zip(
        changed.tolist(), totals.tolist(), np.bincount(place).tolist(), strict=True
    ):
        total_before, n_before = before.get(group, (0, 0))
        blinded = blind(total_before + total, key=key, salt=salt, group=group)
        rows.append((group, n_before + n_new, blinded))
    columns: Sequence[Any] = [rows] if dialect == "sqlite" else list(zip(*rows, strict=True))
    values = [_list_text(dialect, column) for column in columns]
    connection.exec_driver_sql(_WRITE[dialect], (round_id, salt, *values))


def read_sums(connection: Connection, round_id: int, groups: Collection[int], key: bytes) -> Sums:
    """Return the totals and reporters so far; for the aggregator's memory only."""
    return {
        group: (reveal(blinded, key=key, salt=bytes.fromhex(salt), group=group), reporters)
        for group, reporters, salt, blinded in _rows(connection, _READ, round_id, list(groups))
    }


def _rows(
    connection: Connection, statements: dict[str, str], round_id: int, numbers: list[int]
) -> Sequence[Any]:
    dialect = connection.dialect.name
    values = (round_id, _list_text(dialect, numbers))
    result = connection.exec_driver_sql(statements[dialect], values)
    if dialect == "sqlite":
        rows: list[Any] = msgspec.json.decode(result.scalar_one())
        return rows
    return result.all()


def _list_text(dialect: str, values: Sequence[Any]) -> str:
    """Write a list as the dialect reads it: JSON, or an array's text."""
    if dialect == "sqlite":
        return msgspec.json.encode(values).decode()
    return f"{{{','.join(map(str, values))}}}"


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
