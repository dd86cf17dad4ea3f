"""The aggregator: one process per store, put together from its parts.

What is kept in memory can't change (campaigns, frozen plans) or is changed by this process alone
(users); everything that decides is read inside the transaction.
"""

from pathlib import Path

from shoal.errors import InvalidInputError
from shoal.service.aggregator import audit_log
from shoal.service.aggregator.campaigns import Directory
from shoal.service.aggregator.endings import Endings
from shoal.service.aggregator.epochs import Epochs, count_abandoned
from shoal.service.aggregator.keys import RoundKeys
from shoal.service.aggregator.notes import Notes
from shoal.service.aggregator.releases import Releases
from shoal.service.aggregator.report_queue import ReportQueue
from shoal.service.aggregator.rounds import WANTED, Rounds
from shoal.service.aggregator.tokens import Access
from shoal.service.aggregator.witness import Witness
from shoal.service.campaign import check_arm
from shoal.service.notifier import Notifier
from shoal.service.problems import INVALID, LEARNER_AHEAD, ProblemError
from shoal.service.store import Clock, Database, system_clock


class Aggregator:
    """All parts of the aggregator of one store, which is at the newest schema.

    ``key`` blinds the sums at rest, together with a secret for each open round if there is a folder
    of ``secrets``. No campaign has a C below ``floor``.
    """

    def __init__(
        self,
        database: Database,
        *,
        key: bytes,
        secrets: Path | None = None,
        floor: int = 1,
        clock: Clock = system_clock,
        witness: Witness | None = None,
    ) -> None:
        self.keys = keys = RoundKeys(database, key, secrets)
        self.database = database
        self.clock = clock
        self.on_schedule = True  # whether the last tick did all that was due
        self.notifier = Notifier()
        self.access = Access(database, clock)
        self.directory = directory = Directory(database, floor=floor, clock=clock)
        self.rounds = rounds = Rounds(database, directory, self.notifier, clock, keys.draw_seed)
        self.epochs = Epochs(directory, rounds, keys, clock)
        self.reports = ReportQueue(database, directory, rounds, keys)
        self.releases = Releases(database, directory, rounds, self.epochs, keys, clock, witness)
        self.endings = Endings(directory, rounds, self.epochs, keys, clock)
        self.notes = Notes(database, rounds, clock)
        keys.delete_ended()  # one may be left of a round released just before a crash

    def close(self) -> None:
        """Finish the reports that are waiting and close the store."""
        self.reports.close()
        self.database.close()

    def n_abandoned(self, name: str) -> int:
        """Return how many rounds of a campaign were abandoned."""
        with self.database.read() as connection:
            return count_abandoned(connection, name)

    def read_capability_key(self, name: str) -> bytes:
        """Return the key of a campaign's capabilities; who reads it is on record."""
        self.directory.campaign(name)
        with self.database.write() as connection:
            now = self.clock()
            audit_log.append(connection, "capability-key.read", campaign=name, now=now)
        return self.keys.capability_key(name)

    def request_round(self, name: str, number: int) -> bool:
        """Ask the learner for the next round, unless it is ahead; False where that is done."""
        with self.rounds.lock:
            last = self.rounds.latest(name)
            last_planned = 0 if last is None else last.number - (last.state == WANTED)
            if number > last_planned and self.epochs.ahead(name) is not None:
                raise ProblemError(LEARNER_AHEAD)
            return self.rounds.request(name, number)

    def add_arm(self, name: str, arm: str) -> bool:
        """Offer a new arm from the next round on; return False where it is offered already."""
        try:
            check_arm(arm)
        except InvalidInputError as error:
            raise ProblemError(INVALID, str(error)) from None
        with self.rounds.lock:  # nobody asks for a round meanwhile
            number = self.rounds.next_number(name)
            return self.directory.add_arm(name, arm, number=number)

    def retire_arm(self, name: str, arm: str) -> bool:
        """Play an arm no more from the next round on; False where it is retired already."""
        with self.rounds.lock:
            number = self.rounds.next_number(name)
            return self.directory.retire_arm(name, arm, number=number)
