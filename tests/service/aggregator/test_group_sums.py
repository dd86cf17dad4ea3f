"""Each seat is counted once, in the transaction that marks it; no sum is stored in the clear."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select, text
from tests.support.service import KEY, even, frozen, start
from tests.support.stores import Stores

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.group_sums import (
    BLOCK_SIZE,
    SeatReports,
    add_reports,
    block_mask,
    read_sums,
)
from shoal.service.store import Database
from shoal.service.store import aggregator as store

GROUPS = np.array([0, 0, 1, 1, -1], np.int32)  # by seat
ROUND = 1


@pytest.fixture
def database(stores: Stores) -> Iterator[Database]:
    """A store with one open round."""
    aggregator = Aggregator(stores.open("aggregator"), key=KEY)
    start(aggregator, frozen([0] * 5, GROUPS.tolist()), least=2)
    yield aggregator.database
    aggregator.close()


def add(connection: Connection, steps: dict[int, int]) -> None:
    seats, values = (np.array(list(part), np.int64) for part in (steps, steps.values()))
    add_reports(connection, ROUND, GROUPS, SeatReports(seats, values), KEY)


def sums(database: Database, *, key: bytes = KEY) -> dict[int, tuple[int, int]]:
    with database.read() as connection:
        return read_sums(connection, ROUND, 2, key)


def marks(database: Database) -> set[int]:
    with database.read() as connection:
        return set(connection.scalars(select(store.reports.c.seat)))


def blocks(database: Database) -> dict[int, tuple[bytes, bytes]]:
    """Return each block's salt and blinded totals."""
    with database.read() as connection:
        rows = connection.execute(select(store.sum_blocks)).all()
    return {row.block: (bytes(row.salt), bytes(row.blinded)) for row in rows}


def test_sums_grow_by_what_is_new(database: Database) -> None:
    for steps in ({0: 3}, {1: 4, 2: 5}, {3: 0}):
        with database.write() as connection:
            add(connection, steps)
    assert sums(database) == {0: (7, 2), 1: (5, 2)}
    assert marks(database) == {0, 1, 2, 3}


def test_a_seat_that_is_marked_changes_nothing(database: Database) -> None:
    with database.write() as connection:
        add(connection, {0: 3})
    for steps in ({0: 9}, {0: 9, 1: 4}):  # alone, and beside a new one
        with database.write() as connection:
            add(connection, steps)
    assert sums(database) == {0: (7, 2)}


def test_a_user_in_no_group_is_marked_and_in_no_sum(database: Database) -> None:
    with database.write() as connection:
        add(connection, {4: 8})
    assert (marks(database), sums(database)) == ({4}, {})


def test_a_transaction_that_fails_leaves_neither_mark_nor_sum(database: Database) -> None:
    with database.write() as connection:
        add(connection, {0: 3})

    def fail_after_counting() -> None:
        with database.write() as connection:
            add(connection, {1: 4, 2: 5})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_counting()
    assert (marks(database), sums(database)) == ({0}, {0: (3, 1)})


def test_no_sum_is_stored_in_the_clear_and_every_write_has_a_new_salt(stores: Stores) -> None:
    aggregator = Aggregator(stores.open("aggregator"), key=KEY)
    plan = even(3 * (BLOCK_SIZE + 1), size=3)  # the last group is in a block of its own
    start(aggregator, plan, least=3)
    before: dict[int, tuple[bytes, bytes]] = {}
    for seat, block in ((0, 0), (1, 0), (3 * BLOCK_SIZE, 1), (2, 0)):
        with aggregator.database.write() as connection:
            reports = SeatReports(np.array([seat]), np.array([500]))
            add_reports(connection, ROUND, plan.groups, reports, KEY)
        now = blocks(aggregator.database)
        for salt, blinded in now.values():  # even where a group has no report yet
            assert np.frombuffer(blinded, "<u8").min() > 2**32  # false alarms: below 1e-6
            assert len(salt) == 16
        assert {number for number in now if now[number] != before.get(number)} == {block}
        assert block not in before or now[block][0] != before[block][0]
        before = now
    aggregator.close()


def test_another_key_or_block_does_not_reveal_a_sum(database: Database) -> None:
    with database.write() as connection:
        add(connection, {0: 3, 1: 4})
    assert sums(database, key=bytes(32))[0][0] != 7
    with database.write() as connection:
        connection.execute(text("UPDATE sum_blocks SET block = 1"))
        counted = read_sums(connection, ROUND, 2 * BLOCK_SIZE, KEY)
    assert counted[BLOCK_SIZE][0] != 7


@given(st.binary(min_size=32, max_size=32), st.integers(0, 9))
@settings(derandomize=True)
def test_masks_differ_by_key_salt_and_block(key: bytes, block: int) -> None:
    mask = block_mask(key, b"salt", block)
    assert len(set(mask.tolist())) == BLOCK_SIZE
    others = (block_mask(key, b"tlas", block), block_mask(key, b"salt", block + 1))
    for other in (*others, block_mask(key[::-1] + b"x", b"salt", block)):
        assert (mask != other).all()


def test_what_version_0_1_has_summed_is_counted_too(database: Database) -> None:
    """Its rows are of one group each: a round may be open while the store is upgraded."""
    salt, group = bytes(range(16)), 0
    digest = blake2b(salt + group.to_bytes(8, "little"), key=KEY, digest_size=8).digest()
    blinded = (5 + int.from_bytes(digest, "little") + 2**63) % 2**64 - 2**63
    row = {"round_id": ROUND, "group_number": group, "reporters": 1, "salt": salt}
    with database.write() as connection:
        connection.execute(store.sums.insert().values(row | {"blinded": blinded}))
        add(connection, {1: 4, 2: 6})
    assert sums(database) == {0: (9, 2), 1: (6, 1)}


def test_thousands_of_reports_are_counted_in_one_transaction(stores: Stores) -> None:
    aggregator = Aggregator(stores.open("aggregator"), key=KEY)
    plan = even(6000, size=3)
    start(aggregator, plan, least=3)
    steps = np.random.default_rng(0).integers(0, 1001, 6000)
    with aggregator.database.write() as connection:
        add_reports(connection, ROUND, plan.groups, SeatReports(np.arange(6000), steps), KEY)
        counted = read_sums(connection, ROUND, 2000, KEY)
    totals = np.bincount(plan.groups, weights=steps).astype(int)
    assert counted == {group: (total, 3) for group, total in enumerate(totals.tolist())}
    aggregator.close()
