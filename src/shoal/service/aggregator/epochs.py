"""The epoch rule: the learner remembers how far each campaign is, and is believed.

A restored backup of the aggregator has forgotten rounds that were opened or released since. If it
opened one of them again, two releases of one round would differ by a few users. So after every
start nothing is released before the learner has said how far it is (``wire.LearnerProgress``). A
release is shown to people only once the learner has it on record. It remembers campaigns that were
deleted as well, for a backup may be older than that.

A learner that knows of later rounds than this store is not followed by itself: it may be wrong, or
lie, and an open round may hold reports that were acknowledged. Nothing is released, shown or
planned in the campaign until an operator abandons those rounds, or has the learner forget them. A
store without the campaign's later rounds loses nothing by waiting.

One learner is meant. Where two have spoken since the start, the furthest claim of either holds: a
standby that is behind must not free rounds that the other remembers.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sqlalchemy import Connection, func, insert, select

from shoal.service import problems
from shoal.service.aggregator import audit_log, rounds
from shoal.service.aggregator.campaigns import Directory
from shoal.service.aggregator.keys import RoundKeys
from shoal.service.aggregator.rounds import ABANDONED, OPEN, RELEASED, WANTED, RoundRecord, Rounds
from shoal.service.problems import ProblemError, Reason
from shoal.service.store import Clock
from shoal.service.store import aggregator as store
from shoal.wire import LearnerProgress

MAX_ABANDONED = 100_000  # rounds that can be abandoned at once: no campaign is ended by a number

log = logging.getLogger("shoal.service")


@dataclass(eq=False)
class Epochs:
    """What the learner, or any of several, has said of its progress since this process started.

    ``on_abandon`` is called with the number of rounds whenever an operator abandons some.
    """

    _directory: Directory
    _rounds: Rounds
    _keys: RoundKeys
    _clock: Clock
    last_contact_at: int = field(default=0, init=False)  # when the learner was last in touch
    on_abandon: Callable[[int], None] = lambda n_rounds: None
    _progress: dict[str, LearnerProgress] = field(default_factory=dict, init=False)
    _claims: dict[str, LearnerProgress] = field(default_factory=dict, init=False)
    _quarantined: set[str] = field(default_factory=set, init=False)

    def progress(self, name: str) -> LearnerProgress | None:
        """Return how far the learner is in a campaign, None before it is known."""
        return self._progress.get(name)

    def shown(self, name: str) -> int | None:
        """Return the last round that people may see, None before the learner has synced.

        Of an archived campaign it is the last one: the learner had all of them on record, and has
        forgotten them since.
        """
        if self._directory.is_archived(name):
            last = self._rounds.latest(name)
            return last.number if last else 0
        progress = self._progress.get(name)
        return None if progress is None else progress.learnt

    def ahead(self, name: str) -> int | None:
        """Return the round that the learner says it knows of beyond this store's, if any."""
        claim = self._claims.get(name)
        return None if claim is None else claim.furthest

    def n_ahead(self) -> int:
        """Return in how many campaigns the learner is ahead of this store."""
        return len(self._claims)

    def learner_state(self, name: str) -> str:
        """Return whether the learner has named a campaign, and which state it is in."""
        if name in self._quarantined:
            return "quarantined"
        if name in self._claims:
            return "ahead"
        return "in touch" if name in self._progress else "silent"

    def reason(self, name: str) -> Reason:
        """Return why nothing can be released or shown."""
        return problems.LEARNER_AHEAD if name in self._claims else problems.LEARNER_SILENT

    def sync_learner(
        self,
        progress: Mapping[str, LearnerProgress],
        *,
        covers: Callable[[str], bool] = lambda name: True,
        quarantined: Collection[str] = (),
        deleted: Mapping[str, int] = MappingProxyType({}),
    ) -> list[RoundRecord]:
        """Record how far the learner is; return the last rounds that it has work with.

        A campaign that its token ``covers`` and it does not name is new to it. One that it knows to
        be ``deleted`` is back by a restored backup: it was played up to that round.
        """
        self.last_contact_at = self._clock()
        work: list[RoundRecord] = []
        names, archived = self._directory.names(), self._directory.archived()
        for name in self._claims.keys() - names:  # deleted since
            del self._claims[name]
        for name in filter(covers, names):
            end = deleted.get(name, 0)
            current = progress.get(name, LearnerProgress(end, 0, end))
            last = self._rounds.latest(name)
            self._record(name, last, current)
            (self._quarantined.add if name in quarantined else self._quarantined.discard)(name)
            if last is None or name in self._claims or name in quarantined or name in archived:
                continue
            ended = last.state in (RELEASED, ABANDONED)
            to_learn = current.learnt < last.number - (not ended)
            to_plan = last.state == WANTED or (not ended and current.planned < last.number)
            if to_learn or to_plan:
                work.append(last)
        return work

    def _record(self, name: str, last: RoundRecord | None, progress: LearnerProgress) -> None:
        claim = _furthest(self._claims.get(name), progress)
        if not is_ahead(last, claim):
            self._claims.pop(name, None)
            self._progress[name] = progress
            return
        if self._claims.get(name) != claim:
            log.warning("the learner is ahead of this store; an operator must abandon the rounds")
        self._claims[name] = claim
        self._progress.pop(name, None)

    def forget_claims(self, names: Iterable[str]) -> None:
        """Drop the claims in campaigns whose rounds an operator had the learner forget."""
        for name in names:
            if self._claims.pop(name, None):
                log.warning("the learner has forgotten rounds, as it was asked to")

    def abandon(self, name: str, through: int) -> int:
        """Give up all rounds up to one that are not released; return how many.

        It is the last round, or one that the learner knows of.
        """
        claim = self._claims.get(name)
        with self._rounds.change(name) as connection:
            last = rounds.latest(connection, name)
            number = last.number if last else 0
            furthest = max(number, min(claim.furthest, number + MAX_ABANDONED) if claim else 0)
            if not max(number, 1) <= through <= furthest:
                rule = (
                    f"from {max(number, 1)} to {furthest}"
                    if furthest
                    else "a round: there is none yet"
                )
                raise ProblemError(problems.INVALID, f"through must be {rule}; got {through}.")
            n_rounds = abandon_through(connection, name, through, now=self._clock())
            if n_rounds:
                details = {"through": through, "rounds": n_rounds, "state": last and last.state}
                now = self._clock()
                audit_log.append(connection, "round.abandon", campaign=name, now=now, **details)
        if claim is not None:
            self._record(name, self._rounds.latest(name), claim)
        self._keys.delete_ended()
        self.on_abandon(n_rounds)
        return n_rounds


