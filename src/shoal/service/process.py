"""Runs a role: one process with its own store and nothing of the other's."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from socket import SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, socket
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from shoal.errors import InvalidInputError, ShoalError
from shoal.service.clock import system_clock
from shoal.service.connections import connections, max_connections
from shoal.service.settings import Settings
from shoal.service.store import Database
from shoal.service.store.migrate import StoreRole, upgrade

if TYPE_CHECKING:
    from shoal.service.aggregator.tokens import Access

SUPERVISED = "SHOAL_SUPERVISED"
HEAD_SECONDS = 20.0  # that a request's head may take to reach the learner


def open_store(url: str, role: StoreRole) -> Database:
    """Open a store at the newest schema, for this process alone."""
    database = Database(url)
    try:
        database.create()
        database.hold()
        upgrade(database, role)
    except (OSError, SQLAlchemyError) as error:
        raise ShoalError(f"the {role}'s store can't be opened: {_reason(error)}") from None
    return database


def run_aggregator(
    settings: Settings,
    *,
    announce: Callable[[str], None],
    new_tokens: bool = False,
    abandon_open_rounds: bool = False,
) -> None:
    """Serve the aggregator; its first start creates one token per role and announces them."""
    from shoal.service.aggregator import Aggregator
    from shoal.service.aggregator.keys import check_secrets, claim_key
    from shoal.service.application import create_app, warm_up

    part = settings.aggregator
    listener = _bind("aggregator", part.host, part.port)
    database = open_store(settings.database("aggregator"), "aggregator")
    abandon, now = abandon_open_rounds, system_clock()
    try:
        key = claim_key(database, settings.key_file, now=now, abandon_open_rounds=abandon)
        check_secrets(database, settings.secrets, now=now, abandon_open_rounds=abandon)
    except OSError as error:
        raise ShoalError(f"key_file can't be read or created: {_reason(error)}") from None
    floor = part.min_group_size_floor
    aggregator = Aggregator(database, key=key, secrets=settings.secrets, floor=floor)
    _announce_tokens(aggregator.access, settings, announce, new=new_tokens)
    app = create_app(aggregator, max_body_bytes=part.max_body_bytes, body_seconds=part.body_seconds)
    warm_up()
    announce(f"The dashboard is at {part.address}/")
    _serve(app, listener, seconds=part.body_seconds, stop=aggregator.notifier.close)


def _bind(role: StoreRole, host: str, port: int) -> socket:
    """Bind an address before anything is created; requests wait until it is served."""
    try:
        family, kind, protocol, _, address = getaddrinfo(host, port, type=SOCK_STREAM)[0]
        listener = socket(family, kind, protocol)  # else asyncio delays small answers by 40 ms
        listener.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        raise InvalidInputError(
            f"{role}.host and {role}.port must be a free address of this machine; "
            f"{host} {port}: {_reason(error)}"
        ) from None
    return listener


def _reason(error: Exception) -> str:
    """Return an error's cause in one line."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return f"{' '.join(str(cause).split()).rstrip('.')}."


def _announce_tokens(
    access: Access, settings: Settings, announce: Callable[[str], None], *, new: bool
) -> None:
    from shoal.service.aggregator.tokens import ROLES

    supervised = SUPERVISED in os.environ
    if new:
        access.clear()
    if supervised:  # the learner beside this process has the token from the supervisor
        access.adopt("learner", "learner", settings.learner.token)
    if new or "operator" not in access.roles().values():
        for role in ROLES:
            if not (supervised and role == "learner"):
                announce(f"{role:9} {access.issue(role, role)}")
        announce("These tokens are shown this once; only their hashes are stored.")


def run_learner(settings: Settings) -> None:
    """Serve the learner."""
    from shoal.client import Client
    from shoal.service.learner.application import create_app
    from shoal.service.learner.service import Learner

    part = settings.learner
    if not part.token:
        raise InvalidInputError("learner.token must be a learner's token; set SHOAL_LEARNER_TOKEN.")
    listener = _bind("learner", part.host, part.port)
    database = open_store(settings.database("learner"), "learner")
    learner = Learner(database, Client(part.aggregator, part.token, patience=5.0))
    stopped = threading.Event()
    _serve(create_app(learner, stopped), listener, seconds=HEAD_SECONDS, stop=stopped.set)


class Server(uvicorn.Server):
    """A server that calls ``stop`` before it stops, so that requests that only wait end."""

    def __init__(self, config: uvicorn.Config, *, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Accept no more requests, and finish the present ones."""
        self._stop()
        await super().shutdown(sockets)


def _serve(app: FastAPI, listener: socket, *, seconds: float, stop: Callable[[], None]) -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)  # its lines carry addresses
    config = uvicorn.Config(
        app,
        http=connections(seconds=seconds, most=max_connections()),
        ws="none",
        backlog=100,  # that many are taken at a time, before any of them can be closed
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=5,
    )
    if SUPERVISED in os.environ:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    Server(config, stop=stop).run(sockets=[listener])


def _end_with_parent() -> None:
    """End this process when the supervisor has ended, which closes its end of the pipe."""
    while os.read(sys.stdin.fileno(), 1):  # not its buffer, which this thread would hold at the end
        pass
    os._exit(1)
