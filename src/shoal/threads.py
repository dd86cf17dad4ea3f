"""One thread for linear algebra.

Most matrices here are too small to share out. Where several processes run on the same cores, as
simulations do, threads wait for each other and take many times as long as one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

Given = ParamSpec("Given")
Result = TypeVar("Result")


def one_thread(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorate a function whose linear algebra is to run on one thread."""

    @wraps(function)
    def alone(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        with _libraries().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return alone


@cache
def _libraries() -> ThreadpoolController:
    """Return what is loaded when it is first needed: NumPy's library by then."""
    return ThreadpoolController()