def _furthest(claim: LearnerProgress | None, progress: LearnerProgress) -> LearnerProgress:
    """Return the furthest that either says, of each step of a round."""
    if claim is None:
        return progress
    return LearnerProgress(
        max(claim.planned, progress.planned),
        max(claim.learnt, progress.learnt),
        max(claim.reading, progress.reading),
    )


def is_ahead(last: RoundRecord | None, progress: LearnerProgress) -> bool:
    """Return whether the learner knows of more than a store whose last round this is."""
    number, state = (last.number, last.state) if last else (0, RELEASED)
    if progress.furthest > number or (state == WANTED and number <= progress.planned):
        return True
    return state in (WANTED, OPEN) and number <= max(progress.learnt, progress.reading)


def abandon_through(connection: Connection, campaign: str, through: int, *, now: int) -> int:
    """Abandon a last round that is not over and all later ones up to a number; return how many."""
    last = rounds.latest(connection, campaign)
    number, n_rounds = (last.number, 0) if last else (0, 0)
    if last is not None and rounds.lock_state(connection, last.id) in (WANTED, OPEN):
        rounds.abandon(connection, last.id, now=now)  # no report comes in between
        n_rounds = 1
    if through > number:
        # One row says it for all rounds up to there: the next number is one higher.
        row = {"campaign": campaign, "number": through, "state": ABANDONED}
        connection.execute(insert(store.rounds).values(row | {"wanted_at": now, "closed_at": now}))
        n_rounds += through - number
    return n_rounds


def count_abandoned(connection: Connection, campaign: str) -> int:
    """Return how many rounds of a campaign were abandoned; numbers are missing for no other."""
    table = store.rounds
    of_campaign = table.c.campaign == campaign
    last = connection.scalar(select(func.max(table.c.number)).where(of_campaign)) or 0
    played = select(func.count()).where(of_campaign, table.c.state != ABANDONED)
    return last - (connection.scalar(played) or 0)
