"""Connections: no more than the process has files for, and none that waits for ever.

A connection that does not bring the head of a request in time is closed; bodies are the guard's.
Where there are too many, the one that has waited longest without a request makes room. So nobody
can take all of the process's open files, which it needs to answer anyone. What is not HTTP is
answered with a problem, like everything else.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from shoal.service.problems import MEDIA_TYPE, NOT_HTTP

MAX_FILES = 65_536


def max_connections() -> int:
    """Let this process open as many files as it may, and return half of that for connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return files // 2


def connections(*, seconds: float, most: int) -> type[H11Protocol]:
    """Return the protocol of at most ``most`` connections; a head has ``seconds`` to arrive."""
    waiting: dict[Connection, asyncio.TimerHandle] = {}  # the longest waiting first

    class Connection(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > most:
                longest = next(iter(waiting))
                longest._stop_waiting()
                longest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def handle_events(self) -> None:
            super().handle_events()
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()

        def on_response_complete(self) -> None:
            self._wait()
            super().on_response_complete()

        def send_400_response(self, msg: str) -> None:
            body = NOT_HTTP.document()
            headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body))}
            head = h11.Response(
                status_code=NOT_HTTP.status,
                headers=[*headers.items(), ("Connection", "close")],
                reason=b"Bad Request",
            )
            for part in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(part) or b"")
            self.transport.close()

        def _wait(self) -> None:
            self._stop_waiting()
            waiting[self] = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            timer = waiting.pop(self, None)
            if timer is not None:
                timer.cancel()

    return Connection
