"""Everything that a client does, written once for the client that waits and for the one awaited."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

import httpx
import msgspec

from shoal import wire
from shoal.client import table
from shoal.client.calls import (
    RETRIED,
    Call,
    ServiceError,
    encode,
    path_of,
    pauses,
    read_as,
    read_json,
    read_nothing,
)
from shoal.client.table import AssignmentTable
from shoal.errors import InvalidInputError

if TYPE_CHECKING:
    from shoal.client.clients import AsyncClient, Client

P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MAX_USERS = 100_000  # in one request
PAGE_SIZE = 10_000
_PLACE = re.compile(r" - at `\$\.reports\[(\d+)\]")


class Round(msgspec.Struct, frozen=True):
    """A round's state: wanted, open, released or abandoned."""

    round: int
    state: str


@dataclass(frozen=True)
class Refused:
    """A report that was not counted, and the stable name of the reason."""

    user: str
    reason: str


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


def _parts(users: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield users, in their order, by as many as one request may have."""
    if not isinstance(users, list | tuple):
        raise InvalidInputError(f"users must be a list of texts; got {type(users).__name__}.")
    for start in range(0, len(users), MAX_USERS):
        yield users[start : start + MAX_USERS]


class Operations(ABC):
    """Everything that a client does, one method each; how requests are sent is a subclass's."""

    _url: str
    _patience: float
    _token: str

    @abstractmethod
    def _finish(self, coroutine: Coroutine[Any, Any, T]) -> Any:
        """Return what the caller of a method gets."""

    @abstractmethod
    async def _send(self, request: dict[str, Any]) -> httpx.Response: ...

    @abstractmethod
    async def _sleep(self, seconds: float) -> None: ...

    @operation
    async def create_campaign(self, /, name: str, **definition: Any) -> dict[str, Any]:
        """Create a campaign under a name that you choose; the same again changes nothing."""
        return await self._run(
            Call("PUT", path_of("campaigns", name), read_json, encode(definition))
        )

    @operation
    async def campaign(self, name: str) -> dict[str, Any]:
        """Read a campaign: its definition, its users' number, its last round."""
        return await self._run(Call("GET", path_of("campaigns", name), read_json))

    @operation
    async def campaigns(self) -> list[str]:
        """List the campaigns."""
        call = Call("GET", path_of("campaigns"), read_as(wire.CampaignNames))
        return (await self._run(call)).campaigns

    @operation
    async def enrol(self, name: str, users: Sequence[str]) -> int:
        """Let users join from the next round on; return how many are new or back."""
        joined = 0
        for part in _parts(users):
            joined += (await self._move(name, join=part)).joined
        return joined

    @operation
    async def withdraw(self, name: str, users: Sequence[str], *, erase: bool = False) -> int:
        """Let users leave from the next round on; return how many did.

        With ``erase``, the service forgets their names, also of those who have left before; return
        how many names were forgotten.
        """
        n_users = 0
        for part in _parts(users):
            moved = await self._move(name, leave=part, erase=erase)
            n_users += moved.erased if erase else moved.left
        return n_users

    async def _move(self, name: str, **movement: Any) -> wire.Moved:
        body = encode(wire.Movement(**movement))
        return await self._run(
            Call("POST", path_of("campaigns", name, "users"), read_as(wire.Moved), body)
        )

    @operation
    async def archive_campaign(self, name: str) -> dict[str, Any]:
        """End a campaign for good: totals stay, names, plans and what was learnt are forgotten."""
        return await self._run(Call("POST", path_of("campaigns", name, "archive"), read_json))

    @operation
    async def delete_campaign(self, name: str) -> None:
        """Delete an archived campaign with everything that is stored of it."""
        await self._run(Call("DELETE", path_of("campaigns", name), read_nothing))

    @operation
    async def add_arm(self, name: str, arm: str) -> dict[str, Any]:
        """Offer a new arm from the next round on; return the campaign."""
        return await self._run(Call("PUT", path_of("campaigns", name, "arms", arm), read_json))

    @operation
    async def retire_arm(self, name: str, arm: str) -> None:
        """Play an arm no more from the next round on, for good."""
        await self._run(Call("DELETE", path_of("campaigns", name, "arms", arm), read_nothing))

    @operation
    async def open_round(self, name: str, number: int, *, wait: float = 10.0) -> Round:
        """Ask for the next round and wait until it is open, ``wait`` seconds at most.

        Its state is "wanted" where the learner is still at its plan then: call it again.
        """
        path, params = path_of("campaigns", name, "rounds", number), {"wait": wait}
        return await self._run(Call("PUT", path, read_as(Round), params=params, seconds=wait))

    @operation
    async def round(self, name: str, number: int) -> Round:
        """Read a round's state."""
        path = path_of("campaigns", name, "rounds", number)
        return await self._run(Call("GET", path, read_as(Round)))

    @operation
    async def close_round(self, name: str, number: int) -> Round:
        """Close and release a round."""
        path = path_of("campaigns", name, "rounds", number, "close")
        return await self._run(Call("POST", path, read_as(Round)))

    @operation
    async def abandon(self, name: str, *, through: int) -> dict[str, Any]:
        """Give up the last round, or those that the learner alone knows of."""
        body = encode(wire.Abandonment(through))
        return await self._run(Call("POST", path_of("campaigns", name, "abandon"), read_json, body))

    @operation
    async def capability_key(self, name: str) -> bytes:
        """Read the key of ``report_capability`` for a campaign."""
        path = path_of("campaigns", name, "capability-key")
        answer = await self._run(Call("GET", path, read_as(wire.CapabilityKey)))
        return bytes.fromhex(answer.key)

    @operation
    async def release(self, name: str, number: int) -> wire.Release:
        """Read what was released."""
        path = path_of("campaigns", name, "rounds", number, "release")
        return await self._run(Call("GET", path, read_as(wire.Release)))

    @operation
    async def assignment(self, name: str, user: str) -> tuple[int, str]:
        """Read one user's round and arm."""
        path = path_of("campaigns", name, "assignments", user)
        assignment = await self._run(Call("GET", path, read_as(wire.Assignment)))
        return assignment.round, assignment.arm

    @operation
    async def assignments(self, name: str, *, number: int | None = None) -> dict[str, str]:
        """Read every user's arm, page by page."""
        path = path_of("campaigns", name, "assignments")
        arms: dict[str, str] = {}
        after: int | None = 0
        while after is not None:
            params = {"after": after, "limit": PAGE_SIZE}
            if number is not None:
                params["round"] = number
            page = await self._run(Call("GET", path, read_as(wire.Page), params=params))
            number, after = page.round, page.next
            arms |= page.assignments
        return arms

    @operation
    async def assignment_table(
        self, name: str, *, known: AssignmentTable | None = None, max_age: float = table.MAX_AGE
    ) -> AssignmentTable:
        """Read everyone's arm in the open round at once, to look them up without the service.

        A ``known`` table is confirmed where its round is still open. One of an earlier round than
        the known one is refused.
        """
        last: int = (await self._run(Call("GET", path_of("campaigns", name), read_json)))["round"]
        if known is not None and last < known.round:
            raise ServiceError(
                "stale-table", 0, f"the round must be at least {known.round}; got {last}."
            )
        if last < 1:
            raise ServiceError("round-not-open", 409, "The round is not open. There is none yet.")
        path = path_of("campaigns", name, "rounds", last, "assignments")
        tags = {"If-None-Match": f'"{known.tag}"'} if known is not None else {}
        content = await self._run(Call("GET", path, bytes, headers=tags))
        if not content and known is not None:
            return known.confirmed()
        return table.read(content, self._token, max_age=max_age)

    @operation
    async def report(
        self,
        name: str,
        number: int,
        rewards: Mapping[str, float] | Iterable[tuple[str, float]],
        *,
        batch_size: int = 1000,
        capabilities: Mapping[str, str] | None = None,
    ) -> list[Refused]:
        """Report rewards in batches; return the refused ones, in order.

        ``capabilities`` are users' own, by user, where the campaign asks for them. Where one is no
        user with a number, none of them is sent.
        """
        path = path_of("campaigns", name, "rounds", number, "reports")
        refused: list[Refused] = []
        parts = batches(rewards, batch_size)
        for batch, body in zip(parts, bodies(parts, capabilities or {}), strict=True):
            answer = await self._run(Call("POST", path, read_as(wire.Refusals), body))
            refused += [Refused(batch[item.index][0], item.name) for item in answer.refused]
        return refused

    @operation
    async def token(
        self,
        name: str,
        role: str,
        *,
        campaigns: Sequence[str] | None = None,
        expires_days: float | None = None,
        succeeds: str | None = None,
    ) -> str:
        """Make a token for a role, in place of any of that name.

        One of role app, learner or analyst names its ``campaigns``; ``["*"]`` is all of them. It
        may ``succeed`` another one, whose reporting it takes over.
        """
        request = wire.TokenRequest(role, campaigns, expires_days, succeeds)
        path, body = path_of("tokens", name), encode(request)
        return (await self._run(Call("PUT", path, read_as(wire.IssuedToken), body))).token

    @operation
    async def tokens(self) -> dict[str, wire.TokenRecord]:
        """List the tokens by name: who may do what, where, and until when."""
        call = Call("GET", path_of("tokens"), read_as(wire.TokenList))
        return (await self._run(call)).tokens

    @operation
    async def rotate(self, name: str, *, grace_hours: float = 24.0) -> str:
        """Give a token a new secret; the former one works for ``grace_hours`` beside it."""
        path, body = path_of("tokens", name, "rotate"), encode(wire.Rotation(grace_hours))
        return (await self._run(Call("POST", path, read_as(wire.IssuedToken), body))).token

    @operation
    async def audit(self) -> list[wire.AuditEntry]:
        """Read the whole audit log."""
        entries: list[wire.AuditEntry] = []
        after: int | None = 0
        while after is not None:
            call = Call("GET", path_of("audit"), read_as(wire.AuditPage), params={"after": after})
            page = await self._run(call)
            entries, after = entries + page.entries, page.next
        return entries

    @operation
    async def revoke(self, name: str) -> None:
        """Revoke a token."""
        await self._run(Call("DELETE", path_of("tokens", name), read_nothing))

    async def _run(self, call: Call[T]) -> T:
        """Make a call, again and again where the service may answer later."""
        waits = pauses(self._patience + call.seconds)
        while True:
            try:
                response = await self._send(call.request())
            except httpx.TransportError as error:
                wait = next(waits, None)
                if wait is None:
                    message = f"no service answers at {self._url}: {type(error).__name__}."
                    raise ServiceError("unreachable", 0, message) from error
            else:
                wait = next(waits, None) if response.status_code in RETRIED else None
                if wait is None:
                    return call.parse(response)
            await self._sleep(wait)


def batches(
    rewards: Mapping[str, float] | Iterable[tuple[str, float]], size: int
) -> list[list[tuple[str, float]]]:
    """Cut rewards into batches.

    >>> batches({"ann": 1.0, "bob": 0.0, "eve": 0.5}, 2)
    [[('ann', 1.0), ('bob', 0.0)], [('eve', 0.5)]]
    """
    if not 1 <= size <= wire.MAX_REPORTS:
        raise InvalidInputError(f"batch_size must be between 1 and {wire.MAX_REPORTS}; got {size}.")
    items = list(rewards.items() if isinstance(rewards, Mapping) else rewards)
    return [items[start : start + size] for start in range(0, len(items), size)]


def bodies(parts: list[list[tuple[str, float]]], capabilities: Mapping[str, str]) -> list[bytes]:
    """Write all batches, and read them as the service will: one that it would refuse is not sent.

    No value of a report is in the error.
    """
    written, start = [], 0
    for batch in parts:
        reports = [wire.Report(u, reward, capabilities.get(u, "")) for u, reward in batch]
        body = encode(wire.Batch(reports))
        try:
            msgspec.json.decode(body, type=wire.Batch)
        except msgspec.ValidationError as error:
            place = _PLACE.search(str(error))
            index = start + int(place[1]) if place else start
            raise InvalidInputError(
                "rewards must be users (text) with numbers; the first that is not has index "
                f"{index:,}. Nothing was sent."
            ) from None
        written.append(body)
        start += len(batch)
    return written
