from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError
from tests.support.stores import Stores, as_user

from shoal.errors import InvalidInputError
from shoal.service.store import Database, aggregator, learner
from shoal.service.store.migrate import StoreRole, current, newest, upgrade

ROLES: list[StoreRole] = ["aggregator", "learner"]
SCHEMAS = {"aggregator": aggregator.metadata, "learner": learner.metadata}


@pytest.mark.parametrize("role", ROLES)
def test_migrations_make_exactly_the_tables_that_the_code_uses(
    stores: Stores, role: StoreRole
) -> None:
    database = stores.open(role)
    assert current(database) == newest(role)
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), SCHEMAS[role]) == []
    database.close()


@pytest.mark.parametrize("role", ROLES)
def test_upgrading_again_keeps_what_is_stored(stores: Stores, role: StoreRole) -> None:
    database = stores.open(role)
    with database.write() as connection:
        if role == "aggregator":
            row = {"name": "n", "role": "app", "digest": b"d"}
            connection.execute(insert(aggregator.tokens).values(row))
        else:
            run = {"campaign": "n", "definition": "{}", "planned": 1, "learnt": 0}
            connection.execute(insert(learner.runs).values(feedback=b"f", **run))
    upgrade(database, role)
    table = aggregator.tokens if role == "aggregator" else learner.runs
    with database.read() as connection:
        assert len(connection.execute(select(table)).all()) == 1
    database.close()


def test_marks_of_an_open_round_outlive_the_upgrade(stores: Stores) -> None:
    database = Database(stores.aggregator)
    upgrade(database, "aggregator", version="a0007")
    campaign = {"name": "n", "definition": "{}", "roster": 0, "created_at": 0}
    round_ = {"id": 7, "campaign": "n", "number": 1, "state": "open", "wanted_at": 0}
    marks = [{"round_id": 7, "seat": seat} for seat in (0, 3)]
    with database.write() as connection:
        connection.execute(insert(aggregator.campaigns).values(campaign))
        connection.execute(insert(aggregator.rounds).values(round_))
        connection.execute(insert(aggregator.reports), marks)
    upgrade(database, "aggregator")
    with pytest.raises(IntegrityError), database.write() as connection:
        connection.execute(insert(aggregator.reports), marks[:1])  # they are a key still
    with database.read() as connection:
        assert [row._asdict() for row in connection.execute(select(aggregator.reports))] == marks
    database.close()


def test_a_failed_write_leaves_no_trace(stores: Stores) -> None:
    database = stores.open("aggregator")
    row = {"name": "n", "role": "app", "digest": b"d"}
    with pytest.raises(IntegrityError), database.write() as connection:
        connection.execute(insert(aggregator.tokens), [row, row])
    with database.read() as connection:
        assert connection.execute(select(aggregator.tokens)).all() == []
    database.close()


def test_sqlite_is_durable_at_every_commit(sqlite_stores: Stores) -> None:
    database = sqlite_stores.open("aggregator")
    with database.read() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
    database.close()


def test_no_column_can_hold_a_fraction() -> None:
    kinds = {
        type(column.type).__name__ for table in aggregator.metadata.sorted_tables
        for column in table.columns
    }  # fmt: skip
    assert kinds <= {"Text", "Integer", "BigInteger", "LargeBinary", "Boolean"}


@pytest.mark.parametrize(("user", "other"), [("learner", "aggregator"), ("aggregator", "learner")])
def test_neither_database_user_can_even_connect_to_the_other_database(
    postgres: str, user: str, other: str
) -> None:
    with psycopg.connect(as_user(postgres, user)) as connection:
        assert connection.execute("SELECT current_user").fetchone() == (f"shoal_{user}",)
        privileges = connection.execute(
            "SELECT has_database_privilege(%s, 'CONNECT'), has_database_privilege(%s, 'TEMP')",
            (f"shoal_{other}", f"shoal_{other}"),
        ).fetchone()
        assert privileges == (False, False)
        superuser = connection.execute(
            "SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles "
            "WHERE rolname = current_user"
        ).fetchone()
        assert superuser == (False,)
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(as_user(postgres, user, database=f"shoal_{other}"))


def test_an_error_never_shows_a_parameter(stores: Stores) -> None:
    database = stores.open("aggregator")
    broken = text("SELECT * FROM sums WHERE nothing = :x")
    with pytest.raises(SQLAlchemyError, match="sums") as caught, database.write() as connection:
        connection.execute(broken, {"x": 737373})
    assert "737373" not in str(caught.value)
    database.close()


@pytest.mark.parametrize(
    "url", ["", "mysql://host/name", "sqlite://", "sqlite:///:memory:", "nonsense"]
)
def test_addresses_that_are_no_store_are_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="database must"):
        Database(url)


def test_opening_a_store_never_makes_one(tmp_path: Path) -> None:
    missing = Database(f"sqlite:///{tmp_path}/deep/missing.db")
    (tmp_path / "deep").mkdir()
    assert not missing.alive()
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.parametrize("kind", ["text", "sqlite", "wal", "learner"])
def test_a_file_that_is_no_store_is_refused_and_left_as_it_is(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "strangers"
    database = Database(f"sqlite:///{file}")
    if kind == "text":
        file.write_text("root:x:0:0:root:/root:/bin/sh\n")
    elif kind != "learner":
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE songs (name)")
            other.execute(f"PRAGMA journal_mode={'WAL' if kind == 'wal' else 'DELETE'}")
        other.close()
    else:
        upgrade(database, "learner")
        database.close()
    file.chmod(0o644)
    before = file.read_bytes()
    with pytest.raises(InvalidInputError, match="database must be"):
        upgrade(database, "aggregator")
    database.close()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (before, 0o644)


def test_a_store_that_is_away_is_not_alive(tmp_path_factory: pytest.TempPathFactory) -> None:
    away = Database("postgresql://nobody@127.0.0.1:1/none?connect_timeout=1")
    assert not away.alive()
    with pytest.raises(OperationalError), away.read():
        pass
    away.close()


def test_a_connection_that_was_lost_at_rest_is_not_used(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.service.store.database.IDLE_SECONDS", 0.0)
    found = Database(as_user(postgres, "aggregator"))
    with found.read() as connection:
        mine = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    with psycopg.connect(postgres, autocommit=True) as other:
        assert other.execute("SELECT pg_terminate_backend(%s, 10000)", (mine,)).fetchone() == (
            True,
        )
    with found.read() as connection:
        assert connection.execute(text("SELECT pg_backend_pid()")).scalar_one() != mine
    found.close()


def test_postgresql_is_durable_at_every_commit_whatever_its_settings(postgres: str) -> None:
    url = as_user(postgres, "aggregator") + "&options=-csynchronous_commit%3Doff"
    with psycopg.connect(url) as bare:
        assert bare.execute("SHOW synchronous_commit").fetchone() == ("off",)
    found = Database(url)
    with found.read() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
    found.close()
