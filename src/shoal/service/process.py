"""Running the roles: each is one process with its own store and nothing of the other's."""

from __future__ import annotations

import fcntl
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import IO, TYPE_CHECKING

import uvicorn
from fastapi import FastAPI

from shoal.errors import InvalidInputError, ShoalError
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
    settings: Settings, *, announce: Callable[[str], None], new_tokens: bool = False
) -> None:
    """Serve the aggregator; its first start makes one token per role and announces them."""
    from shoal.service.aggregator import Aggregator
    from shoal.service.aggregator.blinding import load_key
    from shoal.service.api.application import create_app

    part = settings.aggregator
    settings.key_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = load_key(settings.key_file)
    with settings.key_file.open("rb") as alone:  # held until the process ends
        _hold(alone)
        database = open_store(settings.aggregator_database, "aggregator")
        aggregator = Aggregator(database, key=key, floor=part.min_group_size_floor)
        _announce_tokens(aggregator.access, settings, announce, new=new_tokens)
        app = create_app(
            aggregator, max_body_bytes=part.max_body_bytes, body_seconds=part.body_seconds
        )
        _serve(app, part.host, part.port)


def _hold(file: IO[bytes]) -> None:
    """Refuse to be the second process on a store: each would trust its own memory."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ShoalError("another aggregator is running with this key file.") from None


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
    _serve(create_app(learner), part.host, part.port)


def _serve(app: FastAPI, host: str, port: int) -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)  # its lines carry addresses
    config = uvicorn.Config(
        app, host=host, port=port, access_log=False, log_config=None, timeout_graceful_shutdown=5
    )
    if SUPERVISED in os.environ:
        threading.Thread(target=_end_with_parent, daemon=True).start()
    uvicorn.Server(config).run()


def _end_with_parent() -> None:
    """Wait for the supervisor to be gone: then its end of the pipe is closed."""
    sys.stdin.buffer.read()
    os._exit(1)
