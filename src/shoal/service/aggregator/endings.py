"""How a campaign ends: archived, which forgets people and keeps totals, then deleted.

An archived campaign opens no round and takes no user. Its users' names are replaced. Its plans (who
played which arm, and with whom), who was held out and who was behind a total are deleted: nothing
can be learnt again from its releases, which stay as they are. The learner is told to forget its
state. Deleting removes
every row of it but one: its name is never given again, because the learner, which remembers how far
the campaign was, would take a new one for it.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, Text, cast, delete, literal, select, update

from shoal.service import problems
from shoal.service.aggregator import audit_log
from shoal.service.aggregator.campaigns import ARCHIVED, DELETED, Directory, ending_of
from shoal.service.aggregator.epochs import Epochs
from shoal.service.aggregator.keys import RoundKeys
from shoal.service.aggregator.rounds import OPEN, WANTED, Rounds
from shoal.service.problems import ProblemError
from shoal.service.store import Clock
from shoal.service.store import aggregator as store

_OF_ROUNDS = (store.reports, store.sum_blocks, store.sums, store.releases)
_OF_CAMPAIGNS = (
    store.summaries, store.holdout_summaries, store.release_times, store.estimates, store.checks,
    store.notes, store.seats, store.arms,
)  # fmt: skip


@dataclass(eq=False)
class Endings:
    """Archives and deletes campaigns."""

    _directory: Directory
    _rounds: Rounds
    _epochs: Epochs
    _keys: RoundKeys
    _clock: Clock

    def archive(self, name: str) -> bool:
        """End a campaign and forget its people; return False where that has been done."""
        self._directory.campaign(name)
        with self._directory.lock, self._rounds.change(name) as connection:
            if ending_of(connection, name) == ARCHIVED:
                return False
            self._require_idle(name)
            _forget_people(connection, name)
            self._end(connection, name, ARCHIVED)
        self._directory.drop(name)
        self._rounds.drop_plans(name)
        return True

    def _require_idle(self, name: str) -> None:
        """Refuse a campaign with a round under way, or with one that the learner may still need."""
        last = self._rounds.latest(name)
        if last is None:
            return
        if last.state in (WANTED, OPEN):
            rule = f"Close or abandon round {last.number} first."
            raise ProblemError(problems.CAMPAIGN_RUNNING, rule)
        progress = self._epochs.progress(name)
        if progress is None or progress.learnt < last.number:
            raise ProblemError(problems.LEARNER_SILENT)

    def delete(self, name: str) -> None:
        """Delete a campaign that is archived or has never had a round; a repeat changes nothing."""
        if self._directory.is_deleted(name):
            return
        self._directory.campaign(name)
        with self._directory.lock, self._rounds.change(name) as connection:
            if ending_of(connection, name) != ARCHIVED and self._rounds.latest(name) is not None:
                raise ProblemError(problems.CAMPAIGN_RUNNING, "Archive it first.")
            table = store.rounds
            of_campaign = select(table.c.id).where(table.c.campaign == name)
            for part in _OF_ROUNDS:
                connection.execute(delete(part).where(part.c.round_id.in_(of_campaign)))
            for part in (*_OF_CAMPAIGNS, store.rounds):
                connection.execute(delete(part).where(part.c.campaign == name))
            table = store.campaigns
            emptied = {"definition": "", "roster": 0, "source": None, "holdout": None}
            connection.execute(update(table).where(table.c.name == name).values(emptied))
            self._end(connection, name, DELETED)
        self._directory.drop(name)
        self._keys.delete_ended()

    def _end(self, connection: Connection, name: str, ending: str) -> None:
        table, now = store.campaigns, self._clock()
        row = {"ending": ending, "ended_at": now}
        connection.execute(update(table).where(table.c.name == name).values(row))
        action = "campaign.archive" if ending == ARCHIVED else "campaign.delete"
        audit_log.append(connection, action, campaign=name, now=now)


def _forget_people(connection: Connection, name: str) -> None:
    """Replace users' names as erasing each of them would, and forget who played and was counted."""
    seats = store.seats
    nobody = literal("(erased ") + cast(seats.c.seat, Text) + literal(")")
    people = update(seats).where(seats.c.campaign == name)
    connection.execute(people.values(user_id=nobody, active=False))
    held_out = update(store.campaigns).where(store.campaigns.c.name == name)
    connection.execute(held_out.values(holdout=None))
    table = store.rounds
    connection.execute(update(table).where(table.c.campaign == name).values(arms=None, groups=None))
    of_campaign = select(table.c.id).where(table.c.campaign == name)
    behind = update(store.releases).where(store.releases.c.round_id.in_(of_campaign))
    connection.execute(behind.values(reporters=b"", counted=b""))
