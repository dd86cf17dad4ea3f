"""The learner's routes: wait for work, read releases, publish plans."""

from functools import partial
from typing import Annotated

import msgspec
import numpy as np
from fastapi import APIRouter, Body, Request, Response
from pydantic import Field, StringConstraints
from starlette.concurrency import run_in_threadpool

from shoal import wire
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.rounds import WANTED, FrozenPlan, RoundRecord
from shoal.service.aggregator.tokens import Holder
from shoal.service.api.schemas import JSON, Checked, answer, request_body
from shoal.service.campaign import NAME
from shoal.service.problems import INVALID, MALFORMED, PLAN_REFUSED, WRONG_CAMPAIGN, ProblemError
from shoal.service.web.access import Name, Number, Service, TokenFirst, allow

LearnerToken = Annotated[Holder, allow("learner")]
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
        quarantined=Annotated[list[CampaignName], Field(max_length=100_000)],
        deleted=Annotated[dict[CampaignName, Count], Field(max_length=100_000)],
        forgotten=Annotated[list[CampaignName], Field(max_length=100_000)],
    ),
]


@router.post(
    "/learner/work",
    response_class=Response,
    responses=answer(wire.TaskList, "The campaigns that wait, with all that a plan needs."),
)
async def read_tasks(known: SyncBody, aggregator: Service, holder: LearnerToken) -> Response:
    """Send the learner's progress, wait for work, and read what it needs."""
    if not all(map(holder.covers, [*known.campaigns, *known.forgotten])):
        raise ProblemError(WRONG_CAMPAIGN)
    aggregator.epochs.forget_claims(known.forgotten)  # once: what is claimed from now on holds
    sync = partial(
        aggregator.epochs.sync_learner,
        known.campaigns,
        covers=holder.covers,
        quarantined=frozenset(known.quarantined),
        deleted=known.deleted,
    )
    deleted, archived = await run_in_threadpool(_ended, aggregator, known)
    seconds = 0.0 if deleted or archived else known.wait
    rounds = await aggregator.notifier.poll(sync, until=bool, seconds=seconds)
    tasks = await run_in_threadpool(lambda: [_task(aggregator, round_) for round_ in rounds])
    work = wire.TaskList(tasks, deleted, archived)
    return Response(msgspec.json.encode(work), media_type=JSON)


def _ended(aggregator: Aggregator, known: wire.Sync) -> tuple[list[str], list[str]]:
    """Return the campaigns that were deleted, and those archived of which something is learnt."""
    deleted = [name for name in known.campaigns if aggregator.directory.is_deleted(name)]
    archived = aggregator.directory.archived()
    learnt = [name for name, progress in known.campaigns.items() if progress.learnt]
    return deleted, [name for name in learnt if name in archived]


def _task(aggregator: Aggregator, round_: RoundRecord) -> wire.Task:
    name, number = round_.campaign, round_.number
    definition = aggregator.directory.campaign(name).model_dump(mode="json")
    eligible = _eligible(aggregator, name, number) if round_.state == WANTED else b""
    return wire.Task(name, number, round_.state, definition, eligible)


@router.get(
    f"{ROUND}/eligible",
    response_class=Response,
    responses={200: {"description": "Bits, the first one highest.", "content": {BYTES: {}}}},
)
def read_eligible(name: Name, number: Number, aggregator: Service) -> Response:
    """Read who may play what: a bit per seat, a bit per arm, and a bit per seat for a holdout.

    Each of the three begins with a new byte; the last is there where the campaign has a holdout.
    """
    return Response(_eligible(aggregator, name, number), media_type=BYTES)


def _eligible(aggregator: Aggregator, name: str, number: int) -> bytes:
    masks = [*aggregator.rounds.eligible(name, number)]
    blocks = aggregator.directory.blocks(name)
    if blocks.size:
        masks.append(blocks >= 0)
    return b"".join(np.packbits(mask).tobytes() for mask in masks)


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
    columns = plan.arms + plan.groups
    if len(plan.arms) != len(plan.groups) or len(columns) % 8:
        raise ProblemError(PLAN_REFUSED)
    arms, groups = np.frombuffer(columns, "<i4").reshape(2, -1)
    aggregator.rounds.freeze(name, number, FrozenPlan(arms, groups))
    if estimates is not None:
        aggregator.rounds.keep_estimates(name, number, estimates)


def _millionths(aggregator: Aggregator, name: str, estimates: wire.Estimates) -> bytes:
    """Return estimates as they are stored."""
    n_arms = aggregator.directory.campaign(name).n_arms
    if not len(estimates.means) == len(estimates.half_widths) == n_arms:
        raise ProblemError(INVALID, "means and half_widths must have one number for each arm")
    rows = [estimates.means, estimates.half_widths]
    if estimates.best is not None and estimates.spread is not None:
        if not len(estimates.best) == len(estimates.spread) == n_arms:
            raise ProblemError(INVALID, "best and spread must have one number for each arm")
        rows += [estimates.best, estimates.spread]
    millionths = [[-1 if x is None else round(1e6 * x) for x in row] for row in rows]
    return np.array(millionths, "<i4").tobytes()


@router.get(
    f"/learner{ROUND}/release",
    response_class=Response,
    responses=answer(wire.CountedRelease, "The release, who is behind its totals, and groups."),
)
def read_counted_release(name: Name, number: Number, aggregator: Service) -> Response:
    """Read a release with the seats that are part of its totals, and its groups."""
    release = msgspec.Raw(aggregator.releases.read(name, number, to_learner=True))
    counted = np.packbits(aggregator.releases.counted(name, number)).tobytes()
    groups = aggregator.rounds.plan(name, number)[1].groups.astype("<i4").tobytes()
    whole = wire.CountedRelease(release, counted, groups)
    return Response(msgspec.json.encode(whole), media_type=JSON)
