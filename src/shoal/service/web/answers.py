"""Problems as RFC 9457 documents, whatever raised them; no value of a report comes back."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from shoal.service import problems
from shoal.service.campaign import PATTERN_RULES
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

MAX_RULES = 3  # that a refusal names
_OF_NUMBERS = frozenset(
    {
        "int_type", "int_from_float", "float_type", "finite_number", "greater_than",
        "greater_than_equal", "less_than", "less_than_equal",
    }
)  # fmt: skip

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
        return problem(problems.INVALID, _broken_rules(error.errors()))

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


def _broken_rules(errors: Sequence[dict[str, Any]]) -> str:
    more = len(errors) - MAX_RULES
    rest = [f"and {more:,} more"] if more > 0 else []
    return "; ".join([*map(_broken_rule, errors[:MAX_RULES]), *rest]) + "."


def _broken_rule(error: dict[str, Any]) -> str:
    """Return the field, the rule and, of a number, a name or a part of the address, the value.

    No other text comes back.

    >>> _broken_rule({"type": "int_type", "loc": ("body", "seats"), "input": "5",
    ...               "msg": "Input should be a valid integer"})
    "seats must be a valid integer; got '5'"
    """
    place, kind = ".".join(map(str, error["loc"][1:])) or "body", error["type"]
    value = error["input"]
    if kind == "value_error":  # the campaign's own, which names what it got
        text = str(error["ctx"]["error"])
        return f"{place} {text}" if text.startswith("must ") else text
    if kind == "string_pattern_mismatch":
        rule = PATTERN_RULES.get(error["ctx"]["pattern"], "must be written otherwise")
        return f"{place} {rule}; got {value[:40]!r}"
    rule = re.sub(r"^\w+ should ", "must ", error["msg"])
    if not rule.startswith("must "):  # "Field required"
        return f"{place}: {rule}"
    if isinstance(value, str) and (kind == "literal_error" or error["loc"][0] in ("path", "query")):
        return f"{place} {rule}; got {value[:40]!r}"
    got = f"; got {_got(value)}" if kind in _OF_NUMBERS else ""
    return f"{place} {rule}{got}"


def _got(value: Any) -> str:
    """Return a number as it was sent; of anything else, what it is."""
    if isinstance(value, int | float):
        return repr(value)[:40]
    if isinstance(value, str) and re.fullmatch(r"[0-9.,+-]{1,20}", value):
        return repr(value)
    kinds = {str: "text", list: "a list", dict: "an object", type(None): "null"}
    return kinds.get(type(value), "something else")
