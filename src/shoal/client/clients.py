"""The two clients: one waits for each answer, one is awaited.

Every operation is a coroutine. ``AsyncClient`` hands it to its caller. ``Client`` runs it to its
end: its requests block, so that a coroutine never suspends and no event loop is needed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx

from shoal.client.calls import Call, check_url
from shoal.client.operations import Operations
from shoal.errors import InvalidInputError

T = TypeVar("T")


class Client(Operations):
    """A client of the service with one token; each method waits for the answer.

    Parameters
    ----------
    url
        The aggregator's address, with http:// or https:// in front.
    token
        A token of the role whose calls are made.
    patience
        Seconds to go on trying where the service does not answer or can't answer yet.
    """

    def __init__(self, url: str, token: str, *, patience: float = 30.0) -> None:
        self._url, self._patience, self._token = check_url(url), patience, token
        self._http = httpx.Client(base_url=url, headers=_headers(token))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def run(self, call: Call[T]) -> T:
        """Make a call, again and again where the service may answer later."""
        return self._finish(self._run(call))

    def _finish(self, coroutine: Coroutine[Any, Any, T]) -> T:
        try:
            coroutine.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        raise RuntimeError("a coroutine of a blocking client must not suspend")

    async def _send(self, request: dict[str, Any]) -> httpx.Response:
        return self._http.request(**request)

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class AsyncClient(Operations):
    """A client with the parameters and methods of ``Client``, to be awaited."""

    def __init__(self, url: str, token: str, *, patience: float = 30.0) -> None:
        self._url, self._patience, self._token = check_url(url), patience, token
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(token))

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def run(self, call: Call[T]) -> T:
        """Make a call, again and again where the service may answer later."""
        return await self._run(call)

    def _finish(self, coroutine: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        return coroutine

    async def _send(self, request: dict[str, Any]) -> httpx.Response:
        return await self._http.request(**request)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _headers(token: str) -> dict[str, str]:
    if not token:
        raise InvalidInputError("token must be a token of the service; got an empty one.")
    for place, character in enumerate(token, 1):
        if not "!" <= character <= "~":  # no header can hold it; the token itself is not shown
            raise InvalidInputError(
                "token must be printable ASCII without spaces or line breaks; character "
                f"{place} of {len(token)} is not."
            )
    return {"Authorization": f"Bearer {token}"}
