"""Who may see a page, and whose forms are taken.

A form must come from a page of this site: the browser says from where (``Sec-Fetch-Site``,
``Origin``), the cookie is not sent from elsewhere (``SameSite=Strict``), and the form carries a
value that only the session's own pages know.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from starlette.datastructures import FormData

from shoal.service.dashboard.pages import LoginNeededError
from shoal.service.dashboard.sessions import LIFE, ROLES, Session, Sessions
from shoal.service.problems import CROSS_SITE, FORBIDDEN, UNAUTHENTICATED, ProblemError
from shoal.service.web.access import Credentials, Service

COOKIE = "shoal_session"


def find_session(request: Request, aggregator: Service) -> Session | None:
    """Return who has logged in, None for nobody."""
    secret = request.cookies.get(COOKIE)
    session = Sessions(aggregator).find(secret) if secret else None
    request.state.session = session
    return session


Anyone = Annotated[Session | None, Depends(find_session)]


def _viewer(session: Anyone) -> Session:
    if session is None:
        raise LoginNeededError
    return session


Viewer = Annotated[Session, Depends(_viewer)]


def _operator(session: Viewer) -> Session:
    if session.role != "operator":
        raise ProblemError(FORBIDDEN)
    return session


Operator = Annotated[Session, Depends(_operator)]


def reader(session: Anyone, aggregator: Service, credentials: Credentials) -> None:
    """Let in a session, or a token of a role that has pages."""
    if credentials is not None:
        role = aggregator.access.role_of(credentials.credentials)
        if role is None:
            raise ProblemError(UNAUTHENTICATED)
        if role not in ROLES:
            raise ProblemError(FORBIDDEN)
    elif session is None:
        raise ProblemError(UNAUTHENTICATED)


def own_site(request: Request) -> None:
    """Refuse what another site made the browser send."""
    origin = request.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise ProblemError(CROSS_SITE)


async def _form(request: Request, session: Viewer) -> AsyncIterator[FormData]:
    own_site(request)
    async with request.form() as form:
        if not session.signed(text(form, "csrf")):
            raise ProblemError(CROSS_SITE)
        yield form


async def _order(form: Annotated[FormData, Depends(_form)], session: Operator) -> FormData:
    return form


SignedForm = Annotated[FormData, Depends(_form)]
Order = Annotated[FormData, Depends(_order)]
"""A form of an operator's, from a page of this site."""


def text(form: FormData, field: str) -> str:
    """Return a form's field, empty where it is missing or a file."""
    value = form.get(field, "")
    return value.strip() if isinstance(value, str) else ""


def let_in(request: Request, response: Response, session: Session) -> None:
    """Set the cookie; scripts can't read it, other sites can't send it."""
    response.set_cookie(
        COOKIE, session.secret, max_age=LIFE // 1000, httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip


def let_out(response: Response) -> None:
    """Take the cookie away."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
