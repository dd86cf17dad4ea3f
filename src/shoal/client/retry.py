"""When to try again, and when to give up."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})


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
