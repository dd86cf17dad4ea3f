"""Running the roles: each is one process with its own store and nothing of the other's."""

from __future__ import annotations

import fcntl
import logging
import os
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from socket import socket
from typing import IO, TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from shoal.errors import InvalidInputError, ShoalError
from shoal.service.clock import system_clock
from shoal.service.settings import Settings
from shoal.service.store import Database
from shoal.service.store.migrate import Role, upgrade

if TYPE_CHECKING:
    from shoal.service.aggregator.tokens import Access

SUPERVISED = "SHOAL_SUPERVISED"


def open_store(url: str, role: Role) -> Database:
    """Open a store at the newest schema."""
    database = Database(url)
    upgrade(database, role)
    return database


def run_aggregator(
    settings: Settings,
    *,
    announce: Callable[[str], None],
    new_tokens: bool = False,
    abandon_open_rounds: bool = False,
) -> None:
    """Serve the aggregator; its first start makes one token per role and announces them."""
    from shoal.service.aggregator import Aggregator
    from shoal.service.aggregator.blinding import claim_key
    from shoal.service.aggregator.round_keys import check_secrets
    from shoal.service.api.application import create_app
    from shoal.service.dashboard.application import warm_up

    part = settings.aggregator
    held = _hold(settings.key_file)
    database = open_store(settings.aggregator_database, "aggregator")
    now = system_clock()
    key = claim_key(database, settings.key_file, now=now, abandon_open_rounds=abandon_open_rounds)
    check_secrets(database, settings.secrets, now=now, abandon_open_rounds=abandon_open_rounds)
    with held or _hold(settings.key_file) or nullcontext():  # until the process ends
        aggregator = Aggregator(
            database, key=key, secrets=settings.secrets, floor=part.min_group_size_floor
        )
        _announce_tokens(aggregator.access, settings, announce, new=new_tokens)
        app = create_app(
            aggregator, max_body_bytes=part.max_body_bytes, body_seconds=part.body_seconds
        )
        warm_up()
        host = f"[{part.host}]" if ":" in part.host else part.host
        announce(f"The dashboard is at http://{host}:{part.port}/")
        _serve(app, part.host, part.port, stop=aggregator.bell.silence)


def _hold(key_file: Path) -> IO[bytes] | None:
    """Refuse to be the second process on a store: each would trust its own memory."""
    if not key_file.is_file():
        return None
    file = key_file.open("rb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ShoalError("another aggregator is running with this key file.") from None
    return file


def _announce_tokens(
    access: Access, settings: Settings, announce: Callable[[str], None], *, new: bool
) -> None:
    from shoal.service.aggregator.tokens import ROLES

    supervised = SUPERVISED in os.environ
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
    database = open_store(settings.learner_database, "learner")
    learner = Learner(database, Client(part.aggregator, part.token, patience=5.0))
    stopped = threading.Event()
    _serve(create_app(learner, stopped), part.host, part.port, stop=stopped.set)


class Server(uvicorn.Server):
    """A server that says when it is about to stop, so that nobody keeps it waiting.

    Parameters
    ----------
    stop
        Lets requests that only wait come to an end.
    """

    def __init__(self, config: uvicorn.Config, *, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Take no more requests, and finish those that are there."""
        self._stop()
        await super().shutdown(sockets)


def _serve(app: FastAPI, host: str, port: int, *, stop: Callable[[], None]) -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)  # its lines carry addresses
    config = uvicorn.Config(
        app, host=host, port=port, access_log=False, log_config=None, timeout_graceful_shutdown=5
    )
    if SUPERVISED in os.environ:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    Server(config, stop=stop).run()


def _end_with_parent() -> None:
    """Wait for the supervisor to be gone: then its end of the pipe is closed."""
    sys.stdin.buffer.read()
    os._exit(1)
