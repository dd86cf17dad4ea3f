"""Assignments: one user's arm by look-up, a page, or all of them as NDJSON or Arrow."""

import io
from collections.abc import Iterator
from itertools import islice
from typing import Annotated

import msgspec
import numpy as np
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from shoal.service.aggregator.campaigns import SeatedUsers
from shoal.service.aggregator.rounds import FrozenPlan
from shoal.service.problems import NOT_ACCEPTABLE, UNKNOWN_USER, ProblemError
from shoal.service.web.access import Name, Service, User, allow
from shoal.wire import Assignment, Page

router = APIRouter(prefix="/v1/campaigns/{name}/assignments", tags=["assignments"])

ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"

Which = Annotated[
    int | None, Query(alias="round", ge=1, le=2**31 - 1, description="By default the last.")
]
After = Annotated[int, Query(ge=0, le=2**31 - 1, description="Where the next page begins.")]
Limit = Annotated[int, Query(ge=1, le=10_000)]


@router.get("/{user}", dependencies=[allow("app")], response_model=Assignment)
async def read_assignment(
    name: Name, user: User, aggregator: Service, number: Which = None
) -> Response:
    """Read one user's arm."""
    number = await fetch(aggregator, name, number)
    plan = aggregator.rounds.plan(name, number)[1]
    seat = aggregator.directory.roster(name).seats.get(user, -1)
    arm = int(plan.arms[seat]) if seat >= 0 else -1
    if arm < 0:
        raise ProblemError(UNKNOWN_USER)
    arms = aggregator.directory.campaign(name).arms
    return _json(Assignment(number, user, arms[arm]))


@router.get(
    "",
    dependencies=[allow("app")],
    response_model=Page,
    responses={200: {"content": {NDJSON: {}, ARROW: {}}}},
)
def read_assignments(
    name: Name,
    request: Request,
    aggregator: Service,
    number: Which = None,
    after: After = 0,
    limit: Limit = 1000,
) -> Response:
    """Read a page of assignments as JSON, or all of them as NDJSON or an Arrow stream."""
    accepted = request.headers.get("accept", "*/*")
    number = aggregator.rounds.fetch(name, number)
    plan = aggregator.rounds.plan(name, number)[1]
    arms, roster = aggregator.directory.campaign(name).arms, aggregator.directory.roster(name)
    if ARROW in accepted:
        return _arrow(number, plan, arms, roster)
    if NDJSON in accepted:
        return StreamingResponse(_lines(number, plan, arms, roster), media_type=NDJSON)
    if not any(kind in accepted for kind in ("application/json", "application/*", "*/*")):
        rule = f"Accept must be application/json, {NDJSON} or {ARROW}."
        raise ProblemError(NOT_ACCEPTABLE, rule)
    seats = list(islice(roster.named(plan.arms, after=after), limit + 1))
    page = {roster.users[seat]: arms[plan.arms[seat]] for seat in seats[:limit]}
    following = seats[limit] if len(seats) > limit else None
    return _json(Page(number, page, following))


async def fetch(aggregator: Service, name: str, number: int | None) -> int:
    """Load a round into memory without blocking other requests; return its number."""
    cached = aggregator.rounds.cached_round(name, number)
    if cached is None:
        return await run_in_threadpool(aggregator.rounds.fetch, name, number)
    return cached


def _json(message: Assignment | Page) -> Response:
    return Response(msgspec.json.encode(message), media_type="application/json")


def _arrow(number: int, plan: FrozenPlan, arms: list[str], roster: SeatedUsers) -> Response:
    import polars as pl

    seats = np.fromiter(roster.named(plan.arms), np.int64)
    frame = pl.DataFrame(
        {
            "user": pl.Series(roster.users, dtype=pl.String).gather(seats),
            "arm": pl.Series(arms, dtype=pl.String).gather(plan.arms[seats]),
        }
    )
    body = io.BytesIO()
    frame.write_ipc_stream(body)
    return Response(body.getvalue(), media_type=ARROW, headers={"Shoal-Round": str(number)})


def _lines(number: int, plan: FrozenPlan, arms: list[str], roster: SeatedUsers) -> Iterator[bytes]:
    encode, users = msgspec.json.encode, roster.users
    seats = list(roster.named(plan.arms))
    for start in range(0, len(seats), 10_000):
        yield b"".join(
            encode(Assignment(number, users[seat], arms[plan.arms[seat]])) + b"\n"
            for seat in seats[start : start + 10_000]
        )
