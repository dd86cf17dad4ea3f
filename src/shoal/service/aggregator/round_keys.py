"""A key for each round, gone when the round has ended: then what is left of its sums is noise.

A database's log keeps what was written for a while, and a copy of the disk for ever: every sum of
a round as it grew, blinded. Were they blinded with one key, whoever has that key and the log could
take the difference of two sums, an individual reward, long after the release (threat 19). So a
round has a secret of its own, 32 random bytes in a small file made at its first report; its key
follows from the secret and the store's key. The file is removed when the round is released or
abandoned.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from sqlalchemy import Connection, select

from shoal.errors import ShoalError
from shoal.service.aggregator import rounds
from shoal.service.aggregator.blinding import KEY_BYTES, make_key, read_key
from shoal.service.store import Database
from shoal.service.store import aggregator as store


class RoundKeys:
    """The keys of all open rounds.

    Parameters
    ----------
    key
        The store's key.
    folder
        Where the secrets are; without one, every round has the store's key.
    """

    def __init__(self, key: bytes, folder: Path | None) -> None:
        self._key = key
        self.folder = folder
        self._known: dict[int, bytes] = {}

    def of(self, round_id: int) -> bytes:
        """Return an open round's key; the caller holds the round's lock."""
        if self.folder is None:
            return self._key
        if round_id not in self._known:
            file = self.folder / str(round_id)
            secret = read_key(file) or make_key(file)
            digest = blake2b(secret, key=self._key, digest_size=KEY_BYTES).digest()
            self._known[round_id] = digest
        return self._known[round_id]

    def forget_ended(self, connection: Connection) -> None:
        """Forget the key of every round that is not open any more."""
        if self.folder is None:
            return
        table = store.rounds
        still = set(connection.scalars(select(table.c.id).where(table.c.state == rounds.OPEN)))
        for file in self.folder.glob("[0-9]*"):
            if int(file.name) not in still:
                self._known.pop(int(file.name), None)
                file.unlink()


def check_secrets(
    database: Database, folder: Path, *, now: int, abandon_open_rounds: bool = False
) -> None:
    """Refuse to start where an open round has sums and no secret, or give the round up."""
    with database.write() as connection:
        for round_id in connection.scalars(select(store.sums.c.round_id).distinct()).all():
            if (folder / str(round_id)).is_file():
                continue
            if not abandon_open_rounds:
                raise ShoalError(
                    f"{folder} must hold the secret of every open round; one is missing, as after "
                    "a restore. Put it back, or give the open rounds up with "
                    "--abandon-open-rounds."
                )
            rounds.abandon(connection, round_id, now=now)
