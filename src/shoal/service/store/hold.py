"""One process per store: two would each trust what they have in memory.

SQLite's store is held by a lock on a file beside it, PostgreSQL's by an advisory lock on a
connection of its own. Both go with the process, however it ends; and the process goes with them.
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from shoal.errors import ShoalError
from shoal.service.store.database import Database

log = logging.getLogger("shoal.service")

LOCK_CHECK_SECONDS = 5.0  # from one check of PostgreSQL's lock to the next

_LOCK = 0x73686F616C  # of this database; any number that no other program is likely to take
_NOT_AVAILABLE = "55P03"


def hold(database: Database) -> None:
    """Keep every other process out of the store until this one ends."""
    if database.file is None:
        connection = _lock_database(database)
        threading.Thread(target=_watch, args=(connection,), daemon=True).start()
        return
    file = database.file.resolve()
    descriptor = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise _taken() from None


def _lock_database(database: Database) -> Connection:
    connection = database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        # A process that was killed is gone a moment before its lock is.
        connection.execute(text("SET lock_timeout = '5s'"))
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
    except OperationalError as error:
        connection.invalidate()
        if getattr(error.orig, "sqlstate", None) == _NOT_AVAILABLE:
            raise _taken() from None
        raise
    return connection


def _watch(connection: Connection) -> None:
    """End the process when its lock is lost.

    Another one may have the store by now, or the database may have forgotten what was committed,
    as a replica that takes over does: whoever starts again asks how far everyone is (threat 17).
    """
    while True:
        time.sleep(LOCK_CHECK_SECONDS)
        try:
            connection.execute(text("SELECT 1"))
        except SQLAlchemyError:
            log.error("the connection that holds the store is lost; start again")
            os._exit(1)


def _taken() -> ShoalError:
    return ShoalError("database must be served by one process alone; another one has this store.")
