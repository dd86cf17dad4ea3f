"""Each call as data: what to send and how to read the answer. Both clients run the same calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import numpy as np

from shoal.arrays import BoolArray, IntArray
from shoal.client.errors import ServiceError
from shoal.errors import InvalidInputError

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

MOST_REPORTS = 10_000  # in one request
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})


class Round(msgspec.Struct, frozen=True):
    """A round's state: wanted, open, released or abandoned."""

    round: int
    state: str


class Total(msgspec.Struct, frozen=True):
    """A released total, in steps of the campaign's grid."""

    arm: str
    parts: list[int]
    reporters: int
    total: int


class Noise(msgspec.Struct, frozen=True):
    """The noise in a release's totals: discrete Laplace, of this scale in steps of the grid."""

    epsilon: float
    scale: float


class Release(msgspec.Struct, frozen=True):
    """All that is ever said about the rewards of a round; ``plan`` is the frozen plan's hash."""

    round: int
    plan: str
    reward_steps: int
    totals: list[Total]
    withheld: int
    homogeneous: int
    noise: Noise | None = None


class Work(msgspec.Struct, frozen=True):
    """A campaign that waits for the learner, with its last round."""

    campaign: str
    round: int
    state: str


class Works(msgspec.Struct, frozen=True):
    """Every campaign that waits for the learner."""

    work: list[Work]


class Page(msgspec.Struct, frozen=True):
    """A page of assignments, user to arm; ``next`` is None on the last one."""

    round: int
    assignments: dict[str, str]
    next: int | None


class Refusal(msgspec.Struct, frozen=True):
    """One refused report of a batch."""

    index: int
    type: str


class Refusals(msgspec.Struct, frozen=True):
    """The refused reports of a batch."""

    refused: list[Refusal]


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
    read: Callable[[httpx.Response], T]
    content: bytes = field(default=b"", repr=False)
    params: Mapping[str, str | int | float] = field(default_factory=dict)
    seconds: float = 0.0  # that the service may wait on purpose
    media_type: str = "application/json"


def parse(call: Call[T], response: httpx.Response) -> T:
    """Read an answer, or raise its problem."""
    if response.is_success:
        return call.read(response)
    try:
        found: dict[str, Any] = msgspec.json.decode(response.content, type=dict[str, Any])
    except msgspec.DecodeError:
        found = {}
    name = str(found.get("type", "")).removeprefix("urn:shoal:problem:")
    text = " ".join(str(found[key]) for key in ("title", "detail") if key in found)
    raise ServiceError(name, response.status_code, text or f"HTTP {response.status_code}")


