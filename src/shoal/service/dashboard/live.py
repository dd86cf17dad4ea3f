"""The route that keeps a campaign's page fresh; also for anyone's own charts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from shoal.service.dashboard.doors import reader
from shoal.service.dashboard.pages import packed
from shoal.service.dashboard.view import View, read
from shoal.service.web.access import Name, Service

router = APIRouter(prefix="/v1/campaigns/{name}", tags=["campaigns"])

After = Annotated[int, Query(ge=0, le=2**31 - 1, description="The last round that is known.")]
Width = Annotated[int, Query(ge=0, le=2**31 - 1, description="Rounds to a point in what is known.")]


@router.get("/progress", dependencies=[Depends(reader)], response_model=View)
def read_progress(
    name: Name, request: Request, aggregator: Service, after: After = 0, width: Width = 0
) -> Response:
    """Read a campaign's curves: all of them, or what has changed since round ``after``."""
    body = read(aggregator, name, after=after, width=width).model_dump_json().encode()
    return packed(request, body, "application/json")
