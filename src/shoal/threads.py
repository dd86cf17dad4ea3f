"""One thread for linear algebra.

Most matrices here are too small for several. Where several processes run on the same cores, as
simulations do, threads wait for each other and take many times as long as one.
"""

from collections.abc import Callable
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
