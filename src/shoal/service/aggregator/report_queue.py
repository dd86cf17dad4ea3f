"""Reports: checked when they come in, then counted by one writer, many batches in one transaction.

A batch is answered after the commit that holds it. Individual rewards live in a batch, in memory,
until then, and nowhere else.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from operator import itemgetter

import numpy as np
from sqlalchemy import Connection

from shoal.arrays import BoolArray, IntArray, LongArray
from shoal.service.aggregator.campaigns import Directory
from shoal.service.aggregator.group_sums import add_reports
from shoal.service.aggregator.keys import RoundKeys
from shoal.service.aggregator.releases import load_seats
from shoal.service.aggregator.rounds import OPEN, RELEASED, Rounds, lock_state
from shoal.service.problems import LATE, OUT_OF_RANGE, UNKNOWN_USER, Kind
from shoal.service.reward_steps import to_steps
from shoal.service.store import Database

MAX_BATCHES = 64  # in one transaction

Refused = list[tuple[int, Kind]]  # position in the batch, and why
_index = itemgetter(0)


@dataclass(eq=False, repr=False, slots=True)
class Batch:
    """Valid reports for one round; the future gets the seats whose reports come too late."""

    round_id: int
    groups: IntArray
    seats: LongArray
    steps: LongArray
    late: Future[LongArray] = field(default_factory=Future)


class ReportQueue:
    """Counts reports; a thread commits the batches that wait."""

    def __init__(
        self, database: Database, directory: Directory, rounds: Rounds, keys: RoundKeys
    ) -> None:
        self._database = database
        self._directory = directory
        self._rounds = rounds
        self._keys = keys
        self._waiting: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="report-queue", daemon=True)
        self._thread.start()

    def submit(
        self, name: str, number: int, reports: Sequence[tuple[str, float]]
    ) -> Future[Refused]:
        """Count reports; the future says which were refused and why, in order, once durable."""
        reward_steps = self._directory.campaign(name).reward_steps
        round_id, plan = self._rounds.plan(name, number)
        find = self._directory.roster(name).seats.get
        seats = np.array([find(user, -1) for user, _ in reports], np.int64)
        steps = to_steps(np.array([reward for _, reward in reports], np.float64), reward_steps)
        playing = (seats >= 0) & (plan.arms[seats] >= 0)
        valid = np.flatnonzero(playing & (steps >= 0))
        refused = [
            (index, OUT_OF_RANGE if playing[index] else UNKNOWN_USER)
            for index in np.flatnonzero(~playing | (steps < 0)).tolist()
        ]
        answer: Future[Refused] = Future()

        def finish(committed: Future[LongArray]) -> None:
            if not answer.set_running_or_notify_cancel():  # nobody waits any more
                return
            error = committed.exception()
            if error is not None:
                answer.set_exception(error)
                return
            late = committed.result()
            if late.size:
                indices = valid[np.isin(seats[valid], late)].tolist()
                refused.extend((index, LATE) for index in indices)
                refused.sort(key=_index)
            answer.set_result(refused)

        batch = Batch(round_id, plan.groups, seats[valid], steps[valid])
        batch.late.add_done_callback(finish)
        self._waiting.put(batch)
        return answer

    def close(self) -> None:
        """Finish what is waiting, then stop."""
        self._waiting.put(None)
        self._thread.join()

    def _work(self) -> None:
        closed = False
        while not closed:
            batches: list[Batch] = []
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

    def _finish(self, batches: list[Batch]) -> None:
        try:
            results = self._commit(batches)
        except Exception as error:  # each sender gets it and may repeat
            for batch in batches:
                batch.late.set_exception(error)
            return
        for batch, late in zip(batches, results, strict=True):
            batch.late.set_result(late)

    def _commit(self, batches: list[Batch]) -> list[LongArray]:
        """Count batches in one transaction; return the seats of each that come too late."""
        by_round: dict[int, list[Batch]] = {}
        for batch in batches:
            by_round.setdefault(batch.round_id, []).append(batch)
        with self._database.write() as connection:
            late = {
                round_id: self._count(connection, round_id, by_round[round_id])
                for round_id in sorted(by_round)
            }
        return [batch.seats[late[batch.round_id][batch.seats]] for batch in batches]

    def _count(self, connection: Connection, round_id: int, batches: list[Batch]) -> BoolArray:
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
        key = self._keys.get(connection, round_id)
        add_reports(connection, round_id, groups, seats, steps[first], key)
        return np.zeros(groups.size, np.bool_)
