"""A database and its transactions, the same on SQLite and PostgreSQL.

SQLite runs with a write-ahead log and ``synchronous=FULL``: what was committed survives a crash.
A write transaction takes SQLite's write lock at once; on PostgreSQL it locks the rows it names.
Parameters never show in an error: one of them might be a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from shoal.errors import InvalidInputError, ShoalError


class Database:
    """One store.

    Parameters
    ----------
    url
        ``sqlite:///path`` or ``postgresql://user:password@host/name``.
    """

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError:
            raise InvalidInputError("database must be an address like sqlite:///path.") from None
        backend = parsed.get_backend_name()
        if backend == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        elif backend != "sqlite":
            raise InvalidInputError(f"database must be sqlite or postgresql; got {backend!r}.")
        elif not parsed.database:
            raise InvalidInputError("database must name a file; a store in memory is lost.")
        else:
            Path(parsed.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.backend = backend
        try:
            self.engine = create_engine(
                parsed, hide_parameters=True, pool_pre_ping=backend == "postgresql"
            )
        except ModuleNotFoundError:
            raise ShoalError(
                "PostgreSQL needs an extra: pip install 'shoal[service,postgres]'."
            ) from None
        if backend == "sqlite":
            _prepare_sqlite(self.engine)

    @property
    def file(self) -> Path | None:
        """Return SQLite's file, None for PostgreSQL."""
        name = self.engine.url.database
        return Path(name) if self.backend == "sqlite" and name else None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that sees one state of the store throughout."""
        with self.engine.connect() as connection:
            if self.backend == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Open a transaction that is durable when the block ends, or leaves no trace."""
        with self.engine.connect().execution_options(write=True) as connection, connection.begin():
            yield connection

    def alive(self) -> bool:
        """Return whether the database answers."""
        try:
            with self.read() as connection:
                connection.execute(text("SELECT 1"))
        except SQLAlchemyError:
            return False
        return True

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions begin below, not in the driver
        cursor = connection.cursor()
        for setting in (
            "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000",
        ):  # fmt: skip
            cursor.execute(f"PRAGMA {setting}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
