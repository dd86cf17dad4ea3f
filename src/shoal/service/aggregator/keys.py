"""The keys that blind sums at rest: one of the store, and one of each open round.

The store's key lies in a file, never in the database, which remembers the key's fingerprint: an
aggregator whose store has sums starts with their key or not at all.

A database's log and its backups keep every sum of a round as it grew, blinded. Were they blinded
with one key, whoever has that key could take the difference of two sums, an individual reward, long
after the release. So a round's key is derived from the store's and from a secret, 32
random bytes in a file made at its first report and removed when the round ends. Its name includes
the round's plan, so that the rounds of another store are safe.

A copy of the whole folder, put back, would play an open round again, and its second release might
differ from the first by one user. The secret's file is gone by then, and the one that was put back
is another (``_device_mark``); a machine that was put back as a whole has started since. Either way
the round is abandoned, unless a witness elsewhere knows better (``witness``). Rounds that had no
report when the copy was made, or were not there, nobody remembers: the key's file shows that the
folder is a copy, or was moved, and the start warns.
"""

import logging
import os
import re
from collections.abc import Sequence
from hashlib import blake2b
from hmac import compare_digest
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, union, update
from sqlalchemy.exc import SQLAlchemyError

from shoal.errors import ShoalError
from shoal.files import sync_folder, write_atomically
from shoal.service.aggregator import audit_log, campaigns, rounds
from shoal.service.store import Database
from shoal.service.store import aggregator as store
from shoal.wire import report_capability

KEY_BYTES = 32
COPIED = (
    "the folder was put back from a copy, or moved. If it was only moved, nothing is to be done. "
    "Nobody remembers rounds that were played after a copy was made: they would be released again. "
    "Open each such round and abandon it before any report: shoal campaign open NAME, then shoal "
    "campaign abandon NAME --yes"
)

_PLANS = select(store.rounds.c.id, store.rounds.c.plan_hash, store.rounds.c.secret_mark)
_SUMMED = union(select(store.sum_blocks.c.round_id), select(store.sums.c.round_id))
_WITH_SUMS = _PLANS.where(store.rounds.c.state == rounds.OPEN, store.rounds.c.id.in_(_SUMMED))
_SECRET_NAME = re.compile(r"([0-9]+)-[0-9a-f]{16}")

log = logging.getLogger("shoal.service")


def boot_id() -> str | None:
    """Return what changes with every start of the machine, None where it does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def claim_key(
    database: Database,
    path: Path,
    *,
    now: int,
    abandon_open_rounds: bool = False,
    witnessed: bool = False,
    boot: str | None = None,
) -> bytes:
    """Return the key of a store; a store without sums takes any key, or a new one.

    ``abandon_open_rounds`` is for a key that is lost: the rounds that it has blinded are abandoned.
    So they are, unless a witness tells whether the store went back, where the machine has started
    since: ``boot`` is not the one that is stored.
    """
    with database.write() as connection:
        open_rounds = connection.scalars(_WITH_SUMS).all()
        before = connection.scalar(select(store.keys.c.boot))
        if None not in (before, boot) and before != boot and not witnessed:
            _abandon(connection, open_rounds, now=now, why="the machine has started since")
            open_rounds = []
        key = read_key(path)
        if open_rounds and not fits(connection, key):
            if not abandon_open_rounds:
                raise ShoalError(
                    f"key_file must hold the key of this store, which has an open round; {path} "
                    f"{'is missing' if key is None else 'holds another'}. Put it back, or give the "
                    "open rounds up with --abandon-open-rounds."
                )
            _abandon(connection, open_rounds, now=now, why="the key is lost")
        if not witnessed and is_copy(connection, path, key):
            _warn_of_copy(connection, now=now)
        key = key or make_key(path)
        row = {"fingerprint": fingerprint(key), "boot": boot, "mark": _mark(path)}
        connection.execute(delete(store.keys))
        connection.execute(insert(store.keys).values(row))
    return key


def is_copy(connection: Connection, path: Path, key: bytes | None) -> bool:
    """Return whether the store's key is in another file than at the last start."""
    known = connection.scalar(select(store.keys.c.mark))
    if known is None or key is None or not fits(connection, key):
        return False
    return bool(known != _mark(path))


