"""The epoch rule: the learner remembers how far each campaign is, and is believed.

A restored backup of the aggregator has forgotten rounds that were opened or released since. If it
opened one of them again, two releases of one round would differ by a few users. So after every
start nothing is released before the learner has said how far it is (``wire.LearnerProgress``), and
rounds that it is ahead of are abandoned. A release is shown to people only once the learner has it
on record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, insert

from shoal.service.aggregator import rounds
from shoal.service.aggregator.campaigns import Directory
from shoal.service.aggregator.keys import RoundKeys
from shoal.service.aggregator.rounds import ABANDONED, OPEN, RELEASED, WANTED, RoundRecord, Rounds
from shoal.service.clock import Clock
from shoal.service.store import aggregator as store
from shoal.wire import LearnerProgress


@dataclass(eq=False)
class Epochs:
    """What the learner has said of its progress since this process started."""

    _directory: Directory
    _rounds: Rounds
    _keys: RoundKeys
    _clock: Clock
    _progress: dict[str, LearnerProgress] = field(default_factory=dict, init=False)

    def progress(self, name: str) -> LearnerProgress | None:
        """Return how far the learner is in a campaign, None before it has said so."""
        return self._progress.get(name)

    def sync_learner(self, progress: Mapping[str, LearnerProgress]) -> list[RoundRecord]:
        """Record how far the learner is; return the last rounds that it has work with.

        A campaign that the learner does not name is new to it.
        """
        work: list[RoundRecord] = []
        for name in self._directory.names():
            current = progress.get(name, LearnerProgress(0, 0))
            self._record(name, current)
            last = self._rounds.latest(name)
            if last is None:
                continue
            done = current.learnt if last.state in (RELEASED, ABANDONED) else current.planned
            if last.state == WANTED or last.number > done:
                work.append(last)
        return work

    def _record(self, name: str, progress: LearnerProgress) -> None:
        if self._progress.get(name) == progress:
            return
        with self._rounds.change(name) as connection:
            abandoned = catch_up(connection, name, progress, now=self._clock())
        self._progress[name] = progress
        if abandoned:
            self._keys.delete_ended()


def catch_up(connection: Connection, campaign: str, progress: LearnerProgress, *, now: int) -> bool:
    """Abandon what this store wrongly holds to be unfinished; return whether there was any."""
    abandoned = False
    last = rounds.latest(connection, campaign)
    read = max(progress.learnt, progress.reading)
    if last is not None:
        state = rounds.lock_state(connection, last.id)  # no report comes in between
        behind = state == WANTED and last.number <= progress.planned
        behind |= state in (WANTED, OPEN) and (
            last.number < progress.planned or last.number <= read
        )
        if behind:
            rounds.abandon(connection, last.id, now=now)
            abandoned = True
    furthest = max(progress.planned, read)
    if furthest > (last.number if last else 0):
        # One row says it for all rounds up to there: the next number is one higher.
        row = {"campaign": campaign, "number": furthest, "state": ABANDONED}
        connection.execute(insert(store.rounds).values(row | {"wanted_at": now, "closed_at": now}))
        abandoned = True
    return abandoned
