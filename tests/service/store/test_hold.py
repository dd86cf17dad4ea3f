"""One process per store, even after its connection to PostgreSQL was lost."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
from tests.service.conftest import as_user

from shoal.service.store.hold import LOCK

HOLDER = """
import sys
from shoal.service.store import Database, hold
hold.PAUSE = 0.05
hold.hold(Database(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def holders(watch: psycopg.Connection, *, granted: bool = True) -> set[int]:
    rows = watch.execute(
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted = %s", (granted,)
    )
    return {pid for (pid,) in rows}


def one_holder(watch: psycopg.Connection, *, after: int = 0, granted: bool = True) -> int:
    ends = time.monotonic() + 30
    while not (found := holders(watch, granted=granted) - {after}):
        assert time.monotonic() < ends, "nobody took the lock"
        time.sleep(0.01)
    (pid,) = found
    return pid


def test_a_lock_that_was_lost_is_taken_again_and_where_it_is_taken_the_process_ends(
    postgres: str,
) -> None:
    url = as_user(postgres, "aggregator")
    with (
        psycopg.connect(postgres, autocommit=True) as watch,
        psycopg.connect(url, autocommit=True) as rival,
        subprocess.Popen(
            [sys.executable, "-c", HOLDER, url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process,
        ThreadPoolExecutor(1) as pool,
    ):  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "held\n"
        first = one_holder(watch)
        watch.execute("SELECT pg_terminate_backend(%s)", (first,))
        second = one_holder(watch, after=first)
        assert process.poll() is None
        taken = pool.submit(rival.execute, "SELECT pg_advisory_lock(%s)", (LOCK,))
        one_holder(watch, granted=False)  # the rival is next
        watch.execute("SELECT pg_terminate_backend(%s)", (second,))
        taken.result(30)
        assert process.wait(30) == 1
        assert "another one has this store" in process.stderr.read()