def _warn_of_copy(connection: Connection, *, now: int) -> None:
    """Say how far each campaign is in a folder that may have forgotten rounds."""
    log.warning("%s", COPIED)
    last_rounds = {}
    for name in campaigns.names(connection):
        if campaigns.ending_of(connection, name) is None:
            last = rounds.latest(connection, name)
            last_rounds[name] = number = last.number if last else 0
            log.warning("campaign %s: its last round in this folder is round %d", name, number)
    audit_log.append(connection, "store.copied", now=now, rounds=last_rounds)


def check_secrets(
    database: Database,
    folder: Path,
    *,
    now: int,
    abandon_open_rounds: bool = False,
    witnessed: bool = False,
) -> None:
    """Refuse to start where an open round has sums and no secret, or abandon the round.

    A round whose secret is not the file that it was, but a copy put back, is abandoned as well,
    unless a witness tells whether it was released before.
    """
    with database.write() as connection:
        plans = connection.execute(_WITH_SUMS).all()
        files = {row.id: folder / _secret_name(row.id, row.plan_hash) for row in plans}
        lost = find_lost(connection, folder)
        if not witnessed:
            marked = [row for row in plans if row.secret_mark and row.id not in lost]
            copied = [row.id for row in marked if row.secret_mark != _device_mark(files[row.id])]
            _abandon(connection, copied, now=now, why="the folder was put back from a copy")
        if lost and not abandon_open_rounds:
            raise ShoalError(describe_lost(connection, folder, lost))
        _abandon(connection, lost, now=now, why="a round's secret is lost")


def find_lost(connection: Connection, folder: Path, *, marked: bool = False) -> list[int]:
    """Return the open rounds that have sums and no secret.

    With ``marked``, only those whose secret this release, and not version 0.1, has seen.
    """
    known = store.rounds.c.secret_mark.is_not(None)
    plans = connection.execute(_WITH_SUMS.where(known) if marked else _WITH_SUMS).all()
    return [row.id for row in plans if not (folder / _secret_name(row.id, row.plan_hash)).is_file()]


def describe_lost(connection: Connection, folder: Path, lost: Sequence[int]) -> str:
    """Say which secrets are missing, and what to do."""
    return (
        f"{folder} must hold the secret of every open round that has reports; missing "
        f"{'is that' if len(lost) == 1 else 'are those'} of "
        f"{_describe(connection, lost)}. A secret is removed when its round is released: "
        "after a restore of the aggregator, start with --abandon-open-rounds, which gives "
        "up the rounds whose secret is missing and no others. Otherwise put it back."
    )


def _describe(connection: Connection, round_ids: Sequence[int]) -> str:
    columns = store.rounds.c
    query = select(columns.number, columns.campaign).where(columns.id.in_(round_ids))
    rows = connection.execute(query.order_by(columns.campaign)).all()
    return ", ".join(f"round {row.number} of {row.campaign}" for row in rows)


def _abandon(connection: Connection, round_ids: Sequence[int], *, now: int, why: str) -> None:
    for round_id in round_ids:
        rounds.give_up(connection, round_id, now=now, why=why)


def fits(connection: Connection, key: bytes | None) -> bool:
    """Return whether a key is the store's; any is where the store remembers none."""
    known = connection.scalar(select(store.keys.c.fingerprint))
    return key is not None and known in (None, fingerprint(key))


def fingerprint(key: bytes) -> bytes:
    """Return a hash that identifies a key and reveals nothing else of it."""
    return blake2b(b"shoal key", key=key, digest_size=16).digest()


