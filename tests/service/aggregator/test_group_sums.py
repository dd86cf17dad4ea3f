"""Each seat is counted once, in the transaction that marks it; no sum is stored in the clear."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, select, text
from tests.support.service import KEY, even, frozen, start
from tests.support.stores import Stores

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.group_sums import (
    SeatReports,
    add_reports,
    blind,
    read_sums,
    reveal,
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
        return read_sums(connection, ROUND, [0, 1], key)


def marks(database: Database) -> set[int]:
    with database.read() as connection:
        return set(connection.scalars(select(store.reports.c.seat)))


def rows(database: Database) -> list[tuple[int, bytes, int]]:
    query = select(store.sums.c.group_number, store.sums.c.salt, store.sums.c.blinded)
    with database.read() as connection:
        result = connection.execute(query.order_by(store.sums.c.group_number)).all()
    return [(row[0], bytes(row[1]), row[2]) for row in result]


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


def test_no_sum_is_stored_in_the_clear_and_every_write_has_a_new_salt(database: Database) -> None:
    before: list[tuple[int, bytes, int]] = []
    for steps in ({0: 3}, {1: 0}, {2: 5}):
        with database.write() as connection:
            add(connection, steps)
        now = rows(database)
        assert all(abs(blinded) > 2**32 for _, _, blinded in now)  # false alarms: below 1e-8
        salts = {salt for _, salt, _ in before}
        changed = {0} if len(now) == 1 else {1}
        assert all((salt in salts) == (group not in changed) for group, salt, _ in now)
        before = now


def test_another_key_or_group_does_not_reveal_a_sum(database: Database) -> None:
    with database.write() as connection:
        add(connection, {0: 3, 1: 4})
    assert sums(database, key=bytes(32))[0][0] != 7
    with database.write() as connection:
        connection.execute(text("UPDATE sums SET group_number = 1"))
    assert sums(database)[1][0] != 7


@given(
    total=st.integers(0, 2**62), key=st.binary(min_size=32, max_size=32), group=st.integers(0, 9)
)
@settings(derandomize=True)
def test_reveal_undoes_blind_within_64_bits(total: int, key: bytes, group: int) -> None:
    blinded = blind(total, key=key, salt=b"salt", group=group)
    assert -(2**63) <= blinded < 2**63
    assert reveal(blinded, key=key, salt=b"salt", group=group) == total


def test_thousands_of_reports_are_counted_in_one_transaction(stores: Stores) -> None:
    aggregator = Aggregator(stores.open("aggregator"), key=KEY)
    plan = even(6000, size=3)
    start(aggregator, plan, least=3)
    steps = np.random.default_rng(0).integers(0, 1001, 6000)
    with aggregator.database.write() as connection:
        add_reports(connection, ROUND, plan.groups, SeatReports(np.arange(6000), steps), KEY)
        counted = read_sums(connection, ROUND, range(2000), KEY)
    totals = np.bincount(plan.groups, weights=steps).astype(int)
    assert counted == {group: (total, 3) for group, total in enumerate(totals.tolist())}
    aggregator.close()
