"""Problems as RFC 9457 documents, whatever raised them; no value of a report comes back."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from shoal.service import problems
from shoal.service.problems import MEDIA_TYPE, ProblemError

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
                        "enum": sorted(reason.type for reason in problems.REASONS.values()),
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

_BY_STATUS = {404: problems.NOT_FOUND, 405: problems.METHOD, 400: problems.MALFORMED}


def problem(reason: problems.Reason, detail: str = "") -> Response:
    """Return the document of a problem."""
    headers = {"WWW-Authenticate": "Bearer"} if reason is problems.UNAUTHENTICATED else {}
    if reason.status == 503:
        headers["Retry-After"] = "1"
    if reason in (problems.SLOW, problems.TOO_LARGE):  # the rest of the body is not wanted
        headers["Connection"] = "close"
    return Response(reason.document(detail), reason.status, media_type=MEDIA_TYPE, headers=headers)


def install(app: FastAPI, *, page: Callable[[Request, problems.Reason], Response]) -> None:
    """Answer every refusal with a problem; a browser at an unknown address gets a ``page``."""

    @app.exception_handler(ProblemError)
    async def refused(request: Request, error: ProblemError) -> Response:
        return problem(error.reason, error.detail)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        if any(item["type"] == "json_invalid" for item in error.errors()):
            return problem(problems.MALFORMED)
        if isinstance(error.body, bytes):  # it was not read as JSON
            return problem(problems.NOT_JSON)
        return problem(
            problems.INVALID, "; ".join(_rule(item["loc"], item["msg"]) for item in error.errors())
        )

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        if isinstance(error.__cause__, ProblemError):  # raised by the guard while reading the body
            return problem(error.__cause__.reason, error.__cause__.detail)
        reason = _BY_STATUS.get(error.status_code, problems.FAULT)
        from_browser = "text/html" in request.headers.get("accept", "")
        if from_browser and reason in (problems.NOT_FOUND, problems.METHOD):
            return page(request, reason)
        answer = problem(reason)
        answer.headers.update(error.headers or {})
        return answer


def _rule(place: tuple[int | str, ...], message: str) -> str:
    return f"{'.'.join(map(str, place[1:])) or 'body'}: {message}"