def read_key(path: Path) -> bytes | None:
    """Read a key, None where there is no file."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        raise ShoalError(f"key_file must hold {KEY_BYTES} bytes; {path} does not.")
    return key


def make_key(path: Path) -> bytes:
    """Make a key that its owner alone can read; it is on the disk, whole, when this returns."""
    if not path.parent.is_dir():
        path.parent.mkdir(mode=0o700, parents=True)
        sync_folder(path.parent.parent)
    key = os.urandom(KEY_BYTES)
    write_atomically(path, key, mode=0o600, overwrite=False)
    return key


class RoundKeys:
    """The keys of all open rounds; without a ``folder`` of secrets, each has the store's key."""

    def __init__(self, database: Database, key: bytes, folder: Path | None) -> None:
        self._database = database
        self._key = key
        self._folder = folder
        self._keys: dict[int, bytes] = {}

    def get(self, connection: Connection, round_id: int) -> bytes:
        """Return an open round's key; the caller holds the round's lock, in a write transaction."""
        if self._folder is None:
            return self._key
        key = self._keys.get(round_id)
        if key is not None:
            return key
        row = connection.execute(_PLANS.where(store.rounds.c.id == round_id)).one()
        file = self._folder / _secret_name(row.id, row.plan_hash)
        secret = read_key(file) or make_key(file)
        key = blake2b(secret, key=self._key, digest_size=KEY_BYTES).digest()
        if row.secret_mark is None:
            marked = update(store.rounds).where(store.rounds.c.id == round_id)
            connection.execute(marked.values(secret_mark=_device_mark(file)))
        else:  # not before it is committed that this file holds the secret
            self._keys[round_id] = key
        return key

    def draw_seed(self, campaign: str, number: int) -> bytes:
        """Return the seed of a round's groups: the same again, and foreseen by nobody."""
        return blake2b(f"groups {campaign} {number}".encode(), key=self._key).digest()

    def capability_key(self, campaign: str) -> bytes:
        """Return the key from which the app makes its users' capabilities to report."""
        return blake2b(f"report {campaign}".encode(), key=self._key, digest_size=KEY_BYTES).digest()

    def may_report(
        self,
        campaign: str,
        number: int,
        reports: Sequence[tuple[str, float]],
        capabilities: Sequence[str],
    ) -> list[bool]:
        """Return which reports carry the capability of their user for this round."""
        key = self.capability_key(campaign)
        sent = capabilities or [""] * len(reports)
        return [
            capability.isascii()  # compare_digest takes no other text
            and compare_digest(report_capability(key, campaign, number, user), capability)
            for (user, _), capability in zip(reports, sent, strict=True)
        ]

    def delete_ended(self) -> None:
        """Delete the secret of every round that has ended; a failure is made up for next time."""
        try:
            if self._folder is not None and self._folder.is_dir():
                self._delete_ended(self._folder)
        except (OSError, SQLAlchemyError) as error:
            log.error("a round's secret can't be removed: %s", type(error).__name__)

    def _delete_ended(self, folder: Path) -> None:
        files: dict[str, list[Path]] = {}
        for file in folder.iterdir():  # secrets, and parts left by a process that was killed
            name = file.name.removeprefix(".").removesuffix(".part")
            files.setdefault(name, []).append(file)
        round_ids = [int(match[1]) for match in map(_SECRET_NAME.fullmatch, files) if match]
        ended = store.rounds.c.state.in_((rounds.RELEASED, rounds.ABANDONED))
        with self._database.read() as connection:
            query = _PLANS.where(store.rounds.c.id.in_(round_ids), ended)
            for row in connection.execute(query):
                self._keys.pop(row.id, None)
                for file in files.get(_secret_name(row.id, row.plan_hash), []):
                    file.unlink(missing_ok=True)


def _mark(file: Path) -> str:
    """Return what tells a file from a copy of it: nobody can set the time of its last change."""
    status = file.stat()
    return f"{status.st_ino}:{status.st_ctime_ns}"


def _device_mark(file: Path) -> str:
    """Return a mark with the device, whose number may be another after a start of the machine."""
    return f"{file.stat().st_dev}:{_mark(file)}"


def _secret_name(round_id: int, plan_hash: str | None) -> str:
    return f"{round_id}-{(plan_hash or '')[:16]}"
