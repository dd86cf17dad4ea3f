"""What both clients do, written once, as coroutines.

``AsyncClient`` hands the coroutines to its caller. ``Client`` runs each to its end: its requests
block, so that a coroutine never suspends and no event loop is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import httpx

from shoal.client import calls
from shoal.client.calls import Call, Refused, Round
from shoal.client.errors import ServiceError
from shoal.client.retry import RETRIED, pauses
from shoal.wire import Movement, Release

if TYPE_CHECKING:
    from shoal.client.clients import AsyncClient, Client

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MAX_USERS = 100_000  # in one request
PAGE_SIZE = 10_000


class Operation(Protocol[P, T_co]):
    """A method that returns its result from ``Client`` and a coroutine from ``AsyncClient``."""

    @overload
    def __get__(self, client: Client, owner: type) -> Callable[P, T_co]: ...
    @overload
    def __get__(
        self, client: AsyncClient, owner: type
    ) -> Callable[P, Coroutine[Any, Any, T_co]]: ...


def operation(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Operation[P, T]:
    """Make a coroutine function a method of both clients."""

    @wraps(method)
    def start(client: Operations, *args: P.args, **kwargs: P.kwargs) -> Any:
        return client._finish(method(client, *args, **kwargs))

    return cast("Operation[P, T]", start)


class Operations:
    """Everything that a client does, one method each; how requests are sent is a subclass's."""

    _patience: float

    def _finish(self, coroutine: Coroutine[Any, Any, T]) -> Any:
        """Return what the caller of a method gets."""
        raise NotImplementedError

    async def _send(self, request: dict[str, Any]) -> httpx.Response:
        raise NotImplementedError

    async def _sleep(self, seconds: float) -> None:
        raise NotImplementedError

    @operation
    async def create_campaign(self, /, name: str, **definition: Any) -> dict[str, Any]:
        """Create a campaign under a name of your own; the same again changes nothing."""
        return await self._run(calls.put_campaign(name, definition))

    @operation
    async def campaign(self, name: str) -> dict[str, Any]:
        """Read a campaign: its definition, its users' number, its last round."""
        return await self._run(calls.campaign(name))

    @operation
    async def campaigns(self) -> list[str]:
        """List the campaigns."""
        return (await self._run(calls.campaigns())).campaigns

    @operation
    async def enrol(self, name: str, users: Sequence[str]) -> int:
        """Let users join from the next round on; return how many are new or back."""
        joined = 0
        for start in range(0, len(users), MAX_USERS):
            movement = Movement(join=users[start : start + MAX_USERS])
            joined += (await self._run(calls.move(name, movement))).joined
        return joined

    @operation
    async def withdraw(self, name: str, users: Sequence[str], *, erase: bool = False) -> int:
        """Let users leave from the next round on; return how many did.

        With ``erase``, the service forgets their names, also of those who have left before.
        """
        left = 0
        for start in range(0, len(users), MAX_USERS):
            movement = Movement(leave=users[start : start + MAX_USERS], erase=erase)
            left += (await self._run(calls.move(name, movement))).left
        return left

    @operation
    async def add_arm(self, name: str, arm: str) -> dict[str, Any]:
        """Offer a new arm from the next round on; return the campaign."""
        return await self._run(calls.add_arm(name, arm))

    @operation
    async def retire_arm(self, name: str, arm: str) -> None:
        """Play an arm no more from the next round on, for good."""
        await self._run(calls.retire_arm(name, arm))

    @operation
    async def open_round(self, name: str, number: int, *, wait: float = 10.0) -> Round:
        """Ask for the next round and wait until it is open."""
        return await self._run(calls.open_round(name, number, wait))

    @operation
    async def round(self, name: str, number: int) -> Round:
        """Read a round's state."""
        return await self._run(calls.round_state(name, number))

    @operation
    async def close_round(self, name: str, number: int) -> Round:
        """Close and release a round."""
        return await self._run(calls.close_round(name, number))

    @operation
    async def release(self, name: str, number: int) -> Release:
        """Read what was released."""
        return await self._run(calls.release(name, number))

    @operation
    async def assignment(self, name: str, user: str) -> tuple[int, str]:
        """Read one user's round and arm."""
        assignment = await self._run(calls.assignment(name, user))
        return assignment.round, assignment.arm

    @operation
    async def assignments(self, name: str, *, number: int | None = None) -> dict[str, str]:
        """Read every user's arm, page by page."""
        arms: dict[str, str] = {}
        after: int | None = 0
        while after is not None:
            page = await self._run(calls.page(name, number, after, PAGE_SIZE))
            number, after = page.round, page.next
            arms |= page.assignments
        return arms

    @operation
    async def report(
        self,
        name: str,
        number: int,
        rewards: Mapping[str, float] | Iterable[tuple[str, float]],
        *,
        batch_size: int = 1000,
    ) -> list[Refused]:
        """Report rewards in batches; return the refused ones, in order."""
        refused: list[Refused] = []
        for batch in calls.batches(rewards, batch_size):
            part = await self._run(calls.report(name, number, batch))
            refused += part
        return refused

    @operation
    async def token(self, name: str, role: str) -> str:
        """Make a token for a role, in place of any of that name."""
        return (await self._run(calls.token(name, role))).token

    @operation
    async def revoke(self, name: str) -> None:
        """Revoke a token."""
        await self._run(calls.revoke(name))

    async def _run(self, call: Call[T]) -> T:
        """Make a call, again and again where the service may answer later."""
        waits = pauses(self._patience + call.seconds)
        while True:
            try:
                response = await self._send(call.request())
            except httpx.TransportError as error:
                wait = next(waits, None)
                if wait is None:
                    message = f"the service can't be reached: {type(error).__name__}."
                    raise ServiceError("unreachable", 0, message) from error
            else:
                wait = next(waits, None) if response.status_code in RETRIED else None
                if wait is None:
                    return call.parse(response)
            await self._sleep(wait)
