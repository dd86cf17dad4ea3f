"""Who may see a page, and whose forms are accepted.

A form must come from a page of this site: the browser says from where (``Sec-Fetch-Site``,
``Origin``), the cookie is not sent from elsewhere (``SameSite=Strict``), and the form carries a
value that only the pages of its session know.
"""

from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from starlette.datastructures import FormData

from shoal.service.dashboard.rendering import LoginNeededError, PageRequest
from shoal.service.dashboard.sessions import LIFETIME, VIEWER_ROLES, Session, read_session
from shoal.service.problems import CROSS_SITE, FORBIDDEN, UNAUTHENTICATED, ProblemError
from shoal.service.web.access import Credentials, Service

COOKIE = "shoal_session"


def find_session(request: Request, aggregator: Service) -> Session | None:
    """Return the session of the request's cookie, None if there is none."""
    secret = request.cookies.get(COOKIE)
    session = read_session(aggregator, secret) if secret else None
    request.state.session = session
    return session


OptionalSession = Annotated[Session | None, Depends(find_session)]


def _viewer(request: Request, session: OptionalSession, aggregator: Service) -> PageRequest:
    if session is None:
        raise LoginNeededError
    return PageRequest(request, session, aggregator)


ViewerPage = Annotated[PageRequest, Depends(_viewer)]
"""A page for everyone who has logged in."""


def _operator(page: ViewerPage) -> PageRequest:
    if page.session.role != "operator":
        raise ProblemError(FORBIDDEN)
    return page


OperatorPage = Annotated[PageRequest, Depends(_operator)]
"""A page for operators."""


def require_reader(session: OptionalSession, aggregator: Service, credentials: Credentials) -> None:
    """Require a session, or a token of a role that has pages."""
    if credentials is not None:
        role = aggregator.access.role_of(credentials.credentials)
        if role is None:
            raise ProblemError(UNAUTHENTICATED)
        if role not in VIEWER_ROLES:
            raise ProblemError(FORBIDDEN)
    elif session is None:
        raise ProblemError(UNAUTHENTICATED)


def require_same_site(request: Request) -> None:
    """Refuse what another site made the browser send."""
    origin = request.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise ProblemError(CROSS_SITE)


async def _viewer_form(page: ViewerPage) -> AsyncIterator[FormData]:
    require_same_site(page.request)
    async with page.request.form() as form:
        if not page.session.accepts(field(form, "csrf")):
            raise ProblemError(CROSS_SITE)
        yield form


ViewerForm = Annotated[FormData, Depends(_viewer_form)]
"""A form from a page of this site."""


async def _operator_form(form: ViewerForm, page: OperatorPage) -> FormData:
    return form


OperatorForm = Annotated[FormData, Depends(_operator_form)]
"""A form that an operator sent from a page of this site."""


def field(form: FormData, name: str) -> str:
    """Return a field of a form, empty where it is missing or a file."""
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def set_session_cookie(request: Request, response: Response, session: Session) -> None:
    """Set the cookie; scripts can't read it, other sites can't send it."""
    response.set_cookie(
        COOKIE, session.secret, max_age=LIFETIME // 1000, httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip


def delete_session_cookie(response: Response) -> None:
    """Delete the cookie."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
