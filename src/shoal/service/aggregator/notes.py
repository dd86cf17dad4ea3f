"""Notes at rounds: what an operator writes for those who read a campaign's curves.

A note is kept until it is removed. The audit log says who wrote or removed one and at which round,
not its text: the log can't be changed, and a text may have to be.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select

from shoal.service import problems
from shoal.service.aggregator import audit_log, campaigns
from shoal.service.aggregator.audit_log import ACTOR
from shoal.service.aggregator.rounds import Rounds
from shoal.service.problems import ProblemError
from shoal.service.store import Clock, Database
from shoal.service.store import aggregator as store

MAX_LENGTH = 200  # characters
MAX_NOTES = 200  # of a campaign


@dataclass(frozen=True)
class Note:
    """A note, by whom and when; ``id`` counts from 1."""

    id: int
    number: int
    at: int
    author: str
    text: str


@dataclass(eq=False)
class Notes:
    """The notes of all campaigns."""

    _database: Database
    _rounds: Rounds
    _clock: Clock

    def read(self, name: str) -> list[Note]:
        """Return a campaign's notes, by round."""
        with self._database.read() as connection:
            return _read(connection, name)

    def add(self, name: str, number: int, text: str) -> Note:
        """Keep a note at a round that there is, or refuse it."""
        if not 1 <= len(text) <= MAX_LENGTH or not text.isprintable():
            raise ProblemError(
                problems.INVALID,
                f"a note must be 1 to {MAX_LENGTH} printable characters; got {len(text)}.",
            )
        last = self._rounds.latest(name)
        if last is None or not 1 <= number <= last.number:
            raise ProblemError(
                problems.INVALID,
                f"a note must be at a round from 1 to {last.number if last else 0}; got {number}.",
            )
        table = store.notes
        with self._rounds.lock, self._database.write() as connection:
            campaigns.require(connection, name)
            notes = _read(connection, name)
            if len(notes) >= MAX_NOTES:
                raise ProblemError(
                    problems.INVALID,
                    f"a campaign must have at most {MAX_NOTES} notes; remove one first.",
                )
            query = select(func.max(table.c.id)).where(table.c.campaign == name)
            following = (connection.scalar(query) or 0) + 1
            note = Note(following, number, self._clock(), ACTOR.get(), text)
            connection.execute(insert(table).values(campaign=name, **vars(note)))
            details = {"round": number, "note": following}
            audit_log.append(connection, "note.add", campaign=name, now=self._clock(), **details)
        return note

    def remove(self, name: str, note_id: int) -> bool:
        """Remove a note; False where there is none."""
        table = store.notes
        place = (table.c.campaign == name, table.c.id == note_id)
        with self._rounds.lock, self._database.write() as connection:
            if not connection.execute(delete(table).where(*place)).rowcount:
                return False
            now = self._clock()
            audit_log.append(connection, "note.remove", campaign=name, now=now, note=note_id)
        return True


def _read(connection: Connection, name: str) -> list[Note]:
    table = store.notes
    query = select(table.c.id, table.c.number, table.c.at, table.c.author, table.c.text)
    rows = connection.execute(query.where(table.c.campaign == name).order_by("number", "id"))
    return [Note(*row) for row in rows]
