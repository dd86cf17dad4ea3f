"""The hot route: rewards in batches, read by msgspec, answered with the refused ones only.

FastAPI takes longer to check a request than its reports take to be counted. So a request in good
order, for a round that is at hand, goes past it; FastAPI says what is wrong with any other.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from shoal.service.aggregator import Aggregator
from shoal.service.api.assignments import fetch
from shoal.service.problems import INVALID, MALFORMED, ProblemError
from shoal.service.web.access import Name, Number, Service, allow
from shoal.service.web.metrics import Metrics

MOST_REPORTS = 10_000

_NUMBER = re.compile(r"[1-9][0-9]{0,8}")


class Quick(APIRoute):
    """The way past FastAPI."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        careful = super().get_route_handler()

        async def answer(request: Request) -> Response:
            aggregator: Aggregator = request.app.state.aggregator
            name, number = request.path_params["name"], request.path_params["number"]
            kind, _, token = request.headers.get("Authorization", "").partition(" ")
            if (
                kind == "Bearer"
                and aggregator.access.role_of(token) == "app"
                and _NUMBER.fullmatch(number)
                and aggregator.rounds.cached_round(name, int(number))
            ):
                return await _count(request, aggregator, name, int(number))
            return await careful(request)

        return answer


router = APIRouter(
    prefix="/v1/campaigns/{name}/rounds/{number}", tags=["reports"], route_class=Quick
)


class Report(msgspec.Struct, forbid_unknown_fields=True, repr_omit_defaults=True):
    """One user's reward; lives in memory only."""

    user: str
    reward: float

    def __repr__(self) -> str:
        return "Report(...)"


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    """Reports for one round."""

    reports: Annotated[list[Report], msgspec.Meta(max_length=MOST_REPORTS)]


_decoder = msgspec.json.Decoder(Batch)
_encoder = msgspec.json.Encoder()

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["reports"],
                    "additionalProperties": False,
                    "properties": {
                        "reports": {
                            "type": "array",
                            "maxItems": MOST_REPORTS,
                            "items": {
                                "type": "object",
                                "required": ["user", "reward"],
                                "additionalProperties": False,
                                "properties": {
                                    "user": {"type": "string"},
                                    "reward": {"type": "number"},
                                },
                            },
                        }
                    },
                }
            }
        },
    }
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The refused reports, in order; all others are counted for good.",
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["refused"],
                    "properties": {
                        "refused": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["index", "type"],
                                "properties": {
                                    "index": {"type": "integer"},
                                    "type": {"type": "string"},
                                },
                            },
                        }
                    },
                }
            }
        },
    }
}


@router.post(
    "/reports",
    dependencies=[allow("app")],
    response_class=Response,
    openapi_extra=_BODY,
    responses=_ANSWER,
)
async def report_rewards(
    name: Name, number: Number, request: Request, aggregator: Service
) -> Response:
    """Report rewards between 0 and 1, each user's once; a repeat answers the same."""
    await fetch(aggregator, name, number)
    return await _count(request, aggregator, name, number)


async def _count(request: Request, aggregator: Aggregator, name: str, number: int) -> Response:
    body = await request.body()
    try:
        batch = _decoder.decode(body)
    except msgspec.ValidationError:
        raise ProblemError(
            INVALID, f"reports must be at most {MOST_REPORTS:,} of {{user: text, reward: number}}"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ProblemError(MALFORMED) from None
    reports = [(report.user, report.reward) for report in batch.reports]
    refused = await asyncio.wrap_future(aggregator.reports.submit(name, number, reports))
    if refused:
        metrics: Metrics = request.app.state.metrics
        metrics.add_refusals(name, (kind.name for _, kind in refused))
    answer = {"refused": [{"index": index, "type": kind.type} for index, kind in refused]}
    return Response(_encoder.encode(answer), media_type="application/json")
