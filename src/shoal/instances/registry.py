"""Instance classes by name, for experiments and the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from shoal.arrays import FloatArray
from shoal.errors import UnknownNameError
from shoal.instances.synthetic import clustered, linear, uniform

INSTANCES: Final[dict[str, Callable[..., FloatArray]]] = {
    "uniform": uniform,
    "linear": linear,
    "clustered": clustered,
}


def instance(
    name: str,
    n_users: int,
    n_arms: int,
    *,
    rng: np.random.Generator,
    common: np.random.Generator | None = None,
) -> FloatArray:
    """Draw the means of a class by its name; what users share is drawn from ``common``, if given.

    >>> instance("linear", 50, 5, rng=np.random.default_rng(0)).shape
    (50, 5)
    >>> instance("liner", 50, 5, rng=np.random.default_rng(0))
    Traceback (most recent call last):
    shoal.errors.UnknownNameError: instance must be a known name; got 'liner': \
did you mean 'linear'?
    """
    if name not in INSTANCES:
        raise UnknownNameError("instance", name, INSTANCES)
    return INSTANCES[name](n_users, n_arms, rng=rng, common=common)
