"""What an operator does in a campaign: rounds, users, checks; each a plain form.

Whatever can't be undone is asked for twice: the first answer to such a form is a page that says
what will happen, and its form carries ``sure``.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from shoal.errors import InvalidInputError
from shoal.service.aggregator import Aggregator
from shoal.service.dashboard import checks
from shoal.service.dashboard.doors import Operator, Order, text
from shoal.service.dashboard.enrolment import read_users
from shoal.service.dashboard.pages import PageRoute, go, page
from shoal.service.dashboard.sessions import Session
from shoal.service.problems import ROUND_ORDER, ProblemError
from shoal.service.web.access import Name, Service

router = APIRouter(route_class=PageRoute, include_in_schema=False)

MOST_USERS = 200_000  # in one file


def ask(
    request: Request, session: Session, *, title: str, warning: str, button: str, back: str,
    fields: dict[str, str],
) -> Response:  # fmt: skip
    """Ask once more before what can't be undone."""
    return page(
        request, "sure.html", session, title=title, warning=warning, button=button, back=back,
        fields=fields,
    )  # fmt: skip


def _number(form: FormData) -> int:
    number = text(form, "number")
    if not number.isdecimal():
        raise ProblemError(ROUND_ORDER)
    return int(number)


@router.post("/campaigns/{name}/open")
def open_round(
    name: Name, form: Order, request: Request, session: Operator, aggregator: Service
) -> Response:
    """Ask the learner for the next round."""
    number, least = _number(form), aggregator.directory.campaign(name).least
    users = sum(aggregator.directory.roster(name).active)
    if users < least and not text(form, "sure"):
        return ask(
            request, session,
            title=f"Open round {number} of {name} with {users:,} users?",
            warning=f"Nothing can be released of a round with fewer than C = {least} users. Enrol "
            "more of them first.",
            button="Open it all the same", back=f"/campaigns/{name}/users",
            fields={"number": str(number)},
        )  # fmt: skip
    aggregator.rounds.want(name, number)
    return go(f"/campaigns/{name}?done=opened")


@router.post("/campaigns/{name}/close")
def close_round(
    name: Name, form: Order, request: Request, session: Operator, aggregator: Service
) -> Response:
    """Close and release a round."""
    number, address = _number(form), f"/campaigns/{name}"
    if not text(form, "sure"):
        return ask(
            request, session,
            title=f"Close round {number} of {name}?",
            warning="Its totals are released at once. Reports that come later are refused for "
            "ever, and groups that are still short of reporters are merged or withheld.",
            button="Close and release", back=address, fields={"number": str(number)},
        )  # fmt: skip
    aggregator.releases.close_round(name, number)
    return go(f"{address}?done=closed")


@router.post("/campaigns/{name}/check")
def check_now(name: Name, form: Order, aggregator: Service) -> Response:
    """Check every rule now."""
    checks.run(aggregator, name)
    return go(f"/campaigns/{name}/anonymity?done=checked")


@router.get("/campaigns/{name}/users")
def show_users(name: Name, request: Request, session: Operator, aggregator: Service) -> Response:
    """Show the form for new users."""
    return _users(name, request, session, aggregator)


@router.post("/campaigns/{name}/users")
async def enrol_users(
    name: Name, form: Order, request: Request, session: Operator, aggregator: Service
) -> Response:
    """Enrol everyone in a file, or nobody."""
    file = form.get("file")
    data = await file.read() if isinstance(file, UploadFile) else b""
    return await run_in_threadpool(_enrol, name, form, data, request, session, aggregator)


def _enrol(
    name: str,
    form: FormData,
    data: bytes,
    request: Request,
    session: Session,
    aggregator: Aggregator,
) -> Response:
    if not text(form, "sure"):
        return _users(name, request, session, aggregator, error="Tick the box below the file.")
    try:
        users = read_users(data)
        if len(users) > MOST_USERS:
            raise InvalidInputError(
                f"the file must have at most {MOST_USERS:,} users; got {len(users):,}."
            )
        joined = aggregator.directory.enrol(name, users)
    except (InvalidInputError, ProblemError) as error:
        said = error.kind.title if isinstance(error, ProblemError) else str(error)
        return _users(name, request, session, aggregator, error=f"Nobody was enrolled: {said}")
    there = len(users) - joined
    done = f"{joined:,} users were enrolled; {there:,} of the file were there already."
    return _users(name, request, session, aggregator, done=done)


def _users(
    name: str, request: Request, session: Session, aggregator: Aggregator, *, error: str = "",
    done: str = "",
) -> Response:  # fmt: skip
    roster = aggregator.directory.roster(name)
    return page(
        request, "users.html", session, status=422 if error else 200, name=name,
        campaign=aggregator.directory.campaign(name), active=sum(roster.active),
        taken=len(roster.users), error=error, done=done,
    )  # fmt: skip
