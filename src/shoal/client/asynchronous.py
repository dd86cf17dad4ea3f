"""The client that is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

import httpx

from shoal.client import calls
from shoal.client.calls import RETRIED, Call, Refused, Release, Round
from shoal.client.patience import Patience, timeout
from shoal.errors import InvalidInputError

T = TypeVar("T")

USERS = 100_000  # in one request
PAGE = 10_000


class AsyncClient:
    """A service, seen with one token.

    Parameters
    ----------
    url
        The aggregator's address.
    token
        A token of the role whose calls are made.
    patience
        Seconds to go on trying where the service does not answer or can't answer yet.
    """

    def __init__(self, url: str, token: str, *, patience: float = 30.0) -> None:
        if not token:
            raise InvalidInputError("token must be a token of the service; got an empty one.")
        self._patience = patience
        self._http = httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {token}"})

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of all connections."""
        await self._http.aclose()

    async def create_campaign(self, name: str, **definition: Any) -> dict[str, Any]:
        """Create a campaign under a name of your own; the same again changes nothing."""
        return await self.run(calls.put_campaign(name, definition))

    async def campaign(self, name: str) -> dict[str, Any]:
        """Read a campaign: its definition, its users' number, its last round."""
        return await self.run(calls.campaign(name))

    async def campaigns(self) -> list[str]:
        """List the campaigns."""
        return await self.run(calls.campaigns())

    async def enrol(self, name: str, users: Sequence[str]) -> int:
        """Let users join from the next round on; return how many are new or back."""
        moved = 0
        for start in range(0, len(users), USERS):
            part = calls.move(name, users[start : start + USERS], [])
            moved += (await self.run(part))["joined"]
        return moved

    async def withdraw(self, name: str, users: Sequence[str], *, erase: bool = False) -> int:
        """Let users leave from the next round on; return how many did.

        With ``erase``, the service forgets their names, also of those who have left before.
        """
        moved = 0
        for start in range(0, len(users), USERS):
            part = calls.move(name, [], users[start : start + USERS], erase=erase)
            moved += (await self.run(part))["left"]
        return moved

    async def add_arm(self, name: str, arm: str) -> dict[str, Any]:
        """Offer a new arm from the next round on; return the campaign."""
        return await self.run(calls.add_arm(name, arm))

    async def retire_arm(self, name: str, arm: str) -> None:
        """Play an arm no more from the next round on, for good."""
        await self.run(calls.retire_arm(name, arm))

    async def open_round(self, name: str, number: int, *, wait: float = 10.0) -> Round:
        """Ask for the next round and wait until it is open."""
        return await self.run(calls.open_round(name, number, wait))

    async def round(self, name: str, number: int) -> Round:
        """Read a round's state."""
        return await self.run(calls.round_state(name, number))

    async def close_round(self, name: str, number: int) -> Round:
        """Close and release a round."""
        return await self.run(calls.close_round(name, number))

    async def release(self, name: str, number: int) -> Release:
        """Read what was released."""
        return await self.run(calls.release(name, number))

    async def assignment(self, name: str, user: str) -> tuple[int, str]:
        """Read one user's round and arm."""
        return await self.run(calls.assignment(name, user))

    async def assignments(self, name: str, *, number: int | None = None) -> dict[str, str]:
        """Read every user's arm, page by page."""
        found: dict[str, str] = {}
        after: int | None = 0
        while after is not None:
            page = await self.run(calls.page(name, number, after, PAGE))
            number, after = page.round, page.next
            found |= page.assignments
        return found

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
            part = await self.run(calls.report(name, number, batch))
            refused += part
        return refused

    async def token(self, name: str, role: str) -> str:
        """Make a token for a role, in place of any of that name."""
        return await self.run(calls.token(name, role))

    async def revoke(self, name: str) -> None:
        """Revoke a token."""
        await self.run(calls.revoke(name))

    async def run(self, call: Call[T]) -> T:
        """Run a call, again and again where the service may answer later."""
        patience = Patience(self._patience + call.seconds)
        while True:
            try:
                response = await self._http.request(
                    call.method,
                    call.path,
                    content=call.content or None,
                    params=dict(call.params),
                    headers={"Content-Type": call.media_type},
                    timeout=timeout(call.seconds),
                )
            except httpx.TransportError as error:
                pause = patience.pause(type(error).__name__)
                if pause is None:
                    raise patience.give_up() from error
            else:
                pause = patience.pause(f"HTTP {response.status_code}")
                if response.status_code not in RETRIED or pause is None:
                    return calls.parse(call, response)
            await asyncio.sleep(pause)
