"""When to try again, and when to give up."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import httpx

from shoal.client.errors import ServiceError


class Patience:
    """Growing pauses with jitter, until the time is up.

    Parameters
    ----------
    seconds
        How long to go on trying.
    """

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._pauses = self._grow()
        self._reason = "no answer"

    def pause(self, reason: str) -> float | None:
        """Return how long to wait before the next try, None when it is time to give up."""
        self._reason = reason
        wait = next(self._pauses)
        return wait if time.monotonic() + wait < self._ends else None

    def give_up(self) -> ServiceError:
        """Return the error for a service that could not be reached."""
        return ServiceError("unreachable", 0, f"the service can't be reached: {self._reason}.")

    @staticmethod
    def _grow() -> Iterator[float]:
        pause = 0.05
        while True:
            yield pause * random.uniform(0.5, 1.5)
            pause = min(2.0, 2 * pause)


def timeout(seconds: float) -> httpx.Timeout:
    """Return a request's timeout; ``seconds`` is what the service may wait on purpose."""
    return httpx.Timeout(30.0 + seconds, connect=5.0)
