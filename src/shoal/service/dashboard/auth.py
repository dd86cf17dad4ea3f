"""Who may see a page, and whose forms are accepted.

A form must come from a page of this site: the browser says from where (``Sec-Fetch-Site``,
``Origin``), the cookie is not sent from elsewhere (``SameSite=Strict``), and the form carries a
value that only the pages of its session know.
"""

from collections.abc import AsyncIterator
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from starlette.datastructures import FormData

from shoal.service.aggregator.audit_log import ACTOR
from shoal.service.dashboard.rendering import LoginNeededError, PageRequest
from shoal.service.dashboard.sessions import LIFETIME, READER_ROLES, Session, read_session
from shoal.service.problems import CROSS_SITE, FORBIDDEN, UNAUTHENTICATED, ProblemError
from shoal.service.web.access import Credentials, Service, require_campaign
from shoal.wire import Role

COOKIE = "shoal_session"
SECURE_COOKIE = f"__Host-{COOKIE}"
"""Over HTTPS: a browser takes a cookie of this name from this very host alone."""


def find_session(request: Request, aggregator: Service) -> Session | None:
    """Return the session of the request's cookie, None if there is none."""
    secret = request.cookies.get(SECURE_COOKIE if is_secure(request) else COOKIE)
    session = read_session(aggregator, secret) if secret else None
    request.state.session = session
    return session


OptionalSession = Annotated[Session | None, Depends(find_session)]


async def _viewer(request: Request, session: OptionalSession, aggregator: Service) -> PageRequest:
    if session is None:
        raise LoginNeededError
    ACTOR.set(session.token)  # in the request's own task, so it is async
    return PageRequest(request, session, aggregator)


ViewerPage = Annotated[PageRequest, Depends(_viewer)]
"""A page for everyone who has logged in."""


def only(*roles: Role) -> Any:
    """Return a dependency that admits sessions of these roles, to their campaigns."""

    async def check(page: ViewerPage) -> PageRequest:
        if page.session.role not in roles:
            raise ProblemError(FORBIDDEN)
        require_campaign(page.request, page.session.holder)
        return page

    return Depends(check)


ReaderPage = Annotated[PageRequest, only(*READER_ROLES)]
"""A page for operators and analysts."""

OperatorPage = Annotated[PageRequest, only("operator")]
"""A page for operators."""

AdminPage = Annotated[PageRequest, only("admin")]
"""A page for admins."""

StaffPage = Annotated[PageRequest, only("admin", "operator")]
"""A page for admins and operators."""


def require_reader(
    request: Request, session: OptionalSession, aggregator: Service, credentials: Credentials
) -> None:
    """Require a session, or a token, of a role that sees campaigns."""
    holder = session.holder if session is not None else None
    if credentials is not None:
        holder = aggregator.access.holder(credentials.credentials)
    if holder is None:
        raise ProblemError(UNAUTHENTICATED)
    if holder.role not in READER_ROLES:
        raise ProblemError(FORBIDDEN)
    require_campaign(request, holder)


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


async def _admin_form(form: ViewerForm, page: AdminPage) -> FormData:
    return form


AdminForm = Annotated[FormData, Depends(_admin_form)]
"""A form that an admin sent from a page of this site."""


def field(form: FormData, name: str) -> str:
    """Return a field of a form, empty where it is missing or a file."""
    value = form.get(name, "")
    return value.strip() if isinstance(value, str) else ""


def set_session_cookie(request: Request, response: Response, session: Session) -> None:
    """Set the cookie; scripts can't read it, other sites can't send it."""
    secure = is_secure(request)
    response.set_cookie(
        SECURE_COOKIE if secure else COOKIE, session.secret, max_age=LIFETIME // 1000,
        httponly=True, samesite="strict", secure=secure,
    )  # fmt: skip


def delete_session_cookie(request: Request, response: Response) -> None:
    """Delete the cookie."""
    secure = is_secure(request)
    name = SECURE_COOKIE if secure else COOKIE
    response.delete_cookie(name, httponly=True, samesite="strict", secure=secure)


def is_secure(request: Request) -> bool:
    """Return whether the browser asked over HTTPS, as a trusted proxy or the settings say."""
    return request.url.scheme == "https" or bool(request.app.state.secure_cookies)
