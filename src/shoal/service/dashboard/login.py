"""Logging in with a token of an analyst or an operator, and out again."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from shoal.service.dashboard.doors import (
    Anyone,
    SignedForm,
    Viewer,
    let_in,
    let_out,
    own_site,
    text,
)
from shoal.service.dashboard.pages import PageRoute, go, page
from shoal.service.dashboard.sessions import Attempts, Sessions
from shoal.service.problems import TOO_LARGE, ProblemError
from shoal.service.web.access import Service

router = APIRouter(route_class=PageRoute, include_in_schema=False)

MOST_BYTES = 10_000  # of the form
PAUSE = 0.5  # seconds that a wrong token costs
WRONG = "This is no token of an analyst or an operator."
TOO_MANY = "Too many wrong tokens from this address. Try again in a minute."

Next = Annotated[str, Query(alias="next")]

_PAGE = re.compile(r"/[A-Za-z0-9][A-Za-z0-9/._-]*")


@router.get("/login")
def show_login(request: Request, session: Anyone, following: Next = "/") -> Response:
    """Show the form."""
    if session is not None:
        return go(_page(following))
    return page(request, "login.html", None, error="", following=_page(following))


@router.post("/login")
async def log_in(request: Request, aggregator: Service) -> Response:
    """Begin a session."""
    own_site(request)
    attempts: Attempts = request.app.state.attempts
    address = request.client.host if request.client else ""
    if attempts.too_many(address, aggregator.clock()):
        answer = page(request, "login.html", None, status=429, error=TOO_MANY, following="/")
        answer.headers["Retry-After"] = "60"
        return answer
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > MOST_BYTES:
        raise ProblemError(TOO_LARGE)
    async with request.form() as form:
        token, following = text(form, "token"), _page(text(form, "next"))
    session = await run_in_threadpool(Sessions(aggregator).begin, token)
    if session is None:
        attempts.failed(address, aggregator.clock())
        await asyncio.sleep(PAUSE)
        return page(request, "login.html", None, status=401, error=WRONG, following=following)
    answer = go(following)
    let_in(request, answer, session)
    return answer


@router.post("/logout")
def log_out(session: Viewer, form: SignedForm, aggregator: Service) -> Response:
    """End the session."""
    Sessions(aggregator).end(session.secret)
    answer = go("/login")
    let_out(answer)
    return answer


def _page(asked: str) -> str:
    """Return where to go after logging in: a page of this site, or the first one."""
    return asked if _PAGE.fullmatch(asked) else "/"
