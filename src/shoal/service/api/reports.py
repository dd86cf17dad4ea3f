"""The hot route: rewards in batches, read by msgspec, answered with the refused ones only."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request, Response

from shoal.service.api.access import Name, Number, Service, allow
from shoal.service.api.assignments import fetch
from shoal.service.api.metrics import Metrics
from shoal.service.problems import INVALID, MALFORMED, ProblemError

router = APIRouter(prefix="/v1/campaigns/{name}/rounds/{number}", tags=["reports"])


MOST_REPORTS = 10_000


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
    body = await request.body()
    try:
        batch = _decoder.decode(body)
    except msgspec.ValidationError:
        raise ProblemError(
            INVALID, f"reports must be at most {MOST_REPORTS:,} of {{user: text, reward: number}}"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ProblemError(MALFORMED) from None
    await fetch(aggregator, name, number)
    reports = [(report.user, report.reward) for report in batch.reports]
    refused = await asyncio.wrap_future(aggregator.report(name, number, reports))
    if refused:
        metrics: Metrics = request.app.state.metrics
        metrics.refused(name, (kind.name for _, kind in refused))
    answer = {"refused": [{"index": index, "type": kind.type} for index, kind in refused]}
    return Response(_encoder.encode(answer), media_type="application/json")
