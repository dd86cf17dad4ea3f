"""JSON in which a name stands twice is refused: two readers might each take another value."""

import json
from collections.abc import Iterable
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


def refuse_repeats(body: bytes, counts: Iterable[tuple[bytes, int]]) -> None:
    """Refuse a repeated name in a body that was read, quickly where it is written as usual.

    ``counts`` has each name that stands in the body, with its quotes, and how often it must. A body
    with other counts or with escapes may still be right, and is read once more.
    """
    if b"\\" in body or any(body.count(name) != count for name, count in counts):
        read_strict(body)


class StrictRequest(Request):
    """A request whose JSON has no name twice in one object."""

    async def json(self) -> Any:
        """Read the body."""
        return read_strict(await self.body())
