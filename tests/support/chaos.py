"""A campaign over HTTP while its processes are killed; then the same without a kill, to compare."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import Client
from shoal.service.embedded import READY, read_tokens

N_USERS = 60
POLICY = os.environ.get("SHOAL_CHAOS_POLICY", "explore-then-commit")  # quick to start again
DEFINITION = {
    "arms": ["a", "b", "c"], "min_group_size": 5, "seats": N_USERS, "horizon": 100_000,
    "policy": POLICY, "options": {} if POLICY == "shoal" else {"exploration": 0.02}, "seed": 7,
}  # fmt: skip

VICTIMS = ("tree", "aggregator", "learner")


def reward(user: str, number: int, arm: str) -> float:
    """A reward that depends on nothing but its place: both runs report the same."""
    return sha256(f"{user} {number} {arm}".encode()).digest()[0] / 255


def free_port() -> int:
    """A port below those that the kernel gives to clients: none of them takes it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_000)
        with socket.socket() as taken, suppress(OSError):
            taken.bind(("127.0.0.1", port))
            return port


@dataclass
class Tree:
    """``shoal serve`` as its user runs it."""

    stores: Stores
    data: Path
    port: int = field(default_factory=free_port)
    tokens: dict[str, str] = field(default_factory=dict)
    turns: list[str] = field(default_factory=list)

    def start(self) -> None:
        environment = os.environ | {
            "SHOAL_DATA": str(self.data),
            "SHOAL_AGGREGATOR_DATABASE": self.stores.aggregator,
            "SHOAL_LEARNER_DATABASE": self.stores.learner,
            "SHOAL_AGGREGATOR_PORT": str(self.port),
            "SHOAL_LEARNER_PORT": str(free_port()),
        }
        with (self.data / "service.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "shoal.cli", "serve"],
                env=environment, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
        assert self.process.stdout is not None
        while not self.tokens:
            if self.process.stdout.readline().startswith(READY.encode()):
                self.tokens = read_tokens(self.data / "tokens.env")

    def __enter__(self) -> Tree:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def children(self) -> list[int]:
        pid = self.process.pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(child) for child in text.split()]

    def kill(self, rng: random.Random) -> None:
        """Kill one role, or the whole tree, with no warning: each of the three in its turn."""
        self.turns = self.turns or rng.sample(VICTIMS, len(VICTIMS))
        victim = self.turns.pop()
        children = self.children()
        roles = [pid for pid in children if _role(pid) == victim]
        if not roles:  # the tree, or a role that is only about to start
            for pid in (self.process.pid, *children):
                _kill(pid)
            self.process.wait()
            while any(_alive(pid) for pid in children):  # their port must be free again
                time.sleep(0.01)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.start()
        else:
            _kill(roles[0])

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(120)
        assert self.process.stdout is not None
        self.process.stdout.close()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _role(pid: int) -> str:
    """The last word of a child's command."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").rpartition("\0")[2]
    return ""


def _alive(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


@contextmanager
def killing(tree: Tree, seed: int, kills: list[int], rounds: list[int]) -> Iterator[None]:
    """Kill something at a random moment, again and again, each time after some progress."""
    rng, stopped = random.Random(seed), threading.Event()

    def work() -> None:
        while not stopped.wait(rng.uniform(0.0, 0.4)):
            tree.kill(rng)
            done = len(rounds)
            kills.append(done)
            while len(rounds) == done and not stopped.wait(0.01):
                pass

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(60)


def play(operator: Client, app: Client, number: int) -> None:
    """One round, however often a call must be repeated."""
    ends = time.monotonic() + 600  # kernels may have to be compiled, on a busy machine
    while operator.open_round("chaos", number, wait=2.0).state == "wanted":
        assert time.monotonic() < ends, "no plan for ten minutes"
    arms = app.assignments("chaos", number=number)
    rewards = {user: reward(user, number, arms[user]) for user in users(N_USERS)}
    assert app.report("chaos", number, rewards, batch_size=20) == []
    operator.close_round("chaos", number)


def campaign(operator: Client) -> None:
    operator.create_campaign("chaos", **DEFINITION)
    operator.enrol("chaos", users(N_USERS))
