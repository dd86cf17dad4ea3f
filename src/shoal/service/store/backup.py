"""Online backup and restore of one store, the same on both backends.

A backup is one consistent read of every table, as compressed MessagePack with the schema's
version in front. Restoring fills an empty store and brings it to the newest schema, all in one
transaction. A restored aggregator can't reopen rounds that it has forgotten: the learner remembers
them.
"""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
from sqlalchemy import Connection, MetaData, func, insert, select, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from shoal.errors import InvalidInputError
from shoal.files import open_atomically
from shoal.service.store.database import DIALECTS, Database, reason_of
from shoal.service.store.migrate import StoreRole, current, upgrade_within

_FORMAT = "shoal-backup-1"
_ROWS = 5_000
_VERSIONS = "alembic_version"
_DAMAGED = (
    msgspec.DecodeError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    SQLAlchemyError,
)
_NOT_RESTORED = ("tokens", "sessions")


class Header(msgspec.Struct):
    """What a backup is of."""

    format: str
    role: StoreRole
    version: str


class Rows(msgspec.Struct):
    """Some rows of one table."""

    table: str
    rows: list[dict[str, Any]]


def back_up(database: Database, role: StoreRole, file: Path) -> int:
    """Write every row of the store to a new file of its owner, or none; return how many."""
    version = current(database)
    if version is None:
        raise InvalidInputError(
            f"the {role}'s store must not be empty to be backed up; nothing is at {database.place}."
        )
    try:
        with (
            open_atomically(file, mode=0o600, overwrite=False) as raw,
            gzip.GzipFile("", "wb", 1, raw) as out,
            database.read() as connection,
        ):
            _write(out, Header(_FORMAT, role, version))
            return _copy_rows(connection, out)
    except OSError as error:  # the file's fault, not the store's
        raise InvalidInputError(
            f"file must be a new file that can be written whole; {file}: {reason_of(error)}"
        ) from None


def _copy_rows(connection: Connection, out: gzip.GzipFile) -> int:
    count = 0
    for table in _tables(connection).sorted_tables:
        result = connection.execution_options(yield_per=_ROWS).execute(select(table))
        for part in result.partitions():
            rows = [{str(name): value for name, value in row._mapping.items()} for row in part]
            _write(out, Rows(str(table.name), rows))
            count += len(part)
    return count


def restore(database: Database, role: StoreRole, file: Path) -> int:
    """Fill an empty store from a backup, all of it or nothing; return the number of rows.

    Tokens and sessions are left out: some may have been revoked since.
    """
    if current(database) is not None:
        raise InvalidInputError(
            f"the {role}'s store must be empty to be restored into; got one in use. With the "
            "service stopped, move its files, or rename its database, first."
        )
    with _open_backup(file) as source:
        records = _read(source, file)
        try:
            header = msgspec.msgpack.decode(next(records, b""), type=Header)
        except msgspec.DecodeError:
            raise InvalidInputError(f"file must be a backup by Shoal; got {file}.") from None
        if header.format != _FORMAT or header.role != role:
            raise InvalidInputError(f"file must be a backup of the {role}'s store; got {file}.")
        with _created(database), database.write() as connection:
            upgrade_within(connection, role, version=header.version)
            count = _fill(connection, records, file)
            upgrade_within(connection, role)
    database.protect()
    return count


def _open_backup(file: Path) -> gzip.GzipFile:
    try:
        return gzip.open(file, "rb")
    except OSError as error:
        raise InvalidInputError(f"file must be a backup by Shoal; {reason_of(error)}") from None


@contextmanager
def _created(database: Database) -> Iterator[None]:
    """Make SQLite's file where there is none, and leave none behind where that fails."""
    is_new = not database.exists()
    database.create()
    try:
        yield
    except BaseException:
        if is_new:
            database.close()
            for part in database.files():
                part.unlink()
        raise


def _fill(connection: Connection, records: Iterator[bytes], file: Path) -> int:
    count, tables = 0, _tables(connection).tables
    for record in records:
        try:
            part = msgspec.msgpack.decode(record, type=Rows)
            if part.table not in _NOT_RESTORED:
                connection.execute(insert(tables[part.table]), part.rows)
                count += len(part.rows)
        except OperationalError:  # the store's fault, not the file's
            raise
        except _DAMAGED:
            raise InvalidInputError(f"file must be a whole backup by Shoal; got {file}.") from None
    statement = DIALECTS[connection.dialect.name].continue_numbering
    if statement and "rounds" in tables:
        last = connection.scalar(select(func.max(tables["rounds"].c.id)))
        if last is not None:
            connection.execute(text(statement), {"last": last})
    return count


def _tables(connection: Connection) -> MetaData:
    """Return the tables as they are in the store, whatever its version."""
    metadata = MetaData()
    metadata.reflect(connection, only=lambda name, _: name != _VERSIONS)
    return metadata


def _write(out: IO[bytes] | gzip.GzipFile, record: msgspec.Struct) -> None:
    data = msgspec.msgpack.encode(record)
    out.write(len(data).to_bytes(8, "little") + data)


def _read(source: IO[bytes] | gzip.GzipFile, file: Path) -> Iterator[bytes]:
    try:
        while size := source.read(8):
            yield source.read(int.from_bytes(size, "little"))
    except (OSError, EOFError, zlib.error, OverflowError, MemoryError):  # cut off or damaged
        raise InvalidInputError(f"file must be a whole backup by Shoal; got {file}.") from None
