"""The learner's loop: send its progress, wait for tasks, learn what was released, plan the next.

Everything it does can be repeated: a plan follows from the stored state and from who may play what
in the round, which the aggregator remembers; a release is the same bytes for ever. So after a
crash it simply starts again, and after a fault it forgets what it has not stored.

A round takes four calls: the tasks with the release, the release itself, the tasks with the round
to plan, and the plan.
"""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.arrays import BoolArray
from shoal.client import Client, ServiceError, Total
from shoal.errors import ShoalError
from shoal.kernels import on_compile
from shoal.service.campaign import Campaign
from shoal.service.learner import calls
from shoal.service.learner.run import CampaignRun, DamagedStateError, Records, UndefinedError
from shoal.service.store import Database
from shoal.wire import LearnerProgress, Sync, Task

log = logging.getLogger("shoal.service")

_NO_RELEASE = frozenset({"round-abandoned", "unknown-round"})
_PLAN_AGAIN = frozenset({"roster-changed", "plan-frozen", "round-not-open"})
_WRONG_TOKEN = frozenset({"unauthenticated", "wrong-role"})
_QUIET_SECONDS = 60.0  # for which a warning is not repeated


class DefinitionChangedError(ShoalError):
    """A campaign was lost and created again, with a lower C for example."""


