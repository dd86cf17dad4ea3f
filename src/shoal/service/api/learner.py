"""The learner's routes: wait for work, read releases, publish plans.

Those below ``/v1/learner`` take a round in four calls; each of the others does a part of one.
"""

import time
from typing import Annotated, Any

import msgspec
import numpy as np
from fastapi import APIRouter, Body, Request, Response
from pydantic import Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from shoal import wire
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.rounds import WANTED, FrozenPlan, RoundRecord
from shoal.service.api.schemas import JSON, Checked, answer, request_body
from shoal.service.campaign import NAME
from shoal.service.problems import INVALID, MALFORMED, PLAN_REFUSED, ProblemError
from shoal.service.web.access import Name, Number, Service, TokenFirst, allow

router = APIRouter(
    prefix="/v1", tags=["learner"], dependencies=[allow("learner")], route_class=TokenFirst
)

BYTES = "application/octet-stream"
ROUND = "/campaigns/{name}/rounds/{number}"

Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Progress = Annotated[wire.LearnerProgress, Checked(planned=Count, learnt=Count, reading=Count)]
CampaignName = Annotated[str, StringConstraints(pattern=NAME)]
SyncBody = Annotated[
    wire.Sync,
    Body(),
    Checked(
        campaigns=Annotated[dict[CampaignName, Progress], Field(max_length=100_000)],
        wait=Annotated[float, Field(ge=0, le=60, description="Seconds to wait for work.")],
    ),
]
Shares = Annotated[list[Annotated[float, Field(ge=0, le=1)] | None], Field(max_length=1000)]
EstimatesBody = Annotated[wire.Estimates, Body(), Checked(means=Shares, half_widths=Shares)]


@router.post("/learner/sync")
async def sync(known: SyncBody, aggregator: Service) -> wire.WorkList:
    """Send the learner's progress, and wait for work."""
    rounds = await _wait_for_work(known, aggregator)
    return wire.WorkList([wire.Work(r.campaign, r.number, r.state) for r in rounds])


@router.post(
    "/learner/work",
    response_class=Response,
    responses=answer(wire.TaskList, "The campaigns that wait, with all that a plan needs."),
)
async def read_tasks(known: SyncBody, aggregator: Service) -> Response:
    """Send the learner's progress, wait for work, and read what it needs."""
    rounds = await _wait_for_work(known, aggregator)
    tasks = await run_in_threadpool(lambda: [_task(aggregator, round_) for round_ in rounds])
    return Response(msgspec.json.encode(wire.TaskList(tasks)), media_type=JSON)


async def _wait_for_work(known: wire.Sync, aggregator: Aggregator) -> list[RoundRecord]:
    ends = time.monotonic() + known.wait
    while True:
        version = aggregator.notifier.version
        work = await run_in_threadpool(aggregator.epochs.sync_learner, known.campaigns)
        left = ends - time.monotonic()
        if work or left <= 0 or aggregator.notifier.closed:
            return work
        await aggregator.notifier.wait(version, seconds=left)


def _task(aggregator: Aggregator, round_: RoundRecord) -> wire.Task:
    name, number = round_.campaign, round_.number
    definition = aggregator.directory.campaign(name).model_dump(mode="json")
    eligible = _eligible(aggregator, name, number) if round_.state == WANTED else b""
    return wire.Task(name, number, round_.state, definition, eligible)


_PLAN_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "Each seat's arm, then each seat's group, as little-endian int32.",
        "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}},
    }
}
_BITS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Bits, the first one highest.", "content": {BYTES: {}}}
}


@router.get(f"{ROUND}/eligible", response_class=Response, responses=_BITS)
def read_eligible(name: Name, number: Number, aggregator: Service) -> Response:
    """Read who may play what: a bit per seat, then, from a new byte on, a bit per arm."""
    return Response(_eligible(aggregator, name, number), media_type=BYTES)


def _eligible(aggregator: Aggregator, name: str, number: int) -> bytes:
    return b"".join(
        np.packbits(mask).tobytes() for mask in aggregator.rounds.eligible(name, number)
    )


@router.put(f"{ROUND}/plan", status_code=204, openapi_extra=_PLAN_BODY)
async def freeze_plan(name: Name, number: Number, request: Request, aggregator: Service) -> None:
    """Freeze a wanted round's plan; the same again changes nothing, another is refused."""
    columns = await request.body()
    await run_in_threadpool(_freeze, aggregator, name, number, columns)


@router.put(f"{ROUND}/estimates", status_code=204)
def keep_estimates(
    name: Name, number: Number, estimates: EstimatesBody, aggregator: Service
) -> None:
    """Keep what the learner believes of the arms before this round, for people to see."""
    aggregator.rounds.keep_estimates(name, number, _millionths(aggregator, name, estimates))


@router.put(
    f"/learner{ROUND}/plan", status_code=204, openapi_extra=request_body(wire.PlanWithEstimates)
)
async def publish_plan(name: Name, number: Number, request: Request, aggregator: Service) -> None:
    """Freeze a wanted round's plan and keep the estimates of its arms; it may be repeated."""
    body = await request.body()
    try:
        plan = msgspec.json.decode(body, type=wire.PlanWithEstimates)
    except msgspec.ValidationError as error:
        raise ProblemError(INVALID, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ProblemError(MALFORMED) from None
    await run_in_threadpool(_publish, aggregator, name, number, plan)


def _publish(aggregator: Aggregator, name: str, number: int, plan: wire.PlanWithEstimates) -> None:
    estimates = _millionths(aggregator, name, plan.estimates) if plan.estimates else None
    if len(plan.arms) != len(plan.groups):
        raise ProblemError(PLAN_REFUSED)
    _freeze(aggregator, name, number, plan.arms + plan.groups)
    if estimates is not None:
        aggregator.rounds.keep_estimates(name, number, estimates)


def _freeze(aggregator: Aggregator, name: str, number: int, columns: bytes) -> None:
    if len(columns) % 8:
        raise ProblemError(PLAN_REFUSED)
    arms, groups = np.frombuffer(columns, "<i4").reshape(2, -1)
    aggregator.rounds.freeze(name, number, FrozenPlan(arms, groups))


def _millionths(aggregator: Aggregator, name: str, estimates: wire.Estimates) -> bytes:
    """Return estimates as they are stored."""
    n_arms = aggregator.directory.campaign(name).n_arms
    if not len(estimates.means) == len(estimates.half_widths) == n_arms:
        raise ProblemError(INVALID, "means and half_widths must have one number for each arm")
    pairs = (estimates.means, estimates.half_widths)
    millionths = [[-1 if x is None else round(1e6 * x) for x in row] for row in pairs]
    return np.array(millionths, "<i4").tobytes()


@router.get(f"{ROUND}/counted", response_class=Response, responses=_BITS)
def read_counted(name: Name, number: Number, aggregator: Service) -> Response:
    """Read which seats are part of a released total: a bit per seat."""
    return Response(_counted(aggregator, name, number), media_type=BYTES)


@router.get(
    f"/learner{ROUND}/release",
    response_class=Response,
    responses=answer(wire.CountedRelease, "The release, and the seats behind its totals as bits."),
)
def read_counted_release(name: Name, number: Number, aggregator: Service) -> Response:
    """Read a release with the seats that are part of its totals."""
    release = msgspec.Raw(aggregator.releases.read(name, number, to_learner=True))
    message = wire.CountedRelease(release, _counted(aggregator, name, number))
    return Response(msgspec.json.encode(message), media_type=JSON)


def _counted(aggregator: Aggregator, name: str, number: int) -> bytes:
    return np.packbits(aggregator.releases.counted(name, number)).tobytes()
