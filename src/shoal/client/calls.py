"""Each call as data: what to send, how to read the answer, and when to try again."""

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from shoal import wire
from shoal.errors import InvalidInputError, ShoalError

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
T = TypeVar("T")


class ServiceError(ShoalError):
    """The service refused a call, or could not be reached in time.

    Attributes
    ----------
    name : str
        The stable name of the problem, for example "plan-frozen"; "unreachable" if there was
        no answer.
    status : int
        The HTTP status, 0 if there was no answer.
    """

    def __init__(self, name: str, status: int, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.status = status


def pauses(seconds: float) -> Iterator[float]:
    """Yield growing pauses with jitter, as long as the next one ends within ``seconds``."""
    deadline = time.monotonic() + seconds
    pause = 0.05
    while True:
        wait = pause * random.uniform(0.5, 1.5)
        if time.monotonic() + wait >= deadline:
            return
        yield wait
        pause = min(2.0, 2 * pause)


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[bytes], T]
    content: bytes = field(default=b"", repr=False)
    params: Mapping[str, str | int | float] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0  # that the service may wait on purpose

    def request(self) -> dict[str, Any]:
        """Return the arguments of an HTTP client's ``request``."""
        return {
            "method": self.method,
            "url": self.path,
            "content": self.content or None,
            "params": dict(self.params),
            "headers": {"Content-Type": "application/json", **self.headers},
            "timeout": httpx.Timeout(30.0 + self.seconds, connect=5.0),
        }

    def parse(self, response: httpx.Response) -> T:
        """Read an answer, or raise its problem."""
        if response.is_success or response.status_code == httpx.codes.NOT_MODIFIED:
            return self.read(response.content)
        try:
            problem = msgspec.json.decode(response.content, type=wire.ProblemDocument)
        except msgspec.DecodeError:
            problem = wire.ProblemDocument()
        message = f"{problem.title} {problem.detail}".strip() or f"HTTP {response.status_code}"
        if problem.name == "not-found":
            message += f" Got {self.method} {self.path}."
        raise ServiceError(problem.name, response.status_code, message)


def encode(message: object) -> bytes:
    """Return a message as JSON."""
    return msgspec.json.encode(message, enc_hook=_to_builtin)


def _to_builtin(value: object) -> object:
    """Return a NumPy scalar as a Python one; rewards often come as such."""
    numpy = sys.modules.get("numpy")  # there if the value is NumPy's; not needed by the client
    if numpy is not None and isinstance(value, numpy.generic):
        return value.item()
    raise InvalidInputError(
        f"what is sent must be numbers, text and lists; got {type(value).__name__}."
    )


def check_url(url: str) -> str:
    """Return a service's address, or refuse one that no request could be sent to.

    >>> check_url("http://127.0.0.1:8000")
    'http://127.0.0.1:8000'
    """
    try:
        parts = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        parts = httpx.URL()
    if parts.scheme not in ("http", "https") or not parts.host:
        raise InvalidInputError(
            f"url must be an address that begins with http:// or https://; got {url!r}."
        )
    return url


def path_of(*parts: str | int) -> str:
    """Return the path of a route; no part may lead to another route, as ".." would.

    >>> path_of("campaigns", "news", "arms", "a/b")
    '/v1/campaigns/news/arms/a%2Fb'
    """
    for part in parts:
        if part in ("", ".", ".."):
            raise InvalidInputError(f'a name must not be empty, "." or ".."; got {part!r}.')
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


def read_json(content: bytes) -> dict[str, Any]:
    """Read any JSON object."""
    return msgspec.json.decode(content, type=dict[str, Any])


def read_nothing(content: bytes) -> None:
    """Read an answer without a body."""


def read_as(message: type[T]) -> Callable[[bytes], T]:
    """Return a function that reads a message."""
    return lambda content: msgspec.json.decode(content, type=message)
