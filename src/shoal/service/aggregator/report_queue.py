"""Reports: checked when they come in, then counted by one writer, many batches in one transaction.

A batch is answered after the commit that holds it. Individual rewards live in a batch, in memory,
until then, and nowhere else. Rewards in [0, 1] become whole steps of a public grid, and only whole
numbers are ever summed: order, retries and rounding can't show in a sum, and a fingerprint in the
low-order bits of a reward does not survive the grid.

One token reports in a campaign, the first that does, until its successor takes over. A successor is
named so. Only a report that can be counted makes a token the one that reports. Reports by any other
token are contested: they are refused, and their number is released. Each release's entry in the
audit log names the token: an entry of its own would show when a report came.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from sqlalchemy import Connection, bindparam, select, update

from shoal.arrays import BoolArray, FloatArray, IntArray, LongArray
from shoal.service.aggregator.campaigns import Directory
from shoal.service.aggregator.group_sums import (
    DAMAGED,
    DamagedSumsError,
    SeatReports,
    add_reports,
)
from shoal.service.aggregator.keys import RoundKeys
from shoal.service.aggregator.releases import load_seats
from shoal.service.aggregator.rounds import OPEN, RELEASED, Rounds
from shoal.service.problems import (
    BAD_CAPABILITY,
    BUSY,
    CONTESTED,
    LATE,
    OUT_OF_RANGE,
    UNKNOWN_USER,
    ProblemError,
    Reason,
)
from shoal.service.store import Database
from shoal.service.store import aggregator as store

MAX_BATCHES = 64  # in one transaction
MAX_WAITING_REPORTS = 500_000  # for the store; more are refused, to be sent again

Item = TypeVar("Item")
RefusedReports = list[tuple[int, Reason]]  # position in the batch, and why

_STATE_AND_SOURCE = (
    select(store.rounds.c.state, store.campaigns.c.source)
    .join(store.campaigns)
    .where(store.rounds.c.id == bindparam("round_id"))
    .with_for_update(of=store.rounds)
)


class Source(NamedTuple):
    """The token that reports, and the one whose reporting it may take over."""

    name: str = ""
    succeeds: str | None = None

    def may_report(self, present: str | None) -> bool:
        """Return whether it is the ``present`` source of a campaign, its successor or the first."""
        return present is None or present in (self.name, self.succeeds)


class Outcome(NamedTuple):
    """What became of one round's batches: the late seats, (n_seats,), and contested batches."""

    late: BoolArray
    contested: frozenset[int]  # by id()


@dataclass(eq=False, repr=False, slots=True)
class ReportBatch:
    """Valid reports for one round, and what to answer once they are durable."""

    round_id: int
    groups: IntArray  # (n_seats,)
    seats: LongArray  # (n_valid,)
    steps: LongArray  # (n_valid,)
    positions: LongArray  # (n_valid,), in the request
    refused: RefusedReports
    source: Source
    answer: Future[RefusedReports] = field(default_factory=Future)

    def size(self) -> int:
        """Return how much room it takes while it waits: one, and one for each report."""
        return 1 + len(self.seats)

    def finish(self, late: BoolArray, *, contested: bool) -> None:
        """Answer, with the reports of ``late`` seats, (n_seats,), refused too, or all of them."""
        reason = CONTESTED if contested else LATE
        positions = self.positions[late[self.seats] | contested].tolist()
        if positions:
            self.refused.extend((position, reason) for position in positions)
            self.refused.sort(key=lambda refusal: refusal[0])
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_result(self.refused)

    def fail(self, error: Exception) -> None:
        """Answer with an error; the sender may repeat."""
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_exception(error)


class BoundedQueue(Generic[Item]):
    """Refuses what it has no room for, so that a slow store can't fill the memory.

    It holds items of at most ``max_size`` in all, by ``size_of``; None marks the end and has no
    size. An item that is larger than that has a place in an empty queue.
    """

    def __init__(self, size_of: Callable[[Item], int], *, max_size: int) -> None:
        self._size_of = size_of
        self._max_size = max_size
        self._size = 0
        self._lock = threading.Lock()
        self._items: queue.SimpleQueue[Item | None] = queue.SimpleQueue()

    def put(self, item: Item | None) -> None:
        """Add an item, or refuse it."""
        size = 0 if item is None else self._size_of(item)
        with self._lock:
            if size and self._size and self._size + size > self._max_size:
                raise ProblemError(BUSY)
            self._size += size
            self._items.put(item)

    def get(self, *, block: bool = True) -> Item | None:
        """Remove the item that has waited longest; without ``block``, raise queue.Empty."""
        item = self._items.get(block)
        if item is not None:
            with self._lock:
                self._size -= self._size_of(item)
        return item


