"""The sums of each group so far, blinded, and written in the transaction that marks the reporters.

The total of a group's first reporter is an individual reward. So a stored sum is the sum plus a
keyed mask, modulo 2^64, and every write uses a new salt; the key is not in the database (``keys``).
The database, its log, its free pages and its backups show neither a sum nor the difference of two
sums. A row has a block of them: a thousand reports change a few rows, not a thousand.

These are the hot statements, written for each dialect by hand, and as few as can be: after each
of them this thread waits for Python's lock, which the one that answers requests has. Numbers go in
as one list, and SQLite's rows come back as one list too: its driver would otherwise hand the lock
back and forth for every row.
"""

import os
from collections.abc import Sequence
from hashlib import blake2b, shake_256
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from shoal.arrays import IntArray, LongArray
from shoal.errors import ShoalError
from shoal.service.store import aggregator as store

BLOCK_SIZE = 256  # groups in a row
SALT_BYTES = 16
DAMAGED = "its sums are damaged"  # why a round is abandoned

Sums = dict[int, tuple[int, int]]  # group: total, reporters


class DamagedSumsError(ShoalError):
    """The sums of a round are not what was written: no total of it can be known."""

    def __init__(self, round_id: int) -> None:
        super().__init__("the sums of a round are damaged.")
        self.round_id = round_id


class SeatReports(NamedTuple):
    """What was reported, by seats that differ."""

    seats: LongArray  # (n_reports,)
    steps: LongArray


class SumBlocks(NamedTuple):
    """The sums of some blocks of groups, in the clear; for the aggregator's memory only."""

    numbers: list[int]  # (n_blocks,)
    totals: LongArray  # (n_blocks, BLOCK_SIZE)
    reporters: LongArray  # (n_blocks, BLOCK_SIZE)


_NEW = {  # PostgreSQL marks them too
    "sqlite": "SELECT json_group_array(value) FROM json_each(?2) "
    "WHERE value NOT IN (SELECT seat FROM reports WHERE round_id = ?1 AND seat = value)",
    "postgresql": "WITH new AS (INSERT INTO reports (round_id, seat) SELECT %s, unnest(%s::int[]) "
    "ON CONFLICT DO NOTHING RETURNING seat) SELECT array_agg(seat) FROM new",
}
_MARK = "INSERT INTO reports (round_id, seat) SELECT ?, value FROM json_each(?)"  # SQLite's
_READ = {
    "sqlite": "SELECT json_group_array(json_array(block, hex(salt), hex(reporters), hex(blinded))) "
    "FROM sum_blocks WHERE round_id = ? AND block IN (SELECT value FROM json_each(?))",
    "postgresql": "SELECT block, encode(salt, 'hex'), encode(reporters, 'hex'), "
    "encode(blinded, 'hex') FROM sum_blocks WHERE round_id = %s AND block = ANY(%s::int[])",
}
_UPDATE = (
    "ON CONFLICT (round_id, block) DO UPDATE SET "
    "salt = excluded.salt, reporters = excluded.reporters, blinded = excluded.blinded"
)
_WIDTHS = 4 * BLOCK_SIZE, 8 * BLOCK_SIZE  # bytes of a block's reporters, and of its totals
_WRITE = {  # the bytes of all blocks are one value, and cut there
    "sqlite": "INSERT INTO sum_blocks (round_id, salt, block, reporters, blinded) "
    f"SELECT ?1, ?2, value, substr(?4, key * {_WIDTHS[0]} + 1, {_WIDTHS[0]}), "
    f"substr(?5, key * {_WIDTHS[1]} + 1, {_WIDTHS[1]}) FROM json_each(?3) WHERE true {_UPDATE}",
    "postgresql": "INSERT INTO sum_blocks (round_id, salt, block, reporters, blinded) "
    "SELECT %s, %s, block, "
    f"substr(%s::bytea, (place::int - 1) * {_WIDTHS[0]} + 1, {_WIDTHS[0]}), "
    f"substr(%s::bytea, (place::int - 1) * {_WIDTHS[1]} + 1, {_WIDTHS[1]}) "
    f"FROM unnest(%s::int[]) WITH ORDINALITY AS blocks (block, place) {_UPDATE}",
}