class Learner:
    """Plans and learns for every campaign of the aggregator that ``client`` has a token of."""

    def __init__(self, database: Database, client: Client) -> None:
        self.database = database
        self._client = client
        self._records = Records(database)
        self.runs: dict[str, CampaignRun] = {}
        self.quarantined: dict[str, LearnerProgress] = {}  # whose states can't be read
        self._undefined: dict[str, LearnerProgress] = {}  # whose definition was damaged as well
        self._deleted = self._records.deleted()  # with their last rounds
        self.connected = False
        self._warned_at: dict[str, float] = {}  # by message
        self._step = "plan"  # or "release": what is worked on
        self._compiled: set[str] = set()  # steps that were announced to compile
        self._stale: set[str] = set(self._records.names())  # whose runs are to be read again
        self._load_stale()

    def work(self, *, wait: float) -> int:
        """Do all tasks there are, waiting up to ``wait`` seconds for some; return how many."""
        self._forget_requested()
        progress = (
            self.quarantined
            | self._undefined
            | {
                name: LearnerProgress(run.planned, run.learnt, run.reading)
                for name, run in self.runs.items()
            }
        )
        forgotten = self._records.forgotten()
        sync = Sync(progress, wait, sorted(self.quarantined), self._deleted, forgotten)
        answer = self._client.run(calls.read_tasks(sync))
        if forgotten:
            self._records.keep_told()
        tasks = answer.tasks
        self.connected = True
        for name in answer.deleted:
            self._records.delete(name)
            self._deleted = self._records.deleted()
            for known in (self.runs, self.quarantined, self._undefined):
                known.pop(name, None)
        for name in answer.archived:
            self._records.ask_to_relearn(name)  # if an old backup of the aggregator has it again
        self._forget_requested()
        for task in tasks:
            try:
                self._advance(task)
            except Exception as error:
                self._warn(f"a campaign waits: {_reason(error)}")
                self.connected = False
                self._forget(task.campaign)
        return len(tasks)

    def work_until(self, stopped: threading.Event, *, wait: float = 20.0) -> None:
        """Work until stopped; a fault is logged and tried again."""
        with on_compile(self._announce_compilation):
            while not stopped.is_set():
                try:
                    self.work(wait=wait if self.connected else 0.0)
                except Exception as error:
                    self._warn(f"the learner tries again: {_reason(error)}")
                    self.connected = False
                if not self.connected:
                    stopped.wait(0.5)

    def _warn(self, message: str) -> None:
        """Log a fault, the same one once in a while only."""
        now = time.monotonic()
        if now - self._warned_at.get(message, -_QUIET_SECONDS) >= _QUIET_SECONDS:
            self._warned_at[message] = now
            log.warning("%s", message)

    def _announce_compilation(self) -> None:
        if self._step not in self._compiled:
            self._compiled.add(self._step)
            log.info(
                "compiling, once: the first %s on a machine may take a minute or two", self._step
            )

    def _forget_requested(self) -> None:
        """Forget what is to be learnt again."""
        self._stale.update(self._records.forget_requested())
        self._load_stale()

    def _load_stale(self) -> None:
        """Read runs from the store; a campaign whose state is damaged is left alone."""
        for name in sorted(self._stale):
            self.runs.pop(name, None)
            self.quarantined.pop(name, None)
            try:
                self.runs[name] = self._records.load(name)
            except UndefinedError:
                self._undefined[name] = self._records.progress(name)
            except DamagedStateError as error:
                log.error("a campaign is quarantined, its state is damaged: %s", error)
                self.quarantined[name] = self._records.progress(name)
            self._stale.discard(name)

    def _advance(self, task: Task) -> None:
        name = task.campaign
        run = self.runs.get(name) or self._add(name, task.definition)
        ended = task.state in ("released", "abandoned")
        last = task.round - (not ended)
        if run.reading < last:
            run.reading = last
            self._records.keep_progress(name, run)
        while run.learnt < last:
            self._learn(name, run)
        if task.state == "wanted":
            self._plan(task, run)
        elif run.planned < task.round:
            self._keep_planned(name, run, task.round)

    def _forget(self, name: str) -> None:
        """Go back to what is stored, before anything else is done."""
        if name in self.runs:
            self._stale.add(name)

    def _add(self, name: str, definition: dict[str, Any]) -> CampaignRun:
        run = CampaignRun(Campaign.model_validate(definition))
        if name in self._undefined:  # it is to be learnt again, and began as the aggregator says
            run.follow(self._undefined.pop(name))
            self._records.define(name, run)
        elif name in self._records.names():
            run = self._records.load(name)
        else:
            end = self._deleted.get(name, 0)  # a restored aggregator has it again
            run.follow(LearnerProgress(end, 0, end))
            self._records.add(name, run)
            self._deleted.pop(name, None)
        self.runs[name] = run
        return run

    def _learn(self, name: str, run: CampaignRun) -> None:
        totals, counted = self._collect(name, run, run.learnt + 1)
        self._step = "release"
        moved_on = run.learn(totals, counted)
        run.planned = max(run.planned, run.learnt)
        self._records.keep_learnt(name, run, moved_on=moved_on)

    def _collect(
        self, name: str, run: CampaignRun, number: int
    ) -> tuple[Sequence[Total], BoolArray]:
        """Return a round's totals and the seats behind them; none if it has no release."""
        seats = run.campaign.seats
        try:
            if not run.policy_has_plan or run.plan_round != number:
                n_arms = run.campaign.n_arms
                eligible = self._client.run(calls.read_eligible(name, number, seats, n_arms))
                run.plan(number, *eligible)
            release, counted, groups = self._client.run(calls.read_release(name, number, seats))
        except ServiceError as error:
            if error.name not in _NO_RELEASE:
                raise
        else:
            if run.adopt(groups, release.plan):
                return release.totals, counted
            # Another learner's, before this one was restored: whose totals is not known.
            log.warning("a release follows another plan; its totals are left out")
        return [], np.zeros(seats, bool)

    def _plan(self, task: Task, run: CampaignRun) -> None:
        _check_definition(task, run)
        name, number = task.campaign, task.round
        seats, n_arms = run.campaign.seats, run.campaign.n_arms
        occupied, offered, held_out = calls.unpack_eligible(task.eligible, seats, n_arms)
        self._step = "plan"
        arms, groups = run.plan(number, occupied, offered, held_out)
        estimates = run.estimates(occupied & ~held_out, offered)
        try:
            self._client.run(calls.publish_plan(name, number, arms, groups, estimates))
        except ServiceError as error:
            if error.name not in _PLAN_AGAIN:
                raise
            self._forget(name)  # users came or went, or the plan was frozen before a crash
        else:
            self._keep_planned(name, run, number)

    def _keep_planned(self, name: str, run: CampaignRun, number: int) -> None:
        run.planned = number
        self._records.keep_progress(name, run)


def _check_definition(task: Task, run: CampaignRun) -> None:
    """Refuse to go on with a campaign of the same name that promises something else."""
    now, then = (
        campaign.model_dump(exclude={"arms"})  # arms may be added
        for campaign in (Campaign.model_validate(task.definition), run.campaign)
    )
    if now != then:
        raise DefinitionChangedError(
            "a campaign must be what it was when it began; got another definition."
        )


def _reason(error: Exception) -> str:
    """Return what kind of fault it is; its message may hold a secret."""
    if not isinstance(error, ServiceError):
        return type(error).__name__
    if error.name in _WRONG_TOKEN:
        return f"{error.name}; SHOAL_LEARNER_TOKEN must be a learner's token of this aggregator"
    return error.name
