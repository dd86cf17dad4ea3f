"""The epoch rule (threat 17): the learner remembers how far each campaign is, and is believed.

A restored backup of the aggregator has forgotten rounds that were opened or released since. If it
opened one of them again, two releases of one round would differ by a few users. So after every
start the aggregator waits for the learner to say which round it last had frozen (``planned``), last
learnt (``learnt``), and up to which one it may have read the release (``reading``, put on record
*before* it reads). Rounds that the learner is ahead of are abandoned, never played again.
Nothing is released before that, and a release is shown to people only once the learner has it on
record.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import Connection, insert

from shoal.service.aggregator import rounds
from shoal.service.store import aggregator as store


@dataclass(frozen=True, slots=True)
class LearnerProgress:
    """How far the learner is in a campaign."""

    planned: int
    learnt: int
    reading: int = field(default=0, kw_only=True)


def catch_up(connection: Connection, campaign: str, progress: LearnerProgress, *, now: int) -> bool:
    """Abandon what this store wrongly holds to be unfinished; return whether there was any."""
    abandoned = False
    last = rounds.latest(connection, campaign)
    if last is not None:
        state = rounds.state(connection, last.id)  # no report comes in between
        behind = state == rounds.WANTED and last.number <= progress.planned
        behind |= state in (rounds.WANTED, rounds.OPEN) and last.number < progress.planned
        known = max(progress.learnt, progress.reading)
        behind |= state in (rounds.WANTED, rounds.OPEN) and last.number <= known
        if behind:
            rounds.abandon(connection, last.id, now=now)
            abandoned = True
    furthest = max(progress.planned, progress.learnt, progress.reading)
    if furthest > (last.number if last else 0):
        # One row says it for all rounds up to there: the next number is one higher.
        row = {"campaign": campaign, "number": furthest, "state": rounds.ABANDONED}
        connection.execute(insert(store.rounds).values(row | {"wanted_at": now, "closed_at": now}))
        abandoned = True
    return abandoned
