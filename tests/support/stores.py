"""The addresses of the stores that a test plays with."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shoal.service.store import Database
from shoal.service.store.migrate import StoreRole, upgrade


@dataclass(frozen=True)
class Stores:
    """Addresses of two empty stores."""

    aggregator: str
    learner: str

    def open(self, role: StoreRole) -> Database:
        database = Database(getattr(self, role))
        upgrade(database, role)
        return database


def as_user(uri: str, role: str, *, database: str | None = None) -> str:
    """The address of a role's own database, or of another one, as that role's user."""
    found = re.fullmatch(r"postgresql://postgres:@/postgres\?host=(.*)", uri)
    assert found, uri
    name = f"shoal_{role}"
    return f"postgresql://{name}:{role}-secret@/{database or name}?host={found[1]}"
