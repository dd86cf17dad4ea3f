"""Reports: checked when they come in, then counted by one writer, many batches in one transaction.

A batch is answered after the commit that holds it. Individual rewards live in a batch, in memory,
until then, and nowhere else. Rewards in [0, 1] become whole steps of a public grid, and only whole
numbers are ever summed: order, retries and rounding can't show in a sum, and a fingerprint in the
low-order bits of a reward does not survive the grid.
"""

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
from sqlalchemy import Connection

from shoal.arrays import BoolArray, FloatArray, IntArray, LongArray
from shoal.service.aggregator.campaigns import Directory
from shoal.service.aggregator.group_sums import add_reports
from shoal.service.aggregator.keys import RoundKeys
from shoal.service.aggregator.releases import load_seats
from shoal.service.aggregator.rounds import OPEN, RELEASED, Rounds, lock_state
from shoal.service.problems import LATE, OUT_OF_RANGE, UNKNOWN_USER, Reason
from shoal.service.store import Database

MAX_BATCHES = 64  # in one transaction

RefusedReports = list[tuple[int, Reason]]  # position in the batch, and why


@dataclass(eq=False, repr=False, slots=True)
class ReportBatch:
    """Valid reports for one round, and what to answer once they are durable."""

    round_id: int
    groups: IntArray  # (n_seats,)
    seats: LongArray  # (n_valid,)
    steps: LongArray  # (n_valid,)
    positions: LongArray  # (n_valid,), in the request
    refused: RefusedReports
    answer: Future[RefusedReports] = field(default_factory=Future)

    def finish(self, late: BoolArray) -> None:
        """Answer, with the reports of ``late`` seats, (n_seats,), refused too."""
        positions = self.positions[late[self.seats]].tolist()
        if positions:
            self.refused.extend((position, LATE) for position in positions)
            self.refused.sort(key=lambda refusal: refusal[0])
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_result(self.refused)

    def fail(self, error: Exception) -> None:
        """Answer with an error; the sender may repeat."""
        if self.answer.set_running_or_notify_cancel():
            self.answer.set_exception(error)


class ReportQueue:
    """Counts reports; a thread commits the batches that wait."""

    def __init__(
        self, database: Database, directory: Directory, rounds: Rounds, keys: RoundKeys
    ) -> None:
        self._database = database
        self._directory = directory
        self._rounds = rounds
        self._keys = keys
        self._waiting: queue.SimpleQueue[ReportBatch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="report-queue", daemon=True)
        self._thread.start()

    def submit(
        self, name: str, number: int, reports: Sequence[tuple[str, float]]
    ) -> Future[RefusedReports]:
        """Count reports; the future says which were refused and why, in order, once durable."""
        reward_steps = self._directory.campaign(name).reward_steps
        round_id, plan = self._rounds.plan(name, number)
        find = self._directory.roster(name).seats.get
        seats = np.array([find(user, -1) for user, _ in reports], np.int64)
        steps = to_steps(np.array([reward for _, reward in reports], np.float64), reward_steps)
        playing = (seats >= 0) & (plan.arms[seats] >= 0)
        valid = np.flatnonzero(playing & (steps >= 0))
        refused = [
            (position, OUT_OF_RANGE if playing[position] else UNKNOWN_USER)
            for position in np.flatnonzero(~playing | (steps < 0)).tolist()
        ]
        batch = ReportBatch(round_id, plan.groups, seats[valid], steps[valid], valid, refused)
        self._waiting.put(batch)
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
                    batch = self._waiting.get_nowait()
                except queue.Empty:
                    break
            closed = batch is None
            if batches:
                self._finish(batches)

    def _finish(self, batches: list[ReportBatch]) -> None:
        try:
            late = self._commit(batches)
        except Exception as error:
            for batch in batches:
                batch.fail(error)
            return
        for batch in batches:
            batch.finish(late[batch.round_id])

    def _commit(self, batches: list[ReportBatch]) -> dict[int, BoolArray]:
        """Count batches in one transaction; return each round's late seats, (n_seats,)."""
        by_round: dict[int, list[ReportBatch]] = {}
        for batch in batches:
            by_round.setdefault(batch.round_id, []).append(batch)
        with self._database.write() as connection:
            return {
                round_id: self._count(connection, round_id, by_round[round_id])
                for round_id in sorted(by_round)
            }

    def _count(
        self, connection: Connection, round_id: int, batches: list[ReportBatch]
    ) -> BoolArray:
        """Count one round's batches; return the seats whose reports come too late, (n_seats,)."""
        groups = batches[0].groups
        state = lock_state(connection, round_id)
        if state == RELEASED:  # a repeat of what was counted is not late
            return ~load_seats(connection, round_id, groups.size, counted=False)
        if state != OPEN:
            return np.ones(groups.size, np.bool_)
        seats = np.concatenate([batch.seats for batch in batches])
        steps = np.concatenate([batch.steps for batch in batches])
        seats, first = np.unique(seats, return_index=True)  # a user's first report counts
        key = self._keys.get(round_id)
        add_reports(connection, round_id, groups, seats, steps[first], key)
        return np.zeros(groups.size, np.bool_)


def to_steps(rewards: FloatArray, reward_steps: int) -> LongArray:
    """Return each reward's nearest step of the grid, -1 for what is not between 0 and 1.

    >>> to_steps(np.array([0.25004, -0.0, float("nan")]), 1000)
    array([250,   0,  -1])
    """
    inside = (rewards >= 0.0) & (rewards <= 1.0)
    steps = np.full(rewards.shape, -1, np.int64)
    steps[inside] = np.rint(rewards[inside] * reward_steps)
    return steps
