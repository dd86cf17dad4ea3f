"""The addresses of the stores that a test plays with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import event, text

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
        elif database.file or _tables(database):
            upgrade(database, role)
        else:
            _fill_postgresql_store(database, role)
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


def _tables(database: Database) -> int:
    with database.read() as connection:
        counted = text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        return int(connection.execute(counted).scalar_one())


_UPGRADES: dict[StoreRole, list[tuple[str, Any]]] = {}
"""The statements that ``upgrade`` has sent to the first empty store of a role."""


def _fill_postgresql_store(database: Database, role: StoreRole) -> None:
    """Bring an empty store to the newest schema: the first by ``upgrade``, others as it did."""
    if role in _UPGRADES:
        with database.write() as connection:
            for statement, parameters in _UPGRADES[role]:
                connection.exec_driver_sql(statement, parameters)
        return
    sent: list[tuple[str, Any]] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if not statement.lstrip().startswith("SELECT"):
            sent.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    upgrade(database, role)
    event.remove(database.engine, "before_cursor_execute", note)
    _UPGRADES[role] = sent


def as_user(uri: str, role: str, *, database: str | None = None) -> str:
    """The address of a role's own database, or of another one, as that role's user."""
    found = re.fullmatch(r"postgresql://postgres:@/postgres\?host=(.*)", uri)
    assert found, uri
    name = f"shoal_{role}"
    return f"postgresql://{name}:{role}-secret@/{database or name}?host={found[1]}"
