"""Logging in with the token of an analyst, an operator or an admin, and out again."""

import asyncio
import re
from functools import cache
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool

from shoal.service.dashboard import assets, auth
from shoal.service.dashboard.rendering import PageRoute, redirect, render
from shoal.service.dashboard.sessions import LoginAttempts, begin_session, end_session
from shoal.service.problems import TOO_LARGE, ProblemError
from shoal.service.web.access import Service

router = APIRouter(route_class=PageRoute, include_in_schema=False)

MAX_FORM_BYTES = 10_000
PAUSE = 0.5  # seconds that a wrong token costs
WRONG = "This is not the token of an analyst, an operator or an admin."
TOO_MANY = "Too many wrong tokens from this address. Try again in a minute."

Next = Annotated[str, Query(alias="next")]

_PAGE = re.compile(r"/[A-Za-z0-9][A-Za-z0-9/._-]*")


@router.get("/login")
def show_login(request: Request, session: auth.OptionalSession, following: Next = "/") -> Response:
    """Show the form; charts are loaded while somebody fills it in."""
    if session is not None:
        return redirect(_local_page(following))
    response = render(request, "login.html", None, following=_local_page(following))
    response.background = BackgroundTask(_load_charts)
    return response


@router.post("/login")
async def log_in(request: Request, aggregator: Service) -> Response:
    """Begin a session."""
    auth.require_same_site(request)
    attempts: LoginAttempts = request.app.state.login_attempts
    address = request.client.host if request.client else ""
    if attempts.too_many(address, aggregator.clock()):
        response = render(request, "login.html", None, status=429, error=TOO_MANY, following="/")
        response.headers["Retry-After"] = "60"
        return response
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > MAX_FORM_BYTES:
        raise ProblemError(TOO_LARGE)
    async with request.form() as form:
        token, following = auth.field(form, "token"), _local_page(auth.field(form, "next"))
    session = await run_in_threadpool(begin_session, aggregator, token)
    if session is None:
        attempts.add_failure(address, aggregator.clock())
        await asyncio.sleep(PAUSE)
        return render(request, "login.html", None, status=401, error=WRONG, following=following)
    response = redirect(following)
    auth.set_session_cookie(request, response, session)
    return response


@router.post("/logout")
def log_out(page: auth.ViewerPage, form: auth.ViewerForm) -> Response:
    """End the session."""
    end_session(page.aggregator, page.session.secret)
    response = redirect("/login")
    auth.delete_session_cookie(page.request, response)
    return response


@cache
def _load_charts() -> None:
    """Prepare the first page with charts; nobody waits in here for the script to be built."""
    from shoal.service.dashboard import charts

    assets.load_soon(assets.CHARTS)
    charts.specs()


def _local_page(address: str) -> str:
    """Return where to go after logging in: a page of this site, or the first one."""
    return address if _PAGE.fullmatch(address) else "/"
