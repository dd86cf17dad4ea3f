"""A witness outside the folder: which rounds may have been released, whatever the stores say.

If both stores, the key and the rounds' secrets go back to an old state together, nobody in the
folder remembers what was released since. The witness is one small file elsewhere: on another
volume, that snapshots of the folder leave alone. It is written before a release is committed, and
read at the start: a round that may have been released, and that the store does not hold as
released, is abandoned.

It also has the last entry of the audit log, so that entries that were cut off show. And the audit
log says that there is a witness, so that a start without it shows too.
"""

import logging
import os
from pathlib import Path

import msgspec
from sqlalchemy import Connection, select

from shoal.errors import ShoalError
from shoal.files import write_atomically
from shoal.service.aggregator import audit_log, campaigns, rounds
from shoal.service.aggregator.epochs import abandon_through
from shoal.service.problems import STORE_UNAVAILABLE, ProblemError
from shoal.service.store import Database
from shoal.service.store import aggregator as store

WITNESSED = "store.witnessed"  # the audit log's entry of the first start with a witness
WITNESS_UNSET = (
    "the service ran with a witness before, and aggregator.witness is not set: nobody outside the "
    "folder remembers what is released from now on. Set it to the same file again"
)

log = logging.getLogger("shoal.service")


class Statement(msgspec.Struct):
    """What the file says: the last round that may be released, and the audit log's last entry."""

    rounds: dict[str, int] = msgspec.field(default_factory=dict)
    audit: int = 0
    digest: str = audit_log.ORIGIN.hex()


class Witness:
    """The file, and what it says."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._statement = read_statement(file)

    @property
    def knows(self) -> bool:
        """Return whether there is a file: one that is new, or was lost, knows nothing."""
        return self._file.is_file()

    def note(self, connection: Connection, campaign: str, number: int) -> None:
        """Put on record that a round is going to be released; it is durable when this returns."""
        self._statement.rounds[_key(connection, campaign)] = number
        self._write(connection)

    def reconcile(self, database: Database, *, now: int) -> None:
        """Abandon rounds that may have been released before the store went back."""
        with database.write() as connection:
            number = self._statement.audit  # 0: a new witness, or one of an empty store
            if number and audit_log.digest_of(connection, number) is None:
                log.warning("the store is older than its witness")
            for name in campaigns.names(connection):
                number = self._statement.rounds.get(_key(connection, name), 0)
                last = rounds.latest(connection, name)
                ended = last is not None and last.state in (rounds.RELEASED, rounds.ABANDONED)
                known = (last.number if last else 0) + ended  # the first that may be played
                if known > number:
                    continue
                if n_rounds := abandon_through(connection, name, number, now=now):
                    log.warning("rounds are abandoned, as the witness knows of them: %d", n_rounds)
                    details = {"through": number, "rounds": n_rounds, "why": "the witness is ahead"}
                    audit_log.append(connection, "round.abandon", campaign=name, now=now, **details)
            if not was_witnessed(connection):
                audit_log.append(connection, WITNESSED, now=now)
            self._write(connection)

    def _write(self, connection: Connection) -> None:
        self._statement.audit, digest = audit_log.head(connection)
        self._statement.digest = digest.hex()
        try:
            write_atomically(self._file, msgspec.json.encode(self._statement), mode=0o600)
        except OSError as error:
            log.error("the witness %s can't be written: %s", self._file, error.strerror)
            detail = f"What is away is the witness: its file can't be written ({error.strerror})."
            raise ProblemError(STORE_UNAVAILABLE, detail) from None


def read_statement(file: Path) -> Statement:
    """Read what a witness says; a new one says nothing, a damaged one is refused."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Statement)
    except FileNotFoundError:
        return Statement()
    except (OSError, msgspec.DecodeError):
        raise ShoalError(f"witness must be a file by Shoal, or a new one; got {file}.") from None


def why_unwritable(file: Path) -> str:
    """Return why a witness can't be written, empty where it can."""
    if os.access(file.parent, os.W_OK | os.X_OK):
        return ""
    return (
        "aggregator.witness must be in a folder that is there and can be written: is its volume "
        f"mounted? Got {file}."
    )


def was_witnessed(connection: Connection) -> bool:
    """Return whether the service has ever run with a witness."""
    table = store.audit
    query = select(table.c.number).where(table.c.action == WITNESSED).limit(1)
    return connection.scalar(query) is not None


def warn_if_missing(database: Database) -> None:
    """Log that there was a witness, for a start without one."""
    with database.read() as connection:
        if was_witnessed(connection):
            log.warning("%s", WITNESS_UNSET)


def check(connection: Connection, statement: Statement) -> str:
    """Return what is wrong with the audit log beside the witness, empty where nothing is."""
    if not statement.audit:
        return ""
    digest = audit_log.digest_of(connection, statement.audit)
    if digest is None:
        return f"entries up to {statement.audit} were there, and are not"
    return "" if digest.hex() == statement.digest else "the witness knows another log"


def _key(connection: Connection, campaign: str) -> str:
    """Return a campaign's name and the time it was made: another may have its name later."""
    table = store.campaigns
    created = connection.scalar(select(table.c.created_at).where(table.c.name == campaign))
    return f"{campaign} {created}"