class ReportQueue:
    """Counts reports; a thread commits the batches that wait."""

    def __init__(
        self, database: Database, directory: Directory, rounds: Rounds, keys: RoundKeys
    ) -> None:
        self._database = database
        self._directory = directory
        self._rounds = rounds
        self._keys = keys
        self._waiting = BoundedQueue(ReportBatch.size, max_size=MAX_WAITING_REPORTS)
        self._thread = threading.Thread(target=self._work, name="report-queue", daemon=True)
        self._thread.start()

    def submit(
        self,
        name: str,
        number: int,
        reports: Sequence[tuple[str, float]],
        *,
        source: Source = Source(),  # noqa: B008, a constant
        capabilities: Sequence[str] = (),
    ) -> Future[RefusedReports]:
        """Count reports; the future says which were refused and why, in order, once durable.

        Where the campaign asks for it, each report has the capability of its user.
        """
        campaign = self._directory.campaign(name)
        round_id, plan = self._rounds.plan(name, number)
        find = self._directory.roster(name).seats.get
        seats = np.array([find(user, -1) for user, _ in reports], np.int64)
        rewards = np.array([reward for _, reward in reports], np.float64)
        steps = to_steps(rewards, campaign.reward_steps)
        playing = (seats >= 0) & (plan.arms[seats] >= 0)
        allowed = np.ones(len(reports), np.bool_)
        if campaign.capabilities:
            allowed[:] = self._keys.may_report(name, number, reports, capabilities)
        refused = [
            (position, _refusal(playing[position], allowed[position]))
            for position in np.flatnonzero(~playing | ~allowed | (steps < 0)).tolist()
        ]
        valid = np.flatnonzero(playing & allowed & (steps >= 0))
        batch = ReportBatch(
            round_id, plan.groups, seats[valid], steps[valid], valid, refused, source
        )
        if valid.size:
            self._waiting.put(batch)
        else:  # nothing to count: it changes nothing, and makes nobody the one that reports
            batch.answer.set_result(refused)
        return batch.answer

    def close(self) -> None:
        """Finish what is waiting, then stop."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        closed = False
        while not closed:
            batches: list[ReportBatch] = []
            batch = self._waiting.get()
            while batch is not None:
                batches.append(batch)
                if len(batches) == MAX_BATCHES:
                    break
                try:
                    batch = self._waiting.get(block=False)
                except queue.Empty:
                    break
            closed = batch is None
            if batches:
                self._finish(batches)

    def _finish(self, batches: list[ReportBatch]) -> None:
        try:
            outcomes = self._commit(batches)
        except Exception as error:
            for batch in batches:
                batch.fail(error)
            return
        for batch in batches:
            late, contested = outcomes[batch.round_id]
            batch.finish(late, contested=id(batch) in contested)

    def _commit(self, batches: list[ReportBatch]) -> dict[int, Outcome]:
        """Count batches in one transaction; return what became of those of each round.

        Those of a round whose sums are damaged find it abandoned, and keep no other from its place.
        """
        by_round: dict[int, list[ReportBatch]] = {}
        for batch in batches:
            by_round.setdefault(batch.round_id, []).append(batch)
        try:
            with self._database.write() as connection:
                return {
                    round_id: self._count(connection, round_id, by_round[round_id])
                    for round_id in sorted(by_round)
                }
        except DamagedSumsError as damage:
            self._rounds.give_up(damage.round_id, why=DAMAGED)
            self._keys.delete_ended()
            return self._commit(batches)

    def _count(self, connection: Connection, round_id: int, batches: list[ReportBatch]) -> Outcome:
        """Count one round's batches, but for those of a second source, which are contested."""
        groups = batches[0].groups
        state, source = _lock(connection, round_id)
        present, accepted, contested = source, [], []
        for batch in batches:
            if batch.source.may_report(present):
                present = batch.source.name
                accepted.append(batch)
            else:
                contested.append(batch)
        if state == RELEASED and not contested:  # a repeat of what was counted is not late
            reported = load_seats(connection, round_id, groups.size, counted=False)
            return Outcome(~reported, frozenset())
        if state != OPEN:
            return Outcome(np.ones(groups.size, np.bool_), frozenset())
        if accepted:
            seats = np.concatenate([batch.seats for batch in accepted])
            steps = np.concatenate([batch.steps for batch in accepted])
            seats, first = np.unique(seats, return_index=True)  # a user's first report counts
            key = self._keys.get(connection, round_id)
            add_reports(connection, round_id, groups, SeatReports(seats, steps[first]), key)
        if present != source:
            _set_source(connection, round_id, present)
        if contested:
            _add_contested(connection, round_id, sum(batch.seats.size for batch in contested))
        return Outcome(np.zeros(groups.size, np.bool_), frozenset(map(id, contested)))


def _lock(connection: Connection, round_id: int) -> tuple[str, str | None]:
    """Return a round's state and the token that reports in its campaign; lock the round."""
    row = connection.execute(_STATE_AND_SOURCE, {"round_id": round_id}).one()
    return row.state, row.source


def _set_source(connection: Connection, round_id: int, source: str | None) -> None:
    """Let a token be the one that reports in a round's campaign."""
    table = store.campaigns
    campaign = select(store.rounds.c.campaign).where(store.rounds.c.id == round_id)
    changed = update(table).where(table.c.name == campaign.scalar_subquery())
    connection.execute(changed.values(source=source))


def _add_contested(connection: Connection, round_id: int, n_reports: int) -> None:
    """Count reports by a second source."""
    table = store.rounds
    more = update(table).where(table.c.id == round_id)
    connection.execute(more.values(contested=table.c.contested + n_reports))


def _refusal(playing: bool, allowed: bool) -> Reason:
    if not playing:
        return UNKNOWN_USER
    return OUT_OF_RANGE if allowed else BAD_CAPABILITY


def to_steps(rewards: FloatArray, reward_steps: int) -> LongArray:
    """Return each reward's nearest step of the grid, -1 for what is not between 0 and 1.

    >>> to_steps(np.array([0.25004, -0.0, float("nan")]), 1000)
    array([250,   0,  -1])
    """
    inside = (rewards >= 0.0) & (rewards <= 1.0)
    steps = np.full(rewards.shape, -1, np.int64)
    steps[inside] = np.rint(rewards[inside] * reward_steps)
    return steps
