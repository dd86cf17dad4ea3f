"""The addresses of the stores that a test plays with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from shoal.service.store import Database
from shoal.service.store.migrate import StoreRole, upgrade


@dataclass(frozen=True)
class Stores:
    """Addresses of two empty stores."""

    aggregator: str
    learner: str

    def open(self, role: StoreRole) -> Database:
        database = Database(getattr(self, role))
        if database.file and not database.exists():
            database.create()
            database.file.write_bytes(_new_sqlite_store(role))
        else:
            upgrade(database, role)
        return database


@cache
def _new_sqlite_store(role: StoreRole) -> bytes:
    """A store as ``upgrade`` makes it, which takes longer than most tests."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "store.db"
        database = Database(f"sqlite:///{file}")
        upgrade(database, role)
        database.close()
        return file.read_bytes()


def as_user(uri: str, role: str, *, database: str | None = None) -> str:
    """The address of a role's own database, or of another one, as that role's user."""
    found = re.fullmatch(r"postgresql://postgres:@/postgres\?host=(.*)", uri)
    assert found, uri
    name = f"shoal_{role}"
    return f"postgresql://{name}:{role}-secret@/{database or name}?host={found[1]}"
