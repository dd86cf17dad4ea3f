"""The learner's routes: say how far it is, read the seats, freeze plans, read who counts."""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Request, Response
from pydantic import Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from shoal.service.aggregator.epochs import LearnerProgress
from shoal.service.aggregator.plans import FrozenPlan
from shoal.service.campaign import NAME, Frozen
from shoal.service.problems import INVALID, PLAN_REFUSED, ProblemError
from shoal.service.web.access import Name, Number, Service, TokenFirst, allow

router = APIRouter(
    prefix="/v1", tags=["learner"], dependencies=[allow("learner")], route_class=TokenFirst
)

BYTES = "application/octet-stream"
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Campaigns = dict[Annotated[str, StringConstraints(pattern=NAME)], "Known"]


class Known(Frozen):
    """How far the learner is in a campaign."""

    planned: Count
    learnt: Count
    reading: Count = 0


class Sync(Frozen):
    """What the learner has on record for each campaign it knows."""

    campaigns: Annotated[Campaigns, Field(max_length=100_000)]
    wait: float = Field(default=0.0, ge=0, le=60, description="Seconds to wait for work.")


class Work(Frozen):
    """A campaign that waits for the learner, with its last round."""

    campaign: str
    round: int
    state: str


class Works(Frozen):
    """Every campaign that waits for the learner."""

    work: list[Work]


Shares = Annotated[list[Annotated[float, Field(ge=0, le=1)] | None], Field(max_length=1000)]


class Estimates(Frozen):
    """Each arm's mean over the present users and half of its 95 % interval; null for none."""

    means: Shares
    half_widths: Shares


@router.post("/learner/sync")
async def sync(known: Sync, aggregator: Service) -> Works:
    """Tell how far the learner is, and wait for work."""
    progress = {
        name: LearnerProgress(said.planned, said.learnt, reading=said.reading)
        for name, said in known.campaigns.items()
    }
    ends = time.monotonic() + known.wait
    while True:
        version = aggregator.notifier.version
        work = await run_in_threadpool(aggregator.epochs.sync_learner, progress)
        left = ends - time.monotonic()
        if work or left <= 0 or aggregator.notifier.closed:
            break
        await aggregator.notifier.wait(version, seconds=left)
    found = [Work(campaign=r.campaign, round=r.number, state=r.state) for r in work]
    return Works(work=found)


_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "Each seat's arm, then each seat's group, as little-endian int32.",
        "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"description": "Bits, the first one highest.", "content": {BYTES: {}}}
}


@router.get(
    "/campaigns/{name}/rounds/{number}/eligible", response_class=Response, responses=_ANSWER
)
def read_eligible(name: Name, number: Number, aggregator: Service) -> Response:
    """Read who may play what: a bit per seat, then, from a new byte on, a bit per arm."""
    occupied, offered = aggregator.rounds.eligible(name, number)
    body = np.packbits(occupied).tobytes() + np.packbits(offered).tobytes()
    return Response(body, media_type=BYTES)


@router.put("/campaigns/{name}/rounds/{number}/plan", status_code=204, openapi_extra=_BODY)
async def freeze_plan(name: Name, number: Number, request: Request, aggregator: Service) -> None:
    """Freeze a wanted round's plan; the same again changes nothing, another is refused."""
    columns = await request.body()
    if len(columns) % 8:
        raise ProblemError(PLAN_REFUSED)
    arms, groups = np.frombuffer(columns, "<i4").reshape(2, -1)
    await run_in_threadpool(aggregator.rounds.freeze, name, number, FrozenPlan(arms, groups))


@router.put("/campaigns/{name}/rounds/{number}/estimates", status_code=204)
def keep_estimates(name: Name, number: Number, estimates: Estimates, aggregator: Service) -> None:
    """Keep what the learner believes of the arms before this round, for people to see."""
    n_arms = aggregator.directory.campaign(name).n_arms
    if not len(estimates.means) == len(estimates.half_widths) == n_arms:
        raise ProblemError(INVALID, "means and half_widths must have one number for each arm")
    pairs = (estimates.means, estimates.half_widths)
    millionths = [[-1 if x is None else round(1e6 * x) for x in row] for row in pairs]
    aggregator.rounds.keep_estimates(name, number, np.array(millionths, "<i4").tobytes())


@router.get("/campaigns/{name}/rounds/{number}/counted", response_class=Response, responses=_ANSWER)
def read_counted(name: Name, number: Number, aggregator: Service) -> Response:
    """Read which seats are part of a released total: a bit per seat."""
    mask = aggregator.releases.counted(name, number)
    return Response(np.packbits(mask).tobytes(), media_type=BYTES)
