"""One thread for linear algebra, and one for each core where there are very many users.

Most matrices here are too small for several threads. Where several processes run on the same
cores, as simulations do, threads wait for each other and take many times as long as one.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def one_thread(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function whose linear algebra is to run on one thread."""

    @wraps(function)
    def limited(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


@cache
def _controller() -> ThreadpoolController:
    """Return the controller of the libraries loaded at the first call, NumPy's among them."""
    return ThreadpoolController()


MIN_RANGE = 50_000
"""Users of a range: with fewer, starting a thread takes longer than it saves."""


def in_ranges(n: int, work: Callable[[int, int], None]) -> None:
    """Call ``work`` on ranges that make up 0 to ``n``, large ones at the same time.

    It must release Python's lock, and what it does to a range must not depend on the others.

    >>> in_ranges(3, print)
    0 3
    """
    n_ranges = max(1, min(n_cores(), n // MIN_RANGE))
    ends = [n * part // n_ranges for part in range(n_ranges + 1)]
    if n_ranges == 1:
        work(0, n)
        return
    with ThreadPoolExecutor(n_ranges) as pool:
        list(pool.map(work, ends, ends[1:]))


def n_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
