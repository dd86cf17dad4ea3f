"""The hot route: rewards in batches, read by msgspec, answered with the refused ones only.

FastAPI takes longer to route and check a request than its reports take to be read. So a request in
good order, for a round that is in memory, does not reach it; FastAPI says what is wrong with any
other.
"""

import asyncio
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.report_queue import Source
from shoal.service.aggregator.tokens import Holder
from shoal.service.api.assignments import fetch
from shoal.service.api.schemas import JSON, answer, request_body
from shoal.service.problems import INVALID, MALFORMED, STORE_UNAVAILABLE, ProblemError
from shoal.service.web.access import Name, Number, Service, allow
from shoal.service.web.answers import problem
from shoal.service.web.metrics import Metrics
from shoal.service.web.strict_json import read_strict
from shoal.wire import MAX_REPORTS, Batch, Refusal, Refusals

MAX_COMMIT_SECONDS = 30.0  # that a request waits for its reports to be durable
_PATH = re.compile(r"/v1/campaigns/([^/]+)/rounds/([1-9][0-9]{0,8})/reports")


class UnreadBatch(msgspec.Struct):
    """Reports that are counted and not read."""

    reports: list[msgspec.Raw]


router = APIRouter(prefix="/v1/campaigns/{name}/rounds/{number}", tags=["reports"])

_decoder = msgspec.json.Decoder(Batch)
_counter = msgspec.json.Decoder(UnreadBatch)
_encoder = msgspec.json.Encoder()
_PLACE = re.compile(r" - at `\$\.reports\[(\d+)\]")


@router.post(
    "/reports",
    response_class=Response,
    openapi_extra=request_body(Batch),
    responses=answer(Refusals, "The refused reports, in order; all others are counted for good."),
)
async def report_rewards(
    name: Name,
    number: Number,
    request: Request,
    aggregator: Service,
    holder: Annotated[Holder, allow("app")],
) -> Response:
    """Report rewards between 0 and 1, each user's once; a repeat answers the same."""
    await fetch(aggregator, name, number)
    return await _count(request, aggregator, holder, name, number)


async def _count(
    request: Request, aggregator: Aggregator, holder: Holder, name: str, number: int
) -> Response:
    body = await request.body()
    try:
        batch = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise ProblemError(INVALID, _broken_rule(error, body)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ProblemError(MALFORMED) from None
    reports = [(report.user, report.reward) for report in batch.reports]
    capabilities = [report.capability for report in batch.reports]
    n_reports, n_capabilities = len(reports), sum(map(bool, capabilities))
    _refuse_repeats(
        body,
        [
            (b'"reports"', 1),
            (b'"user"', n_reports),
            (b'"reward"', n_reports),
            (b'"capability"', n_capabilities),
        ],
    )
    source = Source(holder.name, holder.succeeds)
    pending = aggregator.reports.submit(
        name, number, reports, source=source, capabilities=capabilities
    )
    try:
        refused = await asyncio.wait_for(asyncio.wrap_future(pending), MAX_COMMIT_SECONDS)
    except TimeoutError:  # they may be counted all the same
        raise ProblemError(STORE_UNAVAILABLE) from None
    if refused:
        metrics: Metrics = request.app.state.metrics
        metrics.add_refusals(name, (reason.name for _, reason in refused))
    refusals = Refusals([Refusal(index, reason.type) for index, reason in refused])
    return Response(_encoder.encode(refusals), media_type=JSON)


def _refuse_repeats(body: bytes, counts: Iterable[tuple[bytes, int]]) -> None:
    """Refuse a repeated name in a body that was read, quickly where it is written as usual.

    ``counts`` has each name that stands in the body, with its quotes, and how often it must. A body
    with other counts or with escapes may still be right, and is read once more.
    """
    if b"\\" in body or any(body.count(name) != count for name, count in counts):
        read_strict(body)


def _broken_rule(error: msgspec.ValidationError, body: bytes) -> str:
    """Return the rule, and which report is the first to break it: its place, no value of it."""
    place = _PLACE.search(str(error))
    which = f" The first that is not has index {place[1]}." if place else ""
    if "of length <=" in str(error):
        with suppress(msgspec.DecodeError):
            which = f" Got {len(_counter.decode(body).reports):,}."
    return f"reports must be at most {MAX_REPORTS:,} of {{user: text, reward: number}}.{which}"


class FastReports:
    """Wrap an application; reports in good order skip it."""

    def __init__(self, app: ASGIApp, *, aggregator: Aggregator) -> None:
        self._app = app
        self._aggregator = aggregator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        place = _PATH.fullmatch(scope["path"]) if scope.get("method") == "POST" else None
        holder = self._holder(scope, place[1], int(place[2])) if place else None
        if place is None or holder is None:
            await self._app(scope, receive, send)
            return
        name, number = place[1], int(place[2])
        scope["route"], scope["path_params"] = router.routes[0], {"name": name}  # for the guard
        request = Request(scope, receive)
        try:
            answer = await _count(request, self._aggregator, holder, name, number)
        except ProblemError as error:
            answer = problem(error.reason, error.detail)
        await answer(scope, receive, send)

    def _holder(self, scope: Scope, name: str, number: int) -> Holder | None:
        """Return whose token it is, if it may report and its round is in memory."""
        aggregator = self._aggregator
        if not aggregator.rounds.cached_round(name, number):
            return None
        tokens = [value for header, value in scope["headers"] if header == b"authorization"]
        kind, _, token = tokens[0].decode("latin-1").partition(" ") if tokens else ("", "", "")
        holder = aggregator.access.holder(token) if kind == "Bearer" else None
        may_report = holder is not None and holder.role == "app" and holder.covers(name)
        return holder if may_report else None
