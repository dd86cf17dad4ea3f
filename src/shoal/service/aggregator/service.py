"""The aggregator as one object: rounds, reports and releases, each in its own transaction.

One process per store. What is kept in memory can't change (campaigns, frozen plans) or is changed
by this process alone (the roster); everything that decides is read inside the transaction.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from operator import itemgetter
from pathlib import Path

import numpy as np
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from shoal.arrays import BoolArray, LongArray
from shoal.service.aggregator import epochs, release, rounds, summaries
from shoal.service.aggregator.arms import offered
from shoal.service.aggregator.directory import Directory
from shoal.service.aggregator.epochs import LearnerProgress
from shoal.service.aggregator.group_sums import add_reports
from shoal.service.aggregator.plans import Plans
from shoal.service.aggregator.report_queue import Batch, ReportQueue
from shoal.service.aggregator.round_keys import RoundKeys
from shoal.service.aggregator.rounds import ABANDONED, OPEN, RELEASED, WANTED, FrozenPlan, Round
from shoal.service.aggregator.tokens import Access
from shoal.service.clock import Clock, system_clock
from shoal.service.notifier import Notifier
from shoal.service.problems import (
    INVALID,
    LATE,
    LEARNER_SILENT,
    NOT_RELEASED,
    OUT_OF_RANGE,
    ROUND_ABANDONED,
    ROUND_NOT_OPEN,
    UNKNOWN_USER,
    Kind,
    ProblemError,
)
from shoal.service.reward_steps import to_steps
from shoal.service.store import Database

Refused = list[tuple[int, Kind]]  # position in the batch, and why

log = logging.getLogger("shoal.service")
_index = itemgetter(0)


class Aggregator:
    """Everything the aggregator does.

    Parameters
    ----------
    database
        Its store, at the newest schema.
    key
        Blinds the sums at rest.
    secrets
        The folder of a secret for each open round; without one, ``key`` alone blinds.
    floor
        Least C that a campaign may have.
    clock
        Milliseconds since 1970.
    """

    def __init__(
        self,
        database: Database,
        *,
        key: bytes,
        secrets: Path | None = None,
        floor: int = 1,
        clock: Clock = system_clock,
    ) -> None:
        self.database = database
        self.access = Access(database)
        self.directory = Directory(database, floor=floor, clock=clock)
        self.notifier = Notifier()
        self.clock = clock
        self.on_schedule = True  # whether the last tick did all that was due
        self.on_release: Callable[[release.Document], None] = lambda document: None
        self._keys = RoundKeys(key, secrets)
        self._lock = threading.RLock()
        self._plans = Plans()
        self._latest: dict[str, Round | None] = {}
        self._seated: dict[str, tuple[int, BoolArray]] = {}  # as the learner was told
        self._progress: dict[str, LearnerProgress] = {}
        self._queue = ReportQueue(self._commit)
        self._forget_keys()  # one may be left of a round whose release was the last before a crash

    def close(self) -> None:
        """Finish the reports that are waiting and let go of the store."""
        self._queue.close()
        self.database.close()

    def latest(self, name: str) -> Round | None:
        """Return a campaign's last round, None before the first; a look-up in memory."""
        try:
            return self._latest[name]
        except KeyError:
            self.directory.campaign(name)
        with self._lock, self.database.read() as connection:
            found = self._latest[name] = rounds.latest(connection, name)
        return found

    def changed(self, name: str) -> None:
        """Look at the last round anew, and wake whoever waits for it."""
        with self._lock:
            self._latest.pop(name, None)
        self.notifier.notify()

    def round(self, name: str, number: int) -> Round:
        """Return a round, or refuse its number."""
        self.directory.campaign(name)
        with self.database.read() as connection:
            return rounds.find(connection, name, number)

    def want(self, name: str, number: int) -> bool:
        """Ask the learner for the next round; return False where that has been done."""
        campaign = self.directory.campaign(name)
        with self._lock, self.database.write() as connection:
            new = rounds.want(connection, name, campaign, number, now=self.clock())
        self.changed(name)
        return new

    def freeze(self, name: str, number: int, plan: FrozenPlan) -> bool:
        """Open a wanted round with the learner's plan; False where it is frozen already."""
        campaign = self.directory.campaign(name)
        roster = self.directory.roster(name)
        with self._lock, self.directory.lock:  # nobody joins or leaves before the commit
            occupied = self._playing(name, number, roster.occupied(campaign.seats))
            arms = offered(self.directory.arms(name), number, campaign.n_arms)
            with self.database.write() as connection:
                round_ = rounds.find(connection, name, number, lock=True)
                new = rounds.freeze(
                    connection, round_, plan, campaign, occupied, arms, now=self.clock()
                )
        self._seated.pop(name, None)
        self._plans.keep(name, number, (round_.id, plan))
        self.changed(name)
        return new

    def _playing(self, name: str, number: int, occupied: BoolArray) -> BoolArray:
        """Return who plays a wanted round: whoever joins while the learner plans plays the next."""
        told, seated = self._seated.get(name, (0, occupied))
        return seated if told == number and not (seated & ~occupied).any() else occupied

    def keep_estimates(self, name: str, number: int, millionths: bytes) -> None:
        """Keep what the learner believes of the arms before a round, over those who play it."""
        _, plan = self.plan(name, number)
        least = self.directory.campaign(name).least
        if (plan.arms >= 0).sum() < least:
            raise ProblemError(INVALID, f"estimates must be of at least {least} users.")
        with self._lock, self.database.write() as connection:
            summaries.keep_estimates(connection, name, number, millionths)

    def eligible(self, name: str, number: int) -> tuple[BoolArray, BoolArray]:
        """Return who may play what in a round: seats, (n_seats,), and arms, (n_arms,)."""
        campaign = self.directory.campaign(name)
        if self.round(name, number).state == WANTED:
            occupied = self.directory.roster(name).occupied(campaign.seats)
            self._seated[name] = number, occupied
        else:
            occupied = self.plan(name, number)[1].arms >= 0
        return occupied, offered(self.directory.arms(name), number, campaign.n_arms)

    def add_arm(self, name: str, arm: str) -> bool:
        """Offer a new arm from the next round on; return False where it is offered already."""
        with self._lock:  # nobody asks for a round meanwhile
            return self.directory.add_arm(name, arm, number=self._next(name))

    def retire_arm(self, name: str, arm: str) -> bool:
        """Play an arm no more from the next round on; False where it is retired already."""
        with self._lock:
            return self.directory.retire_arm(name, arm, number=self._next(name))

    def _next(self, name: str) -> int:
        last = self.latest(name)
        return last.number + 1 if last else 1

    def plan(self, name: str, number: int) -> tuple[int, FrozenPlan]:
        """Return a round's row and its frozen plan."""
        found = self._plans.find(name, number)
        if found is None:
            round_ = self.round(name, number)
            with self.database.read() as connection:
                plan = rounds.load_plan(connection, round_.id)
            if plan is None:
                raise ProblemError(ROUND_ABANDONED if round_.state == ABANDONED else ROUND_NOT_OPEN)
            found = round_.id, plan
            self._plans.keep(name, number, found)
        return found

    def cached_round(self, name: str, number: int | None) -> int | None:
        """Return a round's number, by default the last's, if no look-up in it needs the store."""
        if number is None:
            last = self._latest.get(name)
            number = last.number if last else 0
        known = self.directory.is_cached(name) and self._plans.find(name, number) is not None
        return number if known else None

    def fetch(self, name: str, number: int | None) -> int:
        """Have everything about a round at hand, by default the last; return its number."""
        if number is None:
            last = self.latest(name)
            if last is None:
                raise ProblemError(ROUND_NOT_OPEN)
            number = last.number
        self.plan(name, number)
        self.directory.roster(name)
        return number

    def report(
        self, name: str, number: int, reports: Sequence[tuple[str, float]]
    ) -> Future[Refused]:
        """Count reports; the future says which were refused and why, in order, once durable."""
        reward_steps = self.directory.campaign(name).reward_steps
        round_id, plan = self.plan(name, number)
        find = self.directory.roster(name).seats.get
        seats = np.array([find(user, -1) for user, _ in reports], np.int64)
        steps = to_steps(np.array([reward for _, reward in reports], np.float64), reward_steps)
        known = (seats >= 0) & (plan.arms[seats] >= 0)
        places = np.flatnonzero(known & (steps >= 0))
        refused = [
            (index, OUT_OF_RANGE if known[index] else UNKNOWN_USER)
            for index in np.flatnonzero(~known | (steps < 0)).tolist()
        ]
        answer: Future[Refused] = Future()

        def settle(done: Future[LongArray]) -> None:
            if not answer.set_running_or_notify_cancel():  # nobody waits any more
                return
            error = done.exception()
            if error is not None:
                answer.set_exception(error)
                return
            late = done.result()
            if late.size:
                indices = places[np.isin(seats[places], late)].tolist()
                refused.extend((index, LATE) for index in indices)
                refused.sort(key=_index)
            answer.set_result(refused)

        batch = Batch(round_id, plan.groups, seats[places], steps[places])
        self._queue.submit(batch).add_done_callback(settle)
        return answer

    def _commit(self, batches: list[Batch]) -> list[LongArray]:
        by_round: dict[int, list[Batch]] = {}
        for batch in batches:
            by_round.setdefault(batch.round_id, []).append(batch)
        late: dict[int, BoolArray] = {}
        with self.database.write() as connection:
            for round_id, group in sorted(by_round.items()):
                groups = group[0].groups
                if rounds.state(connection, round_id) == OPEN:
                    seats = np.concatenate([batch.seats for batch in group])
                    steps = np.concatenate([batch.steps for batch in group])
                    seats, first = np.unique(seats, return_index=True)  # a user's first counts
                    add_reports(
                        connection,
                        round_id,
                        groups,
                        seats,
                        steps[first],
                        self._keys.of(connection, round_id),
                    )
                    late[round_id] = np.zeros(groups.size, np.bool_)
                else:
                    late[round_id] = ~self._reported(connection, round_id, groups.size)
        return [batch.seats[late[batch.round_id][batch.seats]] for batch in batches]

    def _reported(self, connection: Connection, round_id: int, n_seats: int) -> BoolArray:
        if rounds.state(connection, round_id) != RELEASED:
            return np.zeros(n_seats, np.bool_)
        return release.who(connection, round_id, n_seats, counted=False)

    def _release(self, connection: Connection, name: str, number: int) -> release.Document | None:
        campaign, progress = self.directory.campaign(name), self._progress.get(name)
        if progress is None:
            raise ProblemError(LEARNER_SILENT)
        round_ = rounds.find(connection, name, number, lock=True)
        if round_.state == RELEASED:
            return None
        if round_.state == ABANDONED or number <= max(progress.learnt, progress.reading):
            raise ProblemError(ROUND_ABANDONED)
        if round_.state == WANTED:
            raise ProblemError(ROUND_NOT_OPEN)
        plan = rounds.load_plan(connection, round_.id)
        assert plan is not None
        key = self._keys.of(connection, round_.id)
        done = release.release(connection, round_, plan, campaign, key, now=self.clock())
        summaries.write(connection, done, plan)
        return done

    def release(self, name: str, number: int) -> release.Document | None:
        """Close a round and store its release; None where that has been done."""
        self.directory.campaign(name)
        try:
            with self._lock, self.database.write() as connection:
                done = self._release(connection, name, number)
        finally:  # a commit may have taken effect and raised all the same
            self.changed(name)
        self._forget_keys()
        if done is not None:
            self.on_release(done)
        return done

    def _forget_keys(self) -> None:
        """Remove the secrets of rounds that have ended; where that fails, the next time will do."""
        if self._keys.folder is None:
            return
        try:
            with self._lock, self.database.read() as connection:
                self._keys.forget_ended(connection)
        except (OSError, SQLAlchemyError) as error:
            log.error("a round's secret can't be removed: %s", type(error).__name__)

    def released(self, name: str, number: int, *, to_learner: bool = False) -> bytes:
        """Return a release, byte for byte; people see it once the learner has it on record."""
        round_ = self._released_round(name, number)
        progress = self._progress.get(name)
        if not to_learner and (progress is None or progress.learnt < number):
            raise ProblemError(LEARNER_SILENT)
        with self.database.read() as connection:
            return release.stored(connection, round_.id)

    def shown(self, name: str) -> int | None:
        """Return the last round that people may see, None before the learner has been heard."""
        self.directory.campaign(name)
        progress = self._progress.get(name)
        return None if progress is None else progress.learnt

    def counted(self, name: str, number: int) -> BoolArray:
        """Return the seats that are part of a released total, (n_seats,); for the learner."""
        round_ = self._released_round(name, number)
        with self.database.read() as connection:
            seats = self.directory.campaign(name).seats
            return release.who(connection, round_.id, seats, counted=True)

    def _released_round(self, name: str, number: int) -> Round:
        round_ = self.round(name, number)
        if round_.state == ABANDONED:
            raise ProblemError(ROUND_ABANDONED)
        if round_.state != RELEASED:
            raise ProblemError(NOT_RELEASED)
        return round_

    def all_reported(self, round_: Round) -> bool:
        """Return whether everyone in an open round has reported; for the schedule only."""
        _, plan = self.plan(round_.campaign, round_.number)
        with self.database.read() as connection:
            return rounds.n_reports(connection, round_.id) == int((plan.arms >= 0).sum())

    def sync_learner(self, progress: Mapping[str, LearnerProgress]) -> list[Round]:
        """Take note of how far the learner is; return the last rounds that it has work with.

        A campaign that the learner does not name is new to it.
        """
        work: list[Round] = []
        for name in self.directory.names():
            known = progress.get(name, LearnerProgress(0, 0))
            last = self._catch_up(name, known)
            if last is None:
                continue
            ended = last.state in (RELEASED, ABANDONED)
            if last.state == WANTED or last.number > (known.learnt if ended else known.planned):
                work.append(last)
        return work

    def _catch_up(self, name: str, known: LearnerProgress) -> Round | None:
        before = self._progress.get(name)
        if before != known:
            with self._lock, self.database.write() as connection:
                abandoned = epochs.catch_up(connection, name, known, now=self.clock())
            if abandoned:
                self._forget_keys()
            self._progress[name] = known
            self.changed(name)
        return self.latest(name)
