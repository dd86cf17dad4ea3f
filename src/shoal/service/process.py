"""Runs a role: one process with its own store and nothing of the other's."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from socket import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError

from shoal.errors import InvalidInputError, ShoalError
from shoal.files import write_atomically
from shoal.service import logs
from shoal.service.connections import connections, max_connections
from shoal.service.listener import bind
from shoal.service.settings import EVERYWHERE, Settings
from shoal.service.startup import SUPERVISED, announce_ready, forbid_core_dumps
from shoal.service.store import Database, system_clock
from shoal.service.store.database import reason_of
from shoal.service.store.migrate import StoreRole, upgrade

if TYPE_CHECKING:
    from shoal.service.aggregator.tokens import Access
    from shoal.service.aggregator.witness import Witness

HEAD_SECONDS = 20.0  # that a request's head may take to reach the learner


def open_store(url: str, role: StoreRole) -> Database:
    """Open a store at the newest schema, for this process alone."""
    database = Database(url)
    try:
        database.create()
        database.hold()
        upgrade(database, role)
    except (OSError, SQLAlchemyError) as error:
        raise ShoalError(f"the {role}'s store can't be opened: {reason_of(error)}") from None
    return database


def run_aggregator(
    settings: Settings,
    *,
    announce: Callable[[str], None],
    new_tokens: bool = False,
    abandon_open_rounds: bool = False,
) -> None:
    """Serve the aggregator; its first start writes one token per role to a file."""
    forbid_core_dumps()
    part = settings.aggregator
    logs.configure(part.log_format)
    listener = bind("aggregator", part.host, part.port)
    database = open_store(settings.database("aggregator"), "aggregator")
    # What takes long to load comes after what may be refused.
    from shoal.service.aggregator import Aggregator
    from shoal.service.aggregator.keys import boot_id, check_secrets, claim_key
    from shoal.service.aggregator.witness import warn_if_missing
    from shoal.service.application import create_app, warm_up

    witness = _open_witness(settings, database)
    witnessed = witness is not None and witness.knows
    abandon, now = abandon_open_rounds, system_clock()
    rules: dict[str, Any] = {"now": now, "abandon_open_rounds": abandon, "witnessed": witnessed}
    try:
        key = claim_key(database, settings.key_file, boot=boot_id(), **rules)
        check_secrets(database, settings.secrets, **rules)
    except OSError as error:
        raise ShoalError(f"key_file can't be read or created: {reason_of(error)}") from None
    if witness is None:
        warn_if_missing(database)
    else:
        witness.reconcile(database, now=now)
    floor = part.min_group_size_floor
    aggregator = Aggregator(
        database, key=key, secrets=settings.secrets, floor=floor, witness=witness
    )
    _make_tokens(aggregator.access, settings, announce, new=new_tokens)
    app = create_app(
        aggregator,
        max_body_bytes=part.max_body_bytes,
        body_seconds=part.body_seconds,
        secure_cookies=part.secure_cookies == "always",
    )
    warm_up()
    elsewhere = " on this machine, and at its other addresses" if part.host in EVERYWHERE else ""
    announce(f"The dashboard is at {part.address}/{elsewhere}")
    seconds, stop = part.body_seconds, aggregator.notifier.close
    _serve(app, listener, seconds=seconds, stop=stop, proxies=part.proxies)


def _open_witness(settings: Settings, database: Database) -> Witness | None:
    """Open the witness, which must not go back with what it is a witness of."""
    if not settings.aggregator.witness:
        return None
    from shoal.service.aggregator.witness import Witness, why_unwritable

    file = Path(settings.aggregator.witness).resolve()  # a link goes where it leads
    for place in filter(None, (settings.key_file, database.file)):
        if file.is_relative_to(place.absolute().parent.resolve()):
            raise InvalidInputError(
                f"aggregator.witness must be outside of the folder {place.parent}; got {file}."
            )
    if fault := why_unwritable(file):
        raise InvalidInputError(fault)
    return Witness(file)


def _make_tokens(
    access: Access, settings: Settings, announce: Callable[[str], None], *, new: bool
) -> None:
    """Make a token for each role that has none, where no token could make one.

    They are in their file before the store has them, the admin's last: a start that was cut off
    is made up for by the next.
    """
    from shoal.service.aggregator.tokens import ROLES, new_token

    supervised = SUPERVISED in os.environ
    if new:
        access.clear()
    if supervised:  # the learner beside this process has the token from the supervisor
        access.adopt("learner", "learner", settings.learner.token)
    roles = access.roles()
    if not new and "admin" in roles.values():
        return
    missing = [role for role in ROLES if role not in roles.values() and role not in roles]
    tokens = {role: new_token(role) for role in missing}
    handed = settings.aggregator.learner_token_file if "learner" in tokens else ""
    lines = [
        f"SHOAL_{role.upper()}_TOKEN={token}\n"
        for role, token in tokens.items()
        if not (handed and role == "learner")
    ]
    file = settings.token_file
    try:
        if handed:  # alone in its file, which the learner's host or container may read
            write_atomically(Path(handed), f"{tokens['learner']}\n".encode(), mode=0o600)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(file, "".join(lines).encode(), mode=0o600)
    except OSError as error:
        raise ShoalError(f"token_file can't be written: {reason_of(error)}") from None
    for role in sorted(missing, key="admin".__eq__):
        access.adopt(role, role, tokens[role])
    announce(f"Tokens of {', '.join(missing)} are in {file}; only their hashes are stored.")


def run_learner(settings: Settings) -> None:
    """Serve the learner."""
    forbid_core_dumps()
    part = settings.learner
    logs.configure(part.log_format)
    token = part.token or _read_token(part.token_file)
    listener = bind("learner", part.host, part.port)
    database = open_store(settings.database("learner"), "learner")
    from shoal.client import Client
    from shoal.service.learner.application import create_app
    from shoal.service.learner.service import Learner

    learner = Learner(database, Client(part.aggregator, token, patience=5.0))
    stopped = threading.Event()
    _serve(create_app(learner, stopped), listener, seconds=HEAD_SECONDS, stop=stopped.set)


def _read_token(file: str) -> str:
    """Read the token that an aggregator has put in a file for its learner."""
    if not file:
        raise InvalidInputError("learner.token must be a learner's token; set SHOAL_LEARNER_TOKEN.")
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        raise InvalidInputError(
            f"learner.token_file must hold a learner's token; {reason_of(error)}"
        ) from None


class Server(uvicorn.Server):
    """A server that says when it is ready.

    It calls ``stop`` before it stops, so that requests that only wait end.
    """

    def __init__(self, config: uvicorn.Config, *, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to serve, and say so."""
        await super().startup(sockets)
        if self.started:
            announce_ready()

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Accept no more requests, and finish the present ones."""
        self._stop()
        await super().shutdown(sockets)


def _serve(
    app: FastAPI,
    listener: socket,
    *,
    seconds: float,
    stop: Callable[[], None],
    proxies: Sequence[str] = (),
) -> None:
    config = uvicorn.Config(
        app,
        http=connections(seconds=seconds, max_connections=max_connections()),
        ws="none",
        backlog=100,  # that many are taken at a time, before any of them can be closed
        access_log=False,
        log_config=None,
        forwarded_allow_ips=list(proxies),
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