def put_campaign(name: str, definition: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """Create a campaign."""
    return Call("PUT", _campaign(name), _json, _encode(definition))


def campaign(name: str) -> Call[dict[str, Any]]:
    """Read a campaign."""
    return Call("GET", _campaign(name), _json)


def campaigns() -> Call[list[str]]:
    """List campaigns."""
    return Call("GET", "/v1/campaigns", lambda r: list(_json(r)["campaigns"]))


def move(
    name: str, join: Sequence[str], leave: Sequence[str], *, erase: bool = False
) -> Call[dict[str, Any]]:
    """Enrol and withdraw users."""
    body = _encode({"join": join, "leave": leave, "erase": erase})
    return Call("POST", f"{_campaign(name)}/users", _json, body)


def add_arm(name: str, arm: str) -> Call[dict[str, Any]]:
    """Offer a new arm."""
    return Call("PUT", _arm(name, arm), _json)


def retire_arm(name: str, arm: str) -> Call[None]:
    """Retire an arm."""
    return Call("DELETE", _arm(name, arm), lambda r: None)


def open_round(name: str, number: int, wait: float) -> Call[Round]:
    """Open the next round."""
    return Call("PUT", _round(name, number), _as(Round), params={"wait": wait}, seconds=wait)


def round_state(name: str, number: int) -> Call[Round]:
    """Read a round."""
    return Call("GET", _round(name, number), _as(Round))


def close_round(name: str, number: int) -> Call[Round]:
    """Close and release a round."""
    return Call("POST", f"{_round(name, number)}/close", _as(Round))


def release(name: str, number: int) -> Call[Release]:
    """Read what was released."""
    return Call("GET", f"{_round(name, number)}/release", _as(Release))


def assignment(name: str, user: str) -> Call[tuple[int, str]]:
    """Read one user's round and arm."""
    path = f"{_campaign(name)}/assignments/{quote(user, safe='')}"
    return Call("GET", path, lambda r: (_json(r)["round"], _json(r)["arm"]))


def page(name: str, number: int | None, after: int, limit: int) -> Call[Page]:
    """Read a page of assignments."""
    params: dict[str, str | int | float] = {"after": after, "limit": limit}
    if number is not None:
        params["round"] = number
    return Call("GET", f"{_campaign(name)}/assignments", _as(Page), params=params)


def report(name: str, number: int, rewards: Sequence[tuple[str, float]]) -> Call[list[Refused]]:
    """Report one batch."""
    body = _encode({"reports": [{"user": u, "reward": r} for u, r in rewards]})

    def read(response: httpx.Response) -> list[Refused]:
        found = msgspec.json.decode(response.content, type=Refusals)
        return [
            Refused(rewards[item.index][0], item.type.removeprefix("urn:shoal:problem:"))
            for item in found.refused
        ]

    return Call("POST", f"{_round(name, number)}/reports", read, body)


def token(name: str, role: str) -> Call[str]:
    """Make a token."""
    body = _encode({"role": role})
    return Call("PUT", f"/v1/tokens/{quote(name, safe='')}", lambda r: str(_json(r)["token"]), body)


def revoke(name: str) -> Call[None]:
    """Revoke a token."""
    return Call("DELETE", f"/v1/tokens/{quote(name, safe='')}", lambda r: None)


def sync(progress: Mapping[str, Mapping[str, int]], wait: float) -> Call[list[Work]]:
    """Tell how far the learner is, and wait for work."""
    body = _encode({"campaigns": progress, "wait": wait})
    return Call("POST", "/v1/learner/sync", lambda r: _as(Works)(r).work, body, seconds=wait)


def eligible(
    name: str, number: int, n_seats: int, n_arms: int
) -> Call[tuple[BoolArray, BoolArray]]:
    """Read who may play what in a round: seats that hold an active user, and arms on offer."""

    def read(response: httpx.Response) -> tuple[BoolArray, BoolArray]:
        end = (n_seats + 7) // 8
        return _bits(response.content[:end], n_seats), _bits(response.content[end:], n_arms)

    return Call("GET", f"{_round(name, number)}/eligible", read)


def counted(name: str, number: int, n_seats: int) -> Call[BoolArray]:
    """Read which seats are part of a released total."""
    path = f"{_round(name, number)}/counted"
    return Call("GET", path, lambda r: _bits(r.content, n_seats))


def freeze(name: str, number: int, arms: IntArray, groups: IntArray) -> Call[None]:
    """Freeze a plan."""
    body = arms.astype("<i4").tobytes() + groups.astype("<i4").tobytes()
    path = f"{_round(name, number)}/plan"
    return Call("PUT", path, lambda r: None, body, media_type="application/octet-stream")


def estimates(
    name: str, number: int, means: Sequence[float | None], half_widths: Sequence[float | None]
) -> Call[None]:
    """Tell what is believed of the arms before a round."""
    body = _encode({"means": means, "half_widths": half_widths})
    return Call("PUT", f"{_round(name, number)}/estimates", lambda r: None, body)


def batches(
    rewards: Mapping[str, float] | Iterable[tuple[str, float]], size: int
) -> list[list[tuple[str, float]]]:
    """Cut rewards into batches.

    >>> batches({"ann": 1.0, "bob": 0.0, "eve": 0.5}, 2)
    [[('ann', 1.0), ('bob', 0.0)], [('eve', 0.5)]]
    """
    if not 1 <= size <= MOST_REPORTS:
        raise InvalidInputError(f"batch_size must be between 1 and {MOST_REPORTS}; got {size}.")
    items = list(rewards.items() if isinstance(rewards, Mapping) else rewards)
    return [items[start : start + size] for start in range(0, len(items), size)]


def _encode(content: object) -> bytes:
    return msgspec.json.encode(content, enc_hook=_plain)


def _plain(value: object) -> object:
    """Return a number of NumPy's as Python's own; rewards often come as such."""
    if isinstance(value, np.generic):
        return value.item()
    raise InvalidInputError(
        f"what is sent must be numbers, text and lists; got {type(value).__name__}."
    )


def _campaign(name: str) -> str:
    return f"/v1/campaigns/{quote(name, safe='')}"


def _arm(name: str, arm: str) -> str:
    return f"{_campaign(name)}/arms/{quote(arm, safe='')}"


def _round(name: str, number: int) -> str:
    return f"{_campaign(name)}/rounds/{number}"


def _json(response: httpx.Response) -> dict[str, Any]:
    return msgspec.json.decode(response.content, type=dict[str, Any])


def _as(kind: type[S]) -> Callable[[httpx.Response], S]:
    return lambda response: msgspec.json.decode(response.content, type=kind)


def _bits(packed: bytes, count: int) -> BoolArray:
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=count).astype(bool)
