"""The one clock of the service, so that tests can turn it."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns milliseconds since 1970."""

HOUR = 3_600_000
DAY = 24 * HOUR


def system_clock() -> int:
    """Return the machine's time.

    >>> system_clock() > 1_700_000_000_000
    True
    """
    return time.time_ns() // 1_000_000
