"""One thread for linear algebra.

Matrices here have a few hundred rows at most, too few to share out. Where several processes run on
the same cores, as simulations do, threads that wait for each other take a hundred times as long.
And one thread sums in one order: results do not depend on the number of cores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np  # noqa: F401  (its library must be loaded to be found)
from threadpoolctl import ThreadpoolController

Given = ParamSpec("Given")
Result = TypeVar("Result")

_libraries = ThreadpoolController()


def one_thread(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorate a function whose linear algebra is to run on one thread."""
    wrapped: Callable[Given, Result] = _libraries.wrap(limits=1, user_api="blas")(function)
    return wrapped
