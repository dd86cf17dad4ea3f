"""One process per store, and none that has lost it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from tests.support.stores import as_user

from shoal.errors import ShoalError
from shoal.service.store import Database

HOLDER = """
import sys
from shoal.service.store import Database, database
database.LOCK_CHECK_SECONDS = 0.05
Database(sys.argv[1]).hold()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_process_whose_lock_on_postgresql_is_lost_ends(postgres: str) -> None:
    url = as_user(postgres, "aggregator")
    with (
        psycopg.connect(postgres, autocommit=True) as watch,
        subprocess.Popen(
            [sys.executable, "-c", HOLDER, url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "held\n"
        ended = watch.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
        ).fetchall()
        assert ended == [(True,)]
        assert process.wait(120) == 1
        message = process.stderr.read()
        assert "the connection that holds the store is lost" in message
        assert "plain shoal serve starts it again, a role alone needs systemd" in message


def test_a_store_that_another_process_has_is_named(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/aggregator.db")
    database.create()
    database.hold()
    rule = f"another one has the store {tmp_path}/aggregator.db."
    with pytest.raises(ShoalError, match=re.escape(rule)):
        Database(f"sqlite:///{tmp_path}/aggregator.db").hold()
    (tmp_path / "aggregator.db.lock").unlink()
