"""A real server on loopback, in a thread, with a learner that the test drives or lets run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx
import uvicorn
from tests.support.service import KEY
from tests.support.stores import Stores

from shoal.client import Client
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.tokens import ROLES
from shoal.service.application import create_app
from shoal.service.connections import connections
from shoal.service.learner.service import Learner
from shoal.service.process import Server
from shoal.service.store import Clock, system_clock
from shoal.service.web.metrics import Metrics

httpx._config.DEFAULT_TIMEOUT_CONFIG.read = 60.0  # five seconds are short on a busy machine
# Each client would read the certificates of HTTPS, which takes longer than most tests.
httpx._transports.default.create_ssl_context = (  # type: ignore[attr-defined]
    cache(httpx._config.create_ssl_context)
)


@dataclass
class Live:
    """A running service."""

    url: str
    aggregator: Aggregator
    learner: Learner
    tokens: dict[str, str]
    metrics: Metrics
    clients: list[Client] = field(default_factory=list)

    def client(self, role: str, *, patience: float = 5.0) -> Client:
        client = Client(self.url, self.tokens[role], patience=patience)
        self.clients.append(client)
        return client

    def work(self) -> int:
        """Let the learner do what there is to do now, and say that it has done it."""
        done = 0
        while found := self.learner.work(wait=0.0):
            done += found
            assert done < 10_000
        return done


@contextmanager
def serve(
    stores: Stores,
    *,
    clock: Clock = system_clock,
    body_seconds: float = 20.0,
    tick_seconds: float = 3600,
    floor: int = 1,
    port: int = 0,
    tokens: dict[str, str] | None = None,
    key: bytes = KEY,
    **limits: Any,
) -> Iterator[Live]:
    """Serve; ``port`` and ``tokens`` are those of a server that is started again."""
    aggregator = Aggregator(stores.open("aggregator"), key=key, clock=clock, floor=floor)
    if tokens is None:
        tokens = {role: aggregator.access.issue(role, role) for role in ROLES}
    app = create_app(aggregator, body_seconds=body_seconds, tick_seconds=tick_seconds, **limits)
    protocol = connections(seconds=20.0, max_connections=1000)
    config = uvicorn.Config(app, port=port, http=protocol, log_config=None, access_log=False)
    server = Server(config, stop=aggregator.notifier.close)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    ends = time.monotonic() + 120
    while not server.started and time.monotonic() < ends:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    client = Client(url, tokens["learner"], patience=5.0)
    learner = Learner(stores.open("learner"), client)
    live = Live(url, aggregator, learner, tokens, app.state.metrics, [client])
    try:
        yield live
    finally:
        for opened in live.clients:
            opened.close()
        live.learner.database.close()
        server.should_exit = True
        thread.join(120)


@contextmanager
def learning(live: Live) -> Iterator[None]:
    """Let the learner run by itself."""
    stopped = threading.Event()

    def loop() -> None:
        live.learner.work_until(stopped, wait=0.2)

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(120)
