"""The learner's loop: say how far it is, wait for work, learn what was released, plan the next.

Everything it does can be repeated: a plan follows from the stored state and from who may play what
in the round, which the aggregator remembers; a release is the same bytes for ever. So after a
crash it simply starts again, and after a fault it forgets what it has not stored.
"""

from __future__ import annotations

import logging
import threading

import numpy as np

from shoal.arrays import BoolArray
from shoal.client import Client, ServiceError, Total, Work, calls
from shoal.errors import ShoalError
from shoal.service.campaign import Campaign
from shoal.service.learner.records import Records
from shoal.service.learner.run import Run
from shoal.service.store import Database

log = logging.getLogger("shoal.service")

_NO_RELEASE = frozenset({"round-abandoned", "unknown-round"})
_AGAIN = frozenset({"roster-changed", "plan-frozen", "round-not-open"})


class DefinitionChangedError(ShoalError):
    """A campaign was lost and made anew, with another C for example (threats 17 and 22)."""


class Learner:
    """Plans and learns for every campaign of one aggregator.

    Parameters
    ----------
    database
        Its own store, at the newest schema.
    client
        The aggregator, seen with a learner's token.
    """

    def __init__(self, database: Database, client: Client) -> None:
        self.database = database
        self._client = client
        self._records = Records(database)
        self.runs = {name: self._records.load(name) for name in self._records.names()}
        self.in_touch = False
        self._doubtful: set[str] = set()  # runs in memory that may be ahead of the store

    def work(self, *, wait: float) -> int:
        """Do all work there is, waiting up to ``wait`` seconds for some; return how much."""
        for name in sorted(self._doubtful):
            self.runs[name] = self._records.load(name)
            self._doubtful.discard(name)
        progress = {
            name: {"planned": run.planned, "learnt": run.learnt, "reading": run.reading}
            for name, run in self.runs.items()
        }
        found = self._client.run(calls.sync(progress, wait))
        self.in_touch = True
        for work in found:
            try:
                self._advance(work)
            except Exception as error:
                log.warning("a campaign waits: %s", _reason(error))
                self.in_touch = False
                self._forget(work.campaign)
        return len(found)

    def work_until(self, stopped: threading.Event, *, wait: float = 20.0) -> None:
        """Work until told to stop; a fault is logged and tried again."""
        while not stopped.is_set():
            try:
                self.work(wait=wait if self.in_touch else 0.0)
            except Exception as error:
                log.warning("the learner tries again: %s", _reason(error))
                self.in_touch = False
            if not self.in_touch:
                stopped.wait(0.5)

    def _advance(self, work: Work) -> None:
        name = work.campaign
        run = self.runs.get(name) or self._add(name)
        ended = work.state in ("released", "abandoned")
        last = work.round - (not ended)
        if run.reading < last:
            run.reading = last
            self._records.keep_reading(name, run)
        while run.learnt < last:
            self._learn(name, run)
        if work.state == "wanted":
            self._plan(name, run, work.round)
        elif run.planned < work.round:
            self._note_planned(name, run, work.round)

    def _forget(self, name: str) -> None:
        """Go back to what is stored, before anything else is done."""
        if name in self.runs:
            self._doubtful.add(name)

    def _add(self, name: str) -> Run:
        if name in self._records.names():
            run = self._records.load(name)
        else:
            run = Run(self._definition(name))
            self._records.add(name, run)
        self.runs[name] = run
        return run

    def _learn(self, name: str, run: Run) -> None:
        number = run.learnt + 1
        totals: list[Total] = []
        try:
            if not run.asked or run.drawn != number:
                run.plan(number, *self._eligible(name, run, number))
            found = self._client.release(name, number)
        except ServiceError as error:
            if error.name not in _NO_RELEASE:
                raise
        else:
            if found.plan == run.plan_hash:
                totals = found.totals
            else:  # another learner's, before this one was restored: whose totals is not known
                log.warning("a release follows another plan; its totals are left out")
        seats = run.campaign.seats
        counted = self._client.run(calls.counted(name, number, seats)) if totals else None
        moved_on = run.learn(totals, np.zeros(seats, bool) if counted is None else counted)
        run.planned = max(run.planned, run.learnt)
        self._records.keep_learnt(name, run, moved_on=moved_on)

    def _plan(self, name: str, run: Run, number: int) -> None:
        self._check_definition(name, run)
        occupied, offered = self._eligible(name, run, number)
        arms, groups = run.plan(number, occupied, offered)
        try:
            self._client.run(calls.freeze(name, number, arms, groups))
        except ServiceError as error:
            if error.name not in _AGAIN:
                raise
            self._forget(name)
            return  # users came or went, or the plan was frozen before a crash: look again
        self._note_planned(name, run, number)
        found = run.estimates(occupied, offered)
        if found is not None:
            self._client.run(calls.estimates(name, number, *found))

    def _check_definition(self, name: str, run: Run) -> None:
        """Refuse to go on with a campaign of the same name that promises something else."""
        now, then = (
            campaign.model_dump(exclude={"arms"})  # arms may be added
            for campaign in (self._definition(name), run.campaign)
        )
        if now != then:
            raise DefinitionChangedError(
                "a campaign must be what it was when it began; got another definition."
            )

    def _definition(self, name: str) -> Campaign:
        return Campaign.model_validate(self._client.campaign(name)["definition"])

    def _eligible(self, name: str, run: Run, number: int) -> tuple[BoolArray, BoolArray]:
        seats, arms = run.campaign.seats, run.campaign.n_arms
        return self._client.run(calls.eligible(name, number, seats, arms))

    def _note_planned(self, name: str, run: Run, number: int) -> None:
        run.planned = number
        self._records.keep_planned(name, run)


def _reason(error: Exception) -> str:
    """Return what kind of fault it is; its message may tell too much."""
    return error.name if isinstance(error, ServiceError) else type(error).__name__
