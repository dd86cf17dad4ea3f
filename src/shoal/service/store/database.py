"""A database and its transactions, the same on SQLite and PostgreSQL.

SQLite runs with a write-ahead log and ``synchronous=FULL``: what was committed survives a crash.
Its file is made by ``create`` alone, readable by its owner only, as is its log. A file of another
program is left as it is.
A write transaction takes SQLite's write lock at once; on PostgreSQL it locks the rows it names.
Parameters never show in an error: one of them might be a sum.

What differs between the two is ``DIALECTS`` below, and the statements that count a report, in
``aggregator/group_sums.py``: a third kind of store needs an entry in each.

One process serves a store: two would each trust what they have in memory. SQLite's store is held
by a lock on a file beside it, PostgreSQL's by an advisory lock on a connection of its own. Both go
with the process, however it ends; and the process goes with them.
"""

import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    OperationalError,
    SQLAlchemyError,
)

from shoal.errors import InvalidInputError, ShoalError

IDLE_SECONDS = 1.0  # after which a connection is tested before it is used
CHECK_SECONDS = 5.0  # from one test write to the next
LOCK_MILLISECONDS = 20_000  # to wait for what another transaction or program has locked
LOCK_CHECK_SECONDS = 5.0  # from one check of PostgreSQL's lock to the next
_SQLITE_HEADER = b"SQLite format 3\0"  # how its files begin
_LOCK = 0x73686F616C  # of this database; any number that no other program is likely to take
_NOT_AVAILABLE = "55P03"

HOUR = 3_600_000  # in milliseconds, like every time that is stored
DAY = 24 * HOUR

Clock = Callable[[], int]
"""Returns milliseconds since 1970; a parameter, so that tests can turn it."""

log = logging.getLogger("shoal.service")


def system_clock() -> int:
    """Return the machine's time.

    >>> system_clock() > 1_700_000_000_000
    True
    """
    return time.time_ns() // 1_000_000


class Dialect(NamedTuple):
    """What a kind of database needs to be a store."""

    prepare: Callable[[Engine, bool], None]  # make connections durable; and read-only, if True
    hold: Callable[[Engine], None]  # keep other processes out
    empty_write: str  # reaches the disk and leaves nothing
    clock: str  # asks for its time in milliseconds
    continue_numbering: str  # numbers the next round after :last; empty where that goes by itself
    read_options: dict[str, str]  # with which a transaction sees one state throughout
    timeouts: dict[str, int]  # for a server that does not answer


class Database:
    """One store.

    Parameters
    ----------
    url
        ``sqlite:///path`` or ``postgresql://user:password@host/name``.
    read_only
        Refuse every write.
    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError:
            raise InvalidInputError("database must be an address like sqlite:///path.") from None
        backend = parsed.get_backend_name()
        if backend not in DIALECTS:
            raise InvalidInputError(f"database must be sqlite or postgresql; got {backend!r}.")
        if backend == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        elif parsed.database in (None, "", ":memory:"):
            raise InvalidInputError("database must name a file; a store in memory is lost.")
        self.dialect = DIALECTS[backend]
        self.file = Path(str(parsed.database)) if backend == "sqlite" else None
        self._checking, self._next_check = threading.Lock(), 0.0
        try:
            timeouts = {k: v for k, v in self.dialect.timeouts.items() if k not in parsed.query}
            self.engine = create_engine(parsed, hide_parameters=True, connect_args=timeouts)
        except ModuleNotFoundError:
            raise ShoalError(
                "PostgreSQL needs an extra: pip install 'shoal[service,postgres]'."
            ) from None
        self.dialect.prepare(self.engine, read_only)

    @property
    def place(self) -> str:
        """Return where it is: SQLite's file, or the address without its password."""
        return str(self.file or self.engine.url.render_as_string(hide_password=True))

    def exists(self) -> bool:
        """Return whether there is a database, full or empty."""
        return self.file is None or self.file.is_file()

    def create(self) -> None:
        """Make SQLite's file where there is none; a file of another kind is left as it is."""
        file = self.file
        if file is None:
            return
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            with file.open("rb") as existing:
                if existing.read(len(_SQLITE_HEADER)) not in (b"", _SQLITE_HEADER):
                    raise InvalidInputError(
                        f"database must be a store or a new file; {file} is neither."
                    ) from None

    def protect(self) -> None:
        """Keep a log from now on, and everyone else out of SQLite's file and its log."""
        if self.file is not None:
            with self.engine.connect() as connection:
                driver = connection.connection.driver_connection
                assert driver is not None
                driver.execute("PRAGMA journal_mode=WAL")  # outside of a transaction
        for part in self.files():
            part.chmod(0o600)

    def files(self) -> list[Path]:
        """Return SQLite's file and those of its log, where they exist."""
        file = self.file
        parts = [file.with_name(file.name + end) for end in ("", "-wal", "-shm")] if file else []
        return [part for part in parts if part.is_file()]

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that sees one state of the store throughout."""
        options = self.dialect.read_options
        with self.engine.connect().execution_options(**options) as connection, connection.begin():
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

    def writable(self) -> bool:
        """Return whether the database takes a write that changes nothing, tested now and then."""
        with self._checking:
            if time.monotonic() >= self._next_check:
                try:
                    with self.write() as connection:
                        connection.execute(text(self.dialect.empty_write))
                except SQLAlchemyError:
                    return False
                self._next_check = time.monotonic() + CHECK_SECONDS
        return self.alive()

    def hold(self) -> None:
        """Keep every other process out of the store until this one ends."""
        self.dialect.hold(self.engine)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


@contextmanager
def opened(url: str, role: str) -> Iterator[Database]:
    """Open a role's store for one command; where it can't be used, say why in one line."""
    database = Database(url)
    try:
        yield database
    except (OSError, SQLAlchemyError) as error:
        place = database.place
        raise ShoalError(
            f"the {role}'s store at {place} can't be used: {reason_of(error)}"
        ) from None
    finally:
        database.close()


def reason_of(error: Exception) -> str:
    """Return an error's cause in one line."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return f"{' '.join(str(cause).split()).rstrip('.')}."


