"""How a page is made and sent: templates, headers, refusals that people can read."""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from shoal.service.dashboard import assets, words
from shoal.service.dashboard.sessions import Session
from shoal.service.problems import FAULT, NOT_FOUND, Kind, ProblemError
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
WORTH_PACKING = 1_000  # bytes


class LoginNeededError(Exception):
    """Nobody is logged in."""


def _json(value: Any) -> Markup:
    """Return JSON that can stand inside a script element, whatever strings it holds."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


_templates = Environment(
    loader=PackageLoader("shoal.service.dashboard"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals["asset"] = assets.address
_templates.filters["json"] = _json
_templates.filters["count"] = words.count
_templates.filters["moment"] = words.moment


def page(
    request: Request, template: str, session: Session | None, *, status: int = 200, **context: Any
) -> Response:
    """Return a page, compressed where the browser takes that."""
    path = request.url.path
    text = _templates.get_template(template).render(session=session, path=path, **context)
    return packed(request, text.encode(), "text/html; charset=utf-8", status=status)


def packed(request: Request, body: bytes, media_type: str, *, status: int = 200) -> Response:
    """Return an answer that no one keeps, compressed where the browser takes that."""
    headers = dict(HEADERS)
    if len(body) > WORTH_PACKING and "gzip" in request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, 6, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return Response(body, status, headers=headers, media_type=media_type)


def go(address: str) -> Response:
    """Send the browser to another page, after a form was taken."""
    return RedirectResponse(address, 303, headers={"Cache-Control": "no-store"})


class PageRoute(APIRoute):
    """A route whose refusals are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler."""
        handle = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handle(request)
            except LoginNeededError:
                back = urlsplit(request.headers.get("referer", "")).path or "/"
                asked = request.url.path if request.method == "GET" else back
                return go("/login" if asked == "/" else f"/login?next={asked}")
            except ProblemError as error:
                return refusal(request, error.kind, error.detail)
            except RequestValidationError:
                return refusal(request, NOT_FOUND)
            except HTTPException:  # the guard's, while it reads the body
                raise
            except Exception as error:
                log.error("fault %s at %s", type(error).__name__, places(error))
                return refusal(request, FAULT)

        return guarded


def refusal(request: Request, kind: Kind, detail: str = "") -> Response:
    """Return a page that says what was refused."""
    session = getattr(request.state, "session", None)
    return page(
        request, "refusal.html", session, status=kind.status, title=kind.title, detail=detail
    )
