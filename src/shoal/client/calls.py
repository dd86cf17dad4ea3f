"""Each call as data: what to send and how to read the answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from shoal import wire
from shoal.client.errors import ServiceError
from shoal.errors import InvalidInputError

T = TypeVar("T")


class Round(msgspec.Struct, frozen=True):
    """A round's state: wanted, open, released or abandoned."""

    round: int
    state: str


@dataclass(frozen=True)
class Refused:
    """A report that was not counted, and the stable name of the reason."""

    user: str
    reason: str


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[bytes], T]
    content: bytes = field(default=b"", repr=False)
    params: Mapping[str, str | int | float] = field(default_factory=dict)
    seconds: float = 0.0  # that the service may wait on purpose

    def request(self) -> dict[str, Any]:
        """Return the arguments of an HTTP client's ``request``."""
        return {
            "method": self.method,
            "url": self.path,
            "content": self.content or None,
            "params": dict(self.params),
            "headers": {"Content-Type": "application/json"},
            "timeout": httpx.Timeout(30.0 + self.seconds, connect=5.0),
        }

    def parse(self, response: httpx.Response) -> T:
        """Read an answer, or raise its problem."""
        if response.is_success:
            return self.read(response.content)
        try:
            problem = msgspec.json.decode(response.content, type=wire.Problem)
        except msgspec.DecodeError:
            problem = wire.Problem()
        message = f"{problem.title} {problem.detail}".strip() or f"HTTP {response.status_code}"
        raise ServiceError(problem.name, response.status_code, message)


def put_campaign(name: str, definition: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """Create a campaign."""
    return Call("PUT", _campaign(name), read_json, encode(definition))


def campaign(name: str) -> Call[dict[str, Any]]:
    """Read a campaign."""
    return Call("GET", _campaign(name), read_json)


def campaigns() -> Call[wire.CampaignNames]:
    """List campaigns."""
    return Call("GET", "/v1/campaigns", read_as(wire.CampaignNames))


def move(name: str, movement: wire.Movement) -> Call[wire.Moved]:
    """Enrol and withdraw users."""
    return Call("POST", f"{_campaign(name)}/users", read_as(wire.Moved), encode(movement))


def add_arm(name: str, arm: str) -> Call[dict[str, Any]]:
    """Offer a new arm."""
    return Call("PUT", _arm(name, arm), read_json)


def retire_arm(name: str, arm: str) -> Call[None]:
    """Retire an arm."""
    return Call("DELETE", _arm(name, arm), read_nothing)


def open_round(name: str, number: int, wait: float) -> Call[Round]:
    """Open the next round."""
    params = {"wait": wait}
    return Call("PUT", round_path(name, number), read_as(Round), params=params, seconds=wait)


def round_state(name: str, number: int) -> Call[Round]:
    """Read a round."""
    return Call("GET", round_path(name, number), read_as(Round))


def close_round(name: str, number: int) -> Call[Round]:
    """Close and release a round."""
    return Call("POST", f"{round_path(name, number)}/close", read_as(Round))


def release(name: str, number: int) -> Call[wire.Release]:
    """Read a release."""
    return Call("GET", f"{round_path(name, number)}/release", read_as(wire.Release))


def assignment(name: str, user: str) -> Call[wire.Assignment]:
    """Read one user's round and arm."""
    path = f"{_campaign(name)}/assignments/{quote(user, safe='')}"
    return Call("GET", path, read_as(wire.Assignment))


def page(name: str, number: int | None, after: int, limit: int) -> Call[wire.Page]:
    """Read a page of assignments."""
    params: dict[str, str | int | float] = {"after": after, "limit": limit}
    if number is not None:
        params["round"] = number
    return Call("GET", f"{_campaign(name)}/assignments", read_as(wire.Page), params=params)


def report(name: str, number: int, rewards: Sequence[tuple[str, float]]) -> Call[list[Refused]]:
    """Report one batch."""
    body = encode(wire.Batch([wire.Report(user, reward) for user, reward in rewards]))

    def read(content: bytes) -> list[Refused]:
        return [
            Refused(rewards[item.index][0], item.type.removeprefix(wire.PROBLEM_TYPE))
            for item in msgspec.json.decode(content, type=wire.Refusals).refused
        ]

    return Call("POST", f"{round_path(name, number)}/reports", read, body)


def token(name: str, role: str) -> Call[wire.IssuedToken]:
    """Make a token."""
    body = encode(wire.TokenRequest(role))
    return Call("PUT", f"/v1/tokens/{quote(name, safe='')}", read_as(wire.IssuedToken), body)


def revoke(name: str) -> Call[None]:
    """Revoke a token."""
    return Call("DELETE", f"/v1/tokens/{quote(name, safe='')}", read_nothing)


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


def encode(message: object) -> bytes:
    """Return a message as JSON."""
    return msgspec.json.encode(message, enc_hook=_to_builtin)


def _to_builtin(value: object) -> object:
    """Return a NumPy scalar as a Python one; rewards often come as such."""
    numpy = sys.modules.get(
        "numpy"
    )  # there if the value is NumPy's; the client needs it for nothing
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    raise InvalidInputError(
        f"what is sent must be numbers, text and lists; got {type(value).__name__}."
    )


def round_path(name: str, number: int, *, base: str = "/v1") -> str:
    """Return the path of a round."""
    return f"{_campaign(name, base)}/rounds/{number}"


def _campaign(name: str, base: str = "/v1") -> str:
    return f"{base}/campaigns/{quote(name, safe='')}"


def _arm(name: str, arm: str) -> str:
    return f"{_campaign(name)}/arms/{quote(arm, safe='')}"


def read_json(content: bytes) -> dict[str, Any]:
    """Read any JSON object."""
    return msgspec.json.decode(content, type=dict[str, Any])


def read_nothing(content: bytes) -> None:
    """Read an answer without a body."""


def read_as(message: type[T]) -> Callable[[bytes], T]:
    """Return a function that reads a message."""
    return lambda content: msgspec.json.decode(content, type=message)
