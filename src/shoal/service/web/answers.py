"""Problems as RFC 9457 documents, whatever raised them; no value of a report comes back."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from shoal.service.problems import (
    FAULT,
    INVALID,
    KINDS,
    MALFORMED,
    MEDIA_TYPE,
    METHOD,
    NOT_FOUND,
    NOT_JSON,
    SLOW,
    TOO_LARGE,
    UNAUTHENTICATED,
    Kind,
    ProblemError,
)

_DOCUMENT: dict[str, Any] = {
    "description": "A problem (RFC 9457).",
    "content": {
        MEDIA_TYPE: {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status"],
                "properties": {
                    "type": {
                        "type": "string",
                        "enum": sorted(kind.type for kind in KINDS.values()),
                    },
                    "title": {"type": "string"},
                    "status": {"type": "integer"},
                    "detail": {"type": "string"},
                },
            }
        }
    },
}
PROBLEMS: dict[int | str, dict[str, Any]] = {"default": _DOCUMENT, 422: _DOCUMENT}

_BY_STATUS = {404: NOT_FOUND, 405: METHOD, 400: MALFORMED}


def problem(kind: Kind, detail: str = "") -> Response:
    """Return the document of a problem."""
    headers = {"WWW-Authenticate": "Bearer"} if kind is UNAUTHENTICATED else {}
    if kind.status == 503:
        headers["Retry-After"] = "1"
    if kind in (SLOW, TOO_LARGE):  # the rest of the body is not wanted
        headers["Connection"] = "close"
    return Response(kind.document(detail), kind.status, media_type=MEDIA_TYPE, headers=headers)


def install(app: FastAPI, *, page: Callable[[Request, Kind], Response]) -> None:
    """Answer every refusal with a problem; a browser at an unknown address gets a ``page``."""

    @app.exception_handler(ProblemError)
    async def refused(request: Request, error: ProblemError) -> Response:
        return problem(error.kind, error.detail)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        if any(item["type"] == "json_invalid" for item in error.errors()):
            return problem(MALFORMED)
        if isinstance(error.body, bytes):  # it was not read as JSON
            return problem(NOT_JSON)
        return problem(
            INVALID, "; ".join(_rule(item["loc"], item["msg"]) for item in error.errors())
        )

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        if isinstance(error.__cause__, ProblemError):  # raised by the guard while reading the body
            return problem(error.__cause__.kind)
        kind = _BY_STATUS.get(error.status_code, FAULT)
        if kind in (NOT_FOUND, METHOD) and "text/html" in request.headers.get("accept", ""):
            return page(request, kind)
        answer = problem(kind)
        answer.headers.update(error.headers or {})
        return answer


def _rule(place: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, place[1:])) or 'body'}: {message}"
