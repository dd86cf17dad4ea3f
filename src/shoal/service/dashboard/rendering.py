"""How a page is rendered and sent: templates, headers, errors as pages."""

import gzip
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from sqlalchemy.exc import OperationalError
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from shoal.service.aggregator import Aggregator
from shoal.service.dashboard import assets, formatting
from shoal.service.dashboard.sessions import Session
from shoal.service.problems import FAULT, NOT_FOUND, STORE_UNAVAILABLE, ProblemError, Reason
from shoal.service.web.guard import places

log = logging.getLogger("shoal.service")

# Scripts and styles from here alone, none of them written into a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Accept-Encoding, Cookie",
}
MIN_COMPRESSED = 1_000  # bytes

DONE = {
    "created": "The campaign was created. Enrol its users, then open the first round.",
    "opened": "The round was requested. It opens as soon as the learner has planned it.",
    "closed": "The round is closed and released.",
    "abandoned": "The rounds were abandoned. The campaign goes on with the next one.",
    "checked": "Every rule has been checked.",
    "added": "The arm was added. It can be played from the next round on.",
    "retired": "The arm was retired. Nobody is assigned to it from the next round on.",
    "revoked": "The token was revoked.",
    "archived": "The campaign is archived. Its people are forgotten; its totals stay.",
    "deleted": "The campaign is deleted.",
    "noted": "The note was added.",
    "unnoted": "The note was removed.",
}
"""What a page says after a form was accepted, by the query parameter ``done``."""


class LoginNeededError(Exception):
    """Nobody is logged in."""


_templates = Environment(
    loader=PackageLoader("shoal.service.dashboard"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals["asset"] = assets.address
_templates.filters |= {"count": formatting.number, "utc_time": formatting.utc_time}
_templates.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False}


def render(
    request: Request, template: str, session: Session | None, *, status: int = 200, **context: Any
) -> Response:
    """Return a page that nothing caches."""
    done = DONE.get(request.query_params.get("done", ""), "")
    defaults = {"session": session, "path": request.url.path, "done": done, "error": ""}
    text = _templates.get_template(template).render(defaults | context)
    return compressed(request, text.encode(), "text/html; charset=utf-8", status=status)


def compressed(request: Request, body: bytes, media_type: str, *, status: int = 200) -> Response:
    """Return a response that nothing caches, compressed where the browser accepts that."""
    headers = dict(HEADERS)
    if len(body) > MIN_COMPRESSED and "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, 6, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(body, status, headers=headers, media_type=media_type)


def redirect(address: str) -> Response:
    """Send the browser to another page, after a form was accepted."""
    return RedirectResponse(address, 303, headers={"Cache-Control": "no-store"})


@dataclass(frozen=True)
class PageRequest:
    """A request by someone who has logged in, and the aggregator that it is about."""

    request: Request
    session: Session
    aggregator: Aggregator

    def render(self, template: str, *, error: str = "", **context: Any) -> Response:
        """Return a page; one with an error has status 422."""
        context = {"status": 422 if error else 200, "error": error} | context
        return render(self.request, template, self.session, **context)

    def confirm(
        self, *, title: str, warning: str, button: str, back: str, **fields: str
    ) -> Response:
        """Ask before what can't be undone; the page's form sends ``fields`` and ``sure``."""
        return self.render(
            "confirm.html", title=title, warning=warning, button=button, back=back, fields=fields
        )


class PageRoute(APIRoute):
    """A route whose errors are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler."""
        handle = super().get_route_handler()

        async def handle_errors(request: Request) -> Response:
            try:
                return await handle(request)
            except LoginNeededError:
                back = urlsplit(request.headers.get("referer", "")).path or "/"
                following = request.url.path if request.method == "GET" else back
                return redirect("/login" if following == "/" else f"/login?next={following}")
            except ProblemError as error:
                return error_page(request, error.reason, error.detail)
            except RequestValidationError:
                return error_page(request, NOT_FOUND)
            except HTTPException:  # the guard's, while it reads the body
                raise
            except Exception as error:
                log.error("fault %s at %s", type(error).__name__, places(error))
                store_failed = isinstance(error, OperationalError)
                return error_page(request, STORE_UNAVAILABLE if store_failed else FAULT)

        return handle_errors


def error_page(request: Request, reason: Reason, detail: str = "") -> Response:
    """Return a page that says what was refused."""
    session = getattr(request.state, "session", None)
    page = render(
        request, "error.html", session, status=reason.status, title=reason.title, detail=detail
    )
    if reason.status == 503:
        page.headers["Retry-After"] = "1"
    return page
