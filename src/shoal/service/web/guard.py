"""The outermost layer: limits, a last resort for faults, counts and one log line a request.

A log line has the method, the route's template, the status and the time; a fault has the type of
the error and where it was raised. No path, query, body or message is logged, nor a method of the
caller's own making: each may hold a reward. There is no line for reports that came in: its time
would show a reporter.
"""

import asyncio
import logging
import time
import traceback
from pathlib import Path

from sqlalchemy.exc import OperationalError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shoal.service.campaign import MAX_SEATS
from shoal.service.problems import BUSY, FAULT, SLOW, STORE_UNAVAILABLE, TOO_LARGE, ProblemError
from shoal.service.web.answers import problem
from shoal.service.web.metrics import Metrics, takes_reports

log = logging.getLogger("shoal.service")

MAX_REQUESTS = 1000  # that have arrived and are not answered, as where the store is locked
HEALTH = "/health"  # waits for nothing
_SERVICE = str(Path(__file__).parents[1])
HTTP_METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}


class Guard:
    """Wrap an application; a body has ``body_seconds`` to arrive."""

    def __init__(
        self, app: ASGIApp, *, metrics: Metrics, max_body_bytes: int, body_seconds: float
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes
        self._body_seconds = body_seconds
        self._arrived: set[int] = set()  # requests that are whole and not answered, by id()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if scope["path"] != HEALTH:
                self._enter(scope)
            await self._app(scope, self._limited(scope, receive), send_and_note)
        except asyncio.CancelledError:  # the server stops and has waited long enough
            if not status:
                await problem(FAULT)(scope, receive, send_and_note)
        except Exception as error:
            reason = STORE_UNAVAILABLE if isinstance(error, OperationalError) else FAULT
            if isinstance(error, ProblemError):
                reason = error.reason
            if reason in (FAULT, STORE_UNAVAILABLE):
                log.error("fault %s at %s", type(error).__name__, places(error))
            if not status:
                await problem(reason)(scope, receive, send_and_note)
        self._arrived.discard(id(scope))
        seconds = time.perf_counter() - started
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in HTTP_METHODS else "other"
        campaign = scope.get("path_params", {}).get("name", "")
        self._metrics.add_request(method, route, status, seconds, campaign=campaign)
        if not takes_reports(route, status):
            log.info("%s %s %d %.1f ms", method, route, status, 1e3 * seconds)

    def _enter(self, scope: Scope, *, whole: bool = False) -> None:
        """Count a request that has no body or has all of it; refuse it where there are too many.

        One that is still to come is not counted: whoever sends slowly takes nobody's place.
        """
        if len(self._arrived) >= MAX_REQUESTS:
            raise ProblemError(BUSY)
        if whole or scope["method"] in ("GET", "HEAD"):
            self._arrived.add(id(scope))

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        ends = time.monotonic() + self._body_seconds
        limit = self._max_body_bytes
        if scope["path"].endswith("/plan"):  # of any campaign, in base64; read of a learner alone
            limit = max(limit, 12 * MAX_SEATS)
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        declared = max((int(value) for value in lengths if value.isdigit()), default=0)
        arrived, complete = 0, False
        rule = f"It must have at most {limit:,} bytes."

        async def limited() -> Message:
            nonlocal arrived, complete
            if complete:
                return await receive()
            if declared > limit:
                raise ProblemError(TOO_LARGE, rule)
            try:
                async with asyncio.timeout(max(0.0, ends - time.monotonic())):
                    message = await receive()
            except TimeoutError:
                raise ProblemError(SLOW) from None
            arrived += len(message.get("body", b""))
            complete = message["type"] == "http.request" and not message.get("more_body", False)
            if arrived > limit:
                raise ProblemError(TOO_LARGE, rule)
            if complete and id(scope) not in self._arrived:
                self._enter(scope, whole=True)
            return message

        return limited


def places(error: Exception) -> str:
    """Return where an error was raised, without its message: in the service, and at last."""
    frames = traceback.extract_tb(error.__traceback__)
    service_frames = [frame for frame in frames[:-1] if frame.filename.startswith(_SERVICE)]
    shown = [*service_frames[-3:], *frames[-1:]]
    return " < ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in shown)
