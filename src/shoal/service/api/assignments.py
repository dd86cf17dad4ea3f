"""Assignments: one user's arm by look-up, a page, or all of them as NDJSON or Arrow."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Annotated

import msgspec
import numpy as np
from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from shoal.service.aggregator.rounds import Frozen as FrozenPlan
from shoal.service.api.access import Name, Service, User, allow
from shoal.service.campaign import Frozen
from shoal.service.problems import NOT_ACCEPTABLE, ROUND_NOT_OPEN, UNKNOWN_USER, ProblemError

router = APIRouter(prefix="/v1/campaigns/{name}/assignments", tags=["assignments"])

ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"

Which = Annotated[
    int | None, Query(alias="round", ge=1, le=2**31 - 1, description="By default the last.")
]
After = Annotated[int, Query(ge=0, le=2**31 - 1, description="Where the next page begins.")]
Limit = Annotated[int, Query(ge=1, le=10_000)]


class Assignment(Frozen):
    """What one user plays in a round."""

    round: int
    user: str
    arm: str


class Page(Frozen):
    """A page of assignments; ``next`` is missing on the last one."""

    round: int
    assignments: dict[str, str]
    next: int | None


@router.get("/{user}", dependencies=[allow("app")])
def read_assignment(
    name: Name, user: User, aggregator: Service, number: Which = None
) -> Assignment:
    """Read one user's arm."""
    number, plan = _plan(aggregator, name, number)
    seat = aggregator.directory.roster(name).seats.get(user, -1)
    arm = int(plan.arms[seat]) if seat >= 0 else -1
    if arm < 0:
        raise ProblemError(UNKNOWN_USER)
    return Assignment(round=number, user=user, arm=aggregator.directory.campaign(name).arms[arm])


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
) -> Response | Page:
    """Read a page of assignments as JSON, or all of them as NDJSON or an Arrow stream."""
    wanted = request.headers.get("accept", "*/*")
    number, plan = _plan(aggregator, name, number)
    arms, users = aggregator.directory.campaign(name).arms, aggregator.directory.roster(name).users
    if ARROW in wanted:
        return _arrow(number, plan, arms, users)
    if NDJSON in wanted:
        return StreamingResponse(_lines(number, plan, arms, users), media_type=NDJSON)
    if not any(kind in wanted for kind in ("application/json", "application/*", "*/*")):
        raise ProblemError(NOT_ACCEPTABLE)
    seats = np.flatnonzero(plan.arms[after:] >= 0)[: limit + 1] + after
    found = {users[seat]: arms[plan.arms[seat]] for seat in seats[:limit].tolist()}
    following = int(seats[limit]) if len(seats) > limit else None
    return Page(round=number, assignments=found, next=following)


def _plan(aggregator: Service, name: str, number: int | None) -> tuple[int, FrozenPlan]:
    if number is None:
        last = aggregator.latest(name)
        if last is None:
            raise ProblemError(ROUND_NOT_OPEN)
        number = last.number
    return number, aggregator.plan(name, number)[1]


def _arrow(number: int, plan: FrozenPlan, arms: list[str], users: list[str]) -> Response:
    import polars as pl

    seats = np.flatnonzero(plan.arms >= 0)
    frame = pl.DataFrame(
        {
            "user": pl.Series(users, dtype=pl.String).gather(seats),
            "arm": pl.Series(arms, dtype=pl.String).gather(plan.arms[seats]),
        }
    )
    body = io.BytesIO()
    frame.write_ipc_stream(body)
    return Response(body.getvalue(), media_type=ARROW, headers={"Shoal-Round": str(number)})


def _lines(number: int, plan: FrozenPlan, arms: list[str], users: list[str]) -> Iterator[bytes]:
    encode = msgspec.json.encode
    seats = np.flatnonzero(plan.arms >= 0).tolist()
    for start in range(0, len(seats), 10_000):
        yield b"".join(
            encode({"round": number, "user": users[seat], "arm": arms[plan.arms[seat]]}) + b"\n"
            for seat in seats[start : start + 10_000]
        )
