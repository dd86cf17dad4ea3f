"""Rounds are closed once: merge, store the release, delete all else, in one transaction.

The document is stored in the transaction that closes the round and served as it is ever after
(threats 6, 15 and 16). Noise, where there is any, is drawn in that transaction too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np
from sqlalchemy import Connection, insert, select, update

from shoal.arrays import BoolArray
from shoal.service.aggregator import rounds, summaries
from shoal.service.aggregator.campaigns import Directory
from shoal.service.aggregator.epochs import Epochs
from shoal.service.aggregator.group_sums import read_sums
from shoal.service.aggregator.keys import RoundKeys
from shoal.service.aggregator.plans import FrozenPlan
from shoal.service.aggregator.release import Document, arm_by_group, make_document
from shoal.service.aggregator.rounds import ABANDONED, RELEASED, WANTED, RoundRecord, Rounds
from shoal.service.campaign import Campaign
from shoal.service.clock import Clock
from shoal.service.problems import (
    LEARNER_SILENT,
    NOT_RELEASED,
    ROUND_ABANDONED,
    ROUND_NOT_OPEN,
    ProblemError,
)
from shoal.service.store import Database
from shoal.service.store import aggregator as store


@dataclass(eq=False)
class Releases:
    """Closes rounds and reads what was released; ``on_release`` is called with each document."""

    _database: Database
    _directory: Directory
    _rounds: Rounds
    _epochs: Epochs
    _keys: RoundKeys
    _clock: Clock
    on_release: Callable[[Document], None] = lambda document: None

    def close_round(self, name: str, number: int) -> Document | None:
        """Close a round and store its release; None where that has been done."""
        campaign = self._directory.campaign(name)
        with self._rounds.change(name) as connection:
            round_ = self._releasable(connection, name, number)
            document = None if round_ is None else self._release(connection, round_, campaign)
        self._keys.delete_ended()
        if document is not None:
            self.on_release(document)
        return document

    def _releasable(self, connection: Connection, name: str, number: int) -> RoundRecord | None:
        """Return an open round, locked; None where it is released, or refuse."""
        progress = self._epochs.progress(name)
        if progress is None:
            raise ProblemError(LEARNER_SILENT)
        round_ = rounds.find(connection, name, number, lock=True)
        if round_.state == RELEASED:
            return None
        if round_.state == ABANDONED or number <= max(progress.learnt, progress.reading):
            raise ProblemError(ROUND_ABANDONED)
        if round_.state == WANTED:
            raise ProblemError(ROUND_NOT_OPEN)
        return round_

    def _release(self, connection: Connection, round_: RoundRecord, campaign: Campaign) -> Document:
        plan = rounds.load_plan(connection, round_.id)
        assert plan is not None
        key = self._keys.get(round_.id)
        sums = read_sums(connection, round_.id, arm_by_group(plan), key)
        document = make_document(round_.campaign, round_.number, plan, campaign, sums)
        _store(connection, round_.id, document, plan)
        summaries.write(connection, document, plan)
        rounds.delete_reports(connection, round_.id)
        table, now = store.rounds, self._clock()
        closed = update(table).where(table.c.id == round_.id)
        connection.execute(closed.values(state=RELEASED, closed_at=now))
        return document

    def read(self, name: str, number: int, *, to_learner: bool = False) -> bytes:
        """Return a release, byte for byte; people see it once the learner has it on record."""
        round_id = self._released(name, number)
        if not to_learner and (self.shown(name) or 0) < number:
            raise ProblemError(LEARNER_SILENT)
        with self._database.read() as connection:
            return load_document(connection, round_id)

    def shown(self, name: str) -> int | None:
        """Return the last round that people may see, None before the learner has synced."""
        self._directory.campaign(name)
        progress = self._epochs.progress(name)
        return None if progress is None else progress.learnt

    def counted(self, name: str, number: int) -> BoolArray:
        """Return the seats that are part of a released total, (n_seats,); for the learner."""
        round_id = self._released(name, number)
        with self._database.read() as connection:
            seats = self._directory.campaign(name).seats
            return load_seats(connection, round_id, seats, counted=True)

    def _released(self, name: str, number: int) -> int:
        round_ = self._rounds.get(name, number)
        if round_.state == ABANDONED:
            raise ProblemError(ROUND_ABANDONED)
        if round_.state != RELEASED:
            raise ProblemError(NOT_RELEASED)
        return round_.id


def load_document(connection: Connection, round_id: int) -> bytes:
    """Return a release's document, byte for byte as it was stored."""
    table = store.releases
    query = select(table.c.document).where(table.c.round_id == round_id)
    return bytes(connection.execute(query).scalar_one())


def load_seats(connection: Connection, round_id: int, n_seats: int, *, counted: bool) -> BoolArray:
    """Return the seats that reported, or those that are part of a released total, (n_seats,)."""
    table = store.releases
    column = table.c.counted if counted else table.c.reporters
    packed = connection.execute(select(column).where(table.c.round_id == round_id)).scalar_one()
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=n_seats).astype(bool)


def _store(connection: Connection, round_id: int, document: Document, plan: FrozenPlan) -> None:
    n_seats, table = plan.groups.size, store.reports
    reporters, released = np.zeros(n_seats, bool), np.zeros(n_seats, bool)
    seats = connection.scalars(select(table.c.seat).where(table.c.round_id == round_id))
    reporters[list(seats)] = True
    released[[group for total in document.totals for group in total.parts]] = True  # by group
    counted = reporters & (plan.groups >= 0) & released[plan.groups]
    row = {
        "round_id": round_id,
        "document": msgspec.json.encode(document),
        "reporters": np.packbits(reporters).tobytes(),
        "counted": np.packbits(counted).tobytes(),
    }
    connection.execute(insert(store.releases).values(row))