def add_reports(
    connection: Connection, round_id: int, groups: IntArray, reports: SeatReports, key: bytes
) -> None:
    """Count each seat's steps once: a seat that is marked already changes nothing.

    The caller holds the round's lock and knows that it is open.
    """
    seats, steps = reports
    new = _mark(connection, round_id, seats.tolist())
    if len(new) < seats.size:
        is_new = np.isin(seats, new)
        seats, steps = seats[is_new], steps[is_new]
    grouped = groups[seats] >= 0
    numbers = groups[seats[grouped]]
    if not numbers.size:
        return
    changed, place = np.unique(numbers // BLOCK_SIZE, return_inverse=True)
    blocks = _read_blocks(connection, round_id, changed.tolist(), key)
    np.add.at(blocks.totals, (place, numbers % BLOCK_SIZE), steps[grouped])
    np.add.at(blocks.reporters, (place, numbers % BLOCK_SIZE), 1)
    _write_blocks(connection, round_id, blocks, key)


def _mark(connection: Connection, round_id: int, seats: list[int]) -> list[int]:
    """Mark seats as having reported; return those that were not."""
    dialect = connection.dialect.name
    values = (round_id, _list_text(dialect, seats))
    if dialect == "sqlite":
        try:
            connection.exec_driver_sql(_MARK, values)
        except IntegrityError:  # some are marked, and this statement has marked none
            new = connection.exec_driver_sql(_NEW[dialect], values).scalar_one()
            connection.exec_driver_sql(_MARK, (round_id, new))
            return msgspec.json.decode(new, type=list[int])
        return seats
    marked: list[int] | None = connection.exec_driver_sql(_NEW[dialect], values).scalar_one()
    return marked or []


def read_sums(connection: Connection, round_id: int, n_groups: int, key: bytes) -> Sums:
    """Return the totals and reporters so far of the groups that have any."""
    blocks = _read_blocks(connection, round_id, list(range(-(-n_groups // BLOCK_SIZE))), key)
    totals, reporters = blocks.totals.ravel(), blocks.reporters.ravel()
    for group, total, count in _single_sums(connection, round_id, n_groups, key):
        totals[group] += total
        reporters[group] += count
    with_any = np.flatnonzero(reporters[:n_groups])
    counts = zip(totals[with_any].tolist(), reporters[with_any].tolist(), strict=True)
    return dict(zip(with_any.tolist(), counts, strict=True))


def read_checked(
    connection: Connection, round_id: int, groups: IntArray, key: bytes
) -> tuple[Sums, LongArray]:
    """Return a round's sums, and the seats that are marked, or refuse sums that are of others."""
    sums = read_sums(connection, round_id, groups.max(initial=-1) + 1, key)
    table = store.reports
    seats = connection.scalars(select(table.c.seat).where(table.c.round_id == round_id))
    marked = np.array(list(seats), np.int64)
    if marked.min(initial=0) < 0 or marked.max(initial=-1) >= groups.size:
        raise DamagedSumsError(round_id)
    counts = np.bincount(groups[marked] + 1)[1:]  # but for those in no group
    if {group: n for group, (_, n) in sums.items()} != {
        group: n for group, n in enumerate(counts.tolist()) if n
    }:
        raise DamagedSumsError(round_id)
    return sums, marked


def _read_blocks(
    connection: Connection, round_id: int, numbers: list[int], key: bytes
) -> SumBlocks:
    """Read blocks; those that have no row have no reporter."""
    blocks = SumBlocks(numbers, *np.zeros((2, len(numbers), BLOCK_SIZE), np.int64))
    places = {number: place for place, number in enumerate(numbers)}
    for number, *parts in _rows(connection, round_id, numbers):
        salt, reporters, blinded = map(bytes.fromhex, parts)
        if (len(salt), len(reporters), len(blinded)) != (SALT_BYTES, *_WIDTHS):
            raise DamagedSumsError(round_id)
        place, mask = places[number], block_mask(key, salt, number)
        blocks.totals[place] = (np.frombuffer(blinded, "<u8") - mask).astype(np.int64)
        blocks.reporters[place] = np.frombuffer(reporters, "<i4")
    return blocks


def _write_blocks(connection: Connection, round_id: int, blocks: SumBlocks, key: bytes) -> None:
    dialect, salt = connection.dialect.name, os.urandom(SALT_BYTES)
    masks = np.array([block_mask(key, salt, number) for number in blocks.numbers])
    blinded = (blocks.totals.astype("<u8") + masks).tobytes()
    reporters = blocks.reporters.astype("<i4").tobytes()
    numbers = _list_text(dialect, blocks.numbers)
    values = [numbers, reporters, blinded] if dialect == "sqlite" else [reporters, blinded, numbers]
    connection.exec_driver_sql(_WRITE[dialect], (round_id, salt, *values))


def block_mask(key: bytes, salt: bytes, block: int) -> NDArray[np.uint64]:
    """Return what blinds a block's totals, (BLOCK_SIZE,)."""
    digest = shake_256(key + salt + block.to_bytes(8, "little")).digest(8 * BLOCK_SIZE)
    return np.frombuffer(digest, "<u8")


def _single_sums(
    connection: Connection, round_id: int, n_groups: int, key: bytes
) -> list[tuple[int, int, int]]:
    """Return the group, total and reporters of the rows that version 0.1 wrote, one a group."""
    table = store.sums
    of_plan = (table.c.round_id == round_id, table.c.group_number.between(0, n_groups - 1))
    rows = connection.execute(select(table).where(*of_plan))
    return [
        (row.group_number, _reveal(row.blinded, key, row.salt, row.group_number), row.reporters)
        for row in rows
    ]


def _reveal(blinded: int, key: bytes, salt: bytes, group: int) -> int:
    digest = blake2b(salt + group.to_bytes(8, "little"), key=key, digest_size=8).digest()
    return (blinded - int.from_bytes(digest, "little") + 2**63) % 2**64 - 2**63


def _rows(connection: Connection, round_id: int, numbers: list[int]) -> Sequence[Any]:
    dialect = connection.dialect.name
    values = (round_id, _list_text(dialect, numbers))
    result = connection.exec_driver_sql(_READ[dialect], values)
    if dialect == "sqlite":
        return msgspec.json.decode(result.scalar_one(), type=list[Any])
    return result.all()


def _list_text(dialect: str, values: Sequence[Any]) -> str:
    """Write a list as the dialect reads it: JSON, or an array's text."""
    if dialect == "sqlite":
        return msgspec.json.encode(values).decode()
    return f"{{{','.join(map(str, values))}}}"
