"""A key for each round, gone when the round has ended: then what is left of its sums is noise.

A database's log keeps what was written for a while, and its backups for ever: every sum of a
round as it grew, blinded. Were they blinded with one key, whoever has that key and the log could
take the difference of two sums, an individual reward, long after the release (threat 19). So a
round has a secret of its own, 32 random bytes in a small file made at its first report; its key
follows from the secret and the store's key. The file is removed when the round is released or
abandoned; its name tells the round's plan too, so that the rounds of another store are safe.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path

from sqlalchemy import Connection, select

from shoal.errors import ShoalError
from shoal.service.aggregator import rounds
from shoal.service.aggregator.blinding import KEY_BYTES, make_key, read_key, with_sums
from shoal.service.store import Database
from shoal.service.store import aggregator as store

_ROUNDS = select(store.rounds.c.id, store.rounds.c.plan_hash)
_NAME = re.compile(r"([0-9]+)-[0-9a-f]{16}")


def _name(round_id: int, plan_hash: str | None) -> str:
    return f"{round_id}-{(plan_hash or '')[:16]}"


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

    def of(self, connection: Connection, round_id: int) -> bytes:
        """Return an open round's key; the caller holds the round's lock."""
        if self.folder is None:
            return self._key
        if round_id not in self._known:
            rows = connection.execute(_ROUNDS.where(store.rounds.c.id == round_id))
            file = self.folder / _name(*rows.one())
            secret = read_key(file) or make_key(file)
            digest = blake2b(secret, key=self._key, digest_size=KEY_BYTES).digest()
            self._known[round_id] = digest
        return self._known[round_id]

    def forget_ended(self, connection: Connection) -> None:
        """Forget the key of every round of this store that has ended."""
        if self.folder is None or not self.folder.is_dir():
            return
        files: dict[str, list[Path]] = {}
        for file in self.folder.iterdir():  # secrets, and what is left of one who was killed
            name = file.name.removeprefix(".").removesuffix(".part")
            files.setdefault(name, []).append(file)
        numbers = [int(found[1]) for found in map(_NAME.fullmatch, files) if found]
        ended = store.rounds.c.state.in_((rounds.RELEASED, rounds.ABANDONED))
        for round_id, plan in connection.execute(
            _ROUNDS.where(store.rounds.c.id.in_(numbers), ended)
        ):
            self._known.pop(round_id, None)
            for file in files.get(_name(round_id, plan), []):
                file.unlink()


def check_secrets(
    database: Database, folder: Path, *, now: int, abandon_open_rounds: bool = False
) -> None:
    """Refuse to start where an open round has sums and no secret, or give the round up."""
    with database.write() as connection:
        for round_id, plan in connection.execute(_ROUNDS.where(with_sums())).all():
            if (folder / _name(round_id, plan)).is_file():
                continue
            if not abandon_open_rounds:
                raise ShoalError(
                    f"{folder} must hold the secret of every open round; one is missing, as after "
                    "a restore. Put it back, or give the open rounds up with "
                    "--abandon-open-rounds."
                )
            rounds.abandon(connection, round_id, now=now)