def _prepare_postgresql(engine: Engine, read_only: bool) -> None:
    """Test a connection that was idle before it is used; to test each one each time is slow."""

    @event.listens_for(engine, "connect")
    def connect(connection: Any, record: Any) -> None:
        connection.execute("SET synchronous_commit = on")
        connection.execute(f"SET lock_timeout = {LOCK_MILLISECONDS}")
        connection.commit()

    @event.listens_for(engine, "checkin")
    def note_use(connection: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def test_idle(connection: Any, record: Any, proxy: Any) -> None:
        if time.monotonic() - record.info.get("used", time.monotonic()) < IDLE_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            raise DisconnectionError from None


def _prepare_sqlite(engine: Engine, read_only: bool) -> None:
    @event.listens_for(engine, "do_connect")
    def open_file(dialect: Any, record: Any, arguments: Any, options: dict[str, Any]) -> Any:
        # Never made by opening it: a wrong path would look like an empty store.
        address = f"file:{quote(str(engine.url.database))}?mode=rw"
        return sqlite3.connect(address, **{**options, "uri": True})

    @event.listens_for(engine, "connect")
    def connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions begin below, not in the driver
        cursor = connection.cursor()
        for setting in (
            "synchronous=FULL", "foreign_keys=ON", f"busy_timeout={LOCK_MILLISECONDS}",
            f"query_only={int(read_only)}",
        ):  # fmt: skip
            cursor.execute(f"PRAGMA {setting}")
        # Reports touch many pages again and again: copy them from the log a few times less.
        cursor.execute("PRAGMA wal_autocheckpoint=4000")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _hold_sqlite(engine: Engine) -> None:
    file = Path(str(engine.url.database)).resolve()
    descriptor = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise _taken(str(file)) from None


def _hold_postgresql(engine: Engine) -> None:
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        # A process that was killed is gone a moment before its lock is.
        connection.execute(text("SET lock_timeout = '5s'"))
        connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": _LOCK})
    except OperationalError as error:
        connection.invalidate()
        if getattr(error.orig, "sqlstate", None) == _NOT_AVAILABLE:
            raise _taken(engine.url.render_as_string()) from None  # without the password
        raise
    threading.Thread(target=_watch, args=(connection,), daemon=True).start()


def _watch(connection: Connection) -> None:
    """End the process when its lock is lost.

    Another one may have the store by now, or the database may have forgotten what was committed,
    as a replica that takes over does: whoever starts again asks how far everyone is.
    """
    while True:
        time.sleep(LOCK_CHECK_SECONDS)
        try:
            connection.execute(text("SELECT 1"))
        except SQLAlchemyError:
            log.error(
                "the connection that holds the store is lost, so this process ends; plain shoal "
                "serve starts it again, a role alone needs systemd or the like for that"
            )
            os._exit(1)


def _taken(place: str) -> ShoalError:
    return ShoalError(
        f"database must be served by one process alone; another one has the store {place}."
    )


DIALECTS = {
    "sqlite": Dialect(
        _prepare_sqlite,
        _hold_sqlite,
        empty_write="PRAGMA user_version = 0",
        clock="SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
        continue_numbering="",
        read_options={},
        timeouts={},
    ),
    "postgresql": Dialect(
        _prepare_postgresql,
        _hold_postgresql,
        empty_write="SELECT pg_logical_emit_message(true, 'shoal', '')",
        clock="SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
        continue_numbering="SELECT setval(pg_get_serial_sequence('rounds', 'id'), :last)",
        read_options={"isolation_level": "REPEATABLE READ"},
        timeouts={  # seconds, tries, and milliseconds
            "connect_timeout": 5,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
        },
    ),
}
