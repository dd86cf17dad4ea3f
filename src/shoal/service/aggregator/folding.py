"""Folding reports into blinded group sums, in the transaction that marks them as counted.

These are the hot statements, written for each dialect by hand: one statement marks a whole batch
and returns who is new, one reads the sums it touches, one writes them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from shoal.service.aggregator.blinding import SALT_BYTES, blind, reveal
from shoal.service.aggregator.rounds import IntArray

_MARK = {
    "sqlite": "INSERT INTO reports (round_id, seat) SELECT ?, value FROM json_each(?) WHERE true "
    "ON CONFLICT DO NOTHING RETURNING seat",
    "postgresql": "INSERT INTO reports (round_id, seat) SELECT %s, unnest(%s::int[]) "
    "ON CONFLICT DO NOTHING RETURNING seat",
}
_READ = {
    "sqlite": "SELECT group_number, reporters, salt, blinded FROM sums "
    "WHERE round_id = ? AND group_number IN (SELECT value FROM json_each(?))",
    "postgresql": "SELECT group_number, reporters, salt, blinded FROM sums "
    "WHERE round_id = %s AND group_number = ANY(%s)",
}
_UPDATE = (
    "ON CONFLICT (round_id, group_number) DO UPDATE SET "
    "reporters = excluded.reporters, salt = excluded.salt, blinded = excluded.blinded"
)
_WRITE = {
    "sqlite": "INSERT INTO sums (round_id, salt, group_number, reporters, blinded) "
    f"VALUES (?, ?, ?, ?, ?) {_UPDATE}",
    "postgresql": "INSERT INTO sums (round_id, salt, group_number, reporters, blinded) "
    "SELECT %s, %s, * FROM unnest(%s::int[], %s::int[], %s::bigint[]) " + _UPDATE,
}
Sums = dict[int, tuple[int, int]]  # group: total, reporters


def fold(
    connection: Connection, round_id: int, groups: IntArray, steps: Mapping[int, int], key: bytes
) -> None:
    """Count each seat's steps once: what is marked already changes nothing.

    The caller holds the round's lock and knows that it is open.
    """
    dialect = connection.dialect.name
    new = _rows(connection, _MARK[dialect], round_id, steps)
    gained: Sums = {}
    for (seat,) in new:
        group = int(groups[seat])
        if group >= 0:
            total, reporters = gained.get(group, (0, 0))
            gained[group] = total + steps[seat], reporters + 1
    if not gained:
        return
    for group, (total, reporters) in read_sums(connection, round_id, gained, key).items():
        gained[group] = gained[group][0] + total, gained[group][1] + reporters
    salt = os.urandom(SALT_BYTES)
    blinded = [
        (group, reporters, blind(total, key=key, salt=salt, group=group))
        for group, (total, reporters) in sorted(gained.items())
    ]
    if dialect == "sqlite":
        rows = [(round_id, salt, *row) for row in blinded]
        connection.exec_driver_sql(_WRITE[dialect], rows)
    else:
        columns = [list(column) for column in zip(*blinded, strict=True)]
        connection.exec_driver_sql(_WRITE[dialect], (round_id, salt, *columns))


def read_sums(connection: Connection, round_id: int, groups: Collection[int], key: bytes) -> Sums:
    """Return the totals and reporters so far; for the aggregator's memory only."""
    rows = _rows(connection, _READ[connection.dialect.name], round_id, groups)
    return {
        group: (reveal(blinded, key=key, salt=bytes(salt), group=group), reporters)
        for group, reporters, salt, blinded in rows
    }


def _rows(
    connection: Connection, statement: str, round_id: int, numbers: Collection[int]
) -> Sequence[Any]:
    listed = list(numbers)
    values = json.dumps(listed) if connection.dialect.name == "sqlite" else listed
    return connection.exec_driver_sql(statement, (round_id, values)).all()
