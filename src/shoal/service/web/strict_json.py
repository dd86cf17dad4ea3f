"""JSON in which a name stands twice is refused: two readers might each take another value."""

import json
from typing import Any

from fastapi import Request

from shoal.service.problems import MALFORMED, ProblemError


def read_strict(body: bytes) -> Any:
    """Return what a body says, or refuse a repeated name; other faults are json's own."""
    return json.loads(body, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ProblemError(MALFORMED, "a name stands twice in one object")
    return names


class StrictRequest(Request):
    """A request whose JSON has no name twice in one object."""

    async def json(self) -> Any:
        """Read the body."""
        return read_strict(await self.body())
