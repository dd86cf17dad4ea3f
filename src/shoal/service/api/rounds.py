"""Rounds: open the next one, watch it, close it, read what was released."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from shoal.service.aggregator.rounds import WANTED, RoundRecord
from shoal.service.aggregator.tokens import Holder
from shoal.service.problems import LEARNER_AHEAD, ProblemError
from shoal.service.web.access import Name, Number, Service, allow
from shoal.wire import RoundState

router = APIRouter(prefix="/v1/campaigns/{name}/rounds/{number}", tags=["rounds"])

Wait = Annotated[float, Query(ge=0, le=60, description="Seconds to wait for the learner's plan.")]


@router.put(
    "",
    dependencies=[allow("operator")],
    status_code=201,
    responses={
        200: {"model": RoundState, "description": "It was there already."},
        202: {"model": RoundState, "description": "The learner is still planning."},
    },
)
async def open_round(
    name: Name, number: Number, aggregator: Service, response: Response, wait: Wait = 10.0
) -> RoundState:
    """Open the next round: 201 when open, 202 while the learner plans, 200 if it was there."""
    new = await run_in_threadpool(aggregator.request_round, name, number)
    current = await aggregator.notifier.poll(
        partial(aggregator.rounds.get, name, number),
        until=lambda round_: round_.state != WANTED or aggregator.epochs.ahead(name) is not None,
        seconds=wait,
    )
    if current.state == WANTED:
        if aggregator.epochs.ahead(name) is not None:
            raise ProblemError(LEARNER_AHEAD)
        response.status_code = 202
    elif not new:
        response.status_code = 200
    return _state(current)


@router.get("", dependencies=[allow("operator", "app", "analyst", "learner")])
def read_round(name: Name, number: Number, aggregator: Service) -> RoundState:
    """Read a round's state."""
    return _state(aggregator.rounds.get(name, number))


@router.post("/close", dependencies=[allow("operator")])
def close_round(name: Name, number: Number, aggregator: Service) -> RoundState:
    """Close and release a round in one act; a repeat changes nothing."""
    aggregator.releases.close_round(name, number)
    return _state(aggregator.rounds.get(name, number))


@router.get(
    "/release",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}},
)
def read_release(
    name: Name,
    number: Number,
    aggregator: Service,
    holder: Annotated[Holder, allow("analyst", "learner")],
) -> Response:
    """Read what was released, byte for byte the same for ever."""
    document = aggregator.releases.read(name, number, to_learner=holder.role == "learner")
    return Response(document, media_type="application/json")


def _state(row: RoundRecord) -> RoundState:
    times = row.wanted_at, row.opened_at, row.closed_at
    return RoundState(row.campaign, row.number, row.state, row.plan_hash, *times)
