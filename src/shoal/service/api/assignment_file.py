"""All assignments of an open round as one file, made once and kept while nobody's name changes."""

import threading

from fastapi import APIRouter, Request, Response

from shoal.client import table
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.rounds import OPEN
from shoal.service.problems import ROUND_NOT_OPEN, ProblemError
from shoal.service.web.access import Name, Number, Service, allow, bearer_token

router = APIRouter(prefix="/v1/campaigns/{name}/rounds/{number}", tags=["assignments"])

_making = threading.Lock()  # one file at a time: many ask when a round opens


@router.get(
    "/assignments",
    dependencies=[allow("app")],
    response_class=Response,
    responses={
        200: {"description": "A packed, signed table.", "content": {table.TABLE_TYPE: {}}},
        304: {"description": "The table with that ETag is the present one."},
    },
)
def read_assignment_file(
    name: Name, number: Number, request: Request, aggregator: Service
) -> Response:
    """Read everyone's arm in the open round as one compressed file, signed for the token."""
    packed, tag = _file(aggregator, name, number)
    headers = {"ETag": f'"{tag}"', "Cache-Control": "private, no-cache", "Vary": "Authorization"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    content = table.sign(packed, bearer_token(request))
    return Response(content, headers=headers, media_type=table.TABLE_TYPE)


def _file(aggregator: Aggregator, name: str, number: int) -> tuple[bytes, str]:
    last = aggregator.rounds.latest(name)
    if last is None or (last.number, last.state) != (number, OPEN):
        state = f"the last is {last.number}, {last.state}" if last else "there is none yet"
        raise ProblemError(ROUND_NOT_OPEN, f"Got round {number}; {state}.")
    _, plan = aggregator.rounds.plan(name, number)
    roster = aggregator.directory.roster(name)
    with _making:
        known = roster.files.get(number)
        if known is None:
            seats = list(roster.named(plan.arms))
            arms = aggregator.directory.campaign(name).arms
            header = table.TableHeader(name, number, plan.hash, arms, len(seats))
            users = [roster.users[seat] for seat in seats]
            packed = table.pack(header, users, plan.arms[seats].astype("<u2").tobytes())
            known = packed, table.tag_of(packed)
            roster.files.clear()  # of rounds that are over
            roster.files[number] = known
    return known
