"""Connections: no more than the process has files for, and none that waits for ever.

A connection that does not bring the head of a request in time is closed, and one whose head is too
long; bodies are the guard's.
Where there are too many, the one that has waited longest without a request makes room. So nobody
can take all of the process's open files, which it needs to answer anyone. What is not HTTP is
answered with a problem, like everything else.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from shoal.service.problems import MEDIA_TYPE, NOT_HTTP

MAX_FILES = 65_536
MAX_HEAD_BYTES = 65_536  # of a request


def max_connections() -> int:
    """Let this process open as many files as it may, and return half of that for connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return files // 2


def connections(*, seconds: float, max_connections: int) -> type[HttpToolsProtocol]:
    """Return the protocol of ``max_connections`` at most; a head has ``seconds`` to arrive."""
    waiting: dict[Connection, asyncio.TimerHandle] = {}  # the longest waiting first

    class Connection(HttpToolsProtocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > max_connections:
                longest = next(iter(waiting))
                longest._stop_waiting()
                longest.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
                return
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("")

        def on_headers_complete(self) -> None:
            length = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if length > MAX_HEAD_BYTES or self.parser.get_http_version() not in ("1.0", "1.1"):
                raise ValueError("not a head that is answered")  # like what is not HTTP
            super().on_headers_complete()

        def on_response_complete(self) -> None:
            self._wait()
            super().on_response_complete()

        def send_400_response(self, msg: str) -> None:
            body = NOT_HTTP.document()
            head = f"Content-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\n"
            end = "Connection: close\r\n\r\n"
            self.transport.write(STATUS_LINE[NOT_HTTP.status] + f"{head}{end}".encode() + body)
            self.transport.close()

        def _wait(self) -> None:
            self._stop_waiting()
            self._head_bytes = 0
            waiting[self] = self.loop.call_later(seconds, self.transport.close)

        def _stop_waiting(self) -> None:
            timer = waiting.pop(self, None)
            if timer is not None:
                timer.cancel()

    return Connection
