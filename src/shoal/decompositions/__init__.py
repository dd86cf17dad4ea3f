"""Anonymous decompositions (Sections 3.2 and 3.4): demand for feedback, met by assignments.

``decompose`` runs any of the methods, ``is_decomposition`` verifies what it returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import BoolArray
from shoal.decompositions.certificate import Certificate, is_decomposition
from shoal.decompositions.decomposition import Decomposition
from shoal.decompositions.demand import (
    checked_active,
    cluster_size,
    is_batched,
    serviceable,
    weights,
)
from shoal.decompositions.euler import euler_decomposition
from shoal.decompositions.greedy import greedy_decomposition
from shoal.decompositions.random import random_decomposition
from shoal.errors import UnknownNameError
from shoal.model.numbers import whole_number

__all__ = [
    "METHODS",
    "Certificate",
    "Decomposition",
    "cluster_size",
    "decompose",
    "euler_decomposition",
    "greedy_decomposition",
    "is_batched",
    "is_decomposition",
    "random_decomposition",
    "serviceable",
    "weights",
]


class Method(Protocol):
    """A way to decompose a demand; ``rng`` is used by those that draw."""

    def __call__(
        self, active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None
    ) -> Decomposition: ...


def decompose(
    active: ArrayLike,
    demand: int,
    *,
    min_crowd: int,
    method: str = "euler",
    rng: np.random.Generator | None = None,
) -> Decomposition:
    """Meet a demand for feedback by assignments of users to active arms.

    Every user gets at least demand/|active arms| informative assignments on each active arm:
    ones with at least ``min_crowd`` users on the arm.

    Parameters
    ----------
    active
        Each user's active arms, (n_users, n_arms); at least one each.
    demand
        Pieces of feedback that each user wants in all.
    min_crowd
        Users on an arm that make an assignment informative: C+1 for the paper's estimator, 2C
        for the pooled one.
    method
        One of ``METHODS``.
    rng
        For the methods that draw; a fixed stream if not given.

    Examples
    --------
    >>> decomposition = decompose([[True, True]] * 4, 10, min_crowd=2)
    >>> decomposition.total
    10
    >>> decompose([[True, True]] * 4, 10, min_crowd=5)
    Traceback (most recent call last):
    shoal.errors.DemandError: arm 0 must be wanted by at least min_crowd=5 users; got 4.
    """
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    return METHODS[method](
        checked_active(active),
        whole_number("demand", demand),
        min_crowd=whole_number("min_crowd", min_crowd),
        rng=rng,
    )


def _random(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None
) -> Decomposition:
    rng = np.random.default_rng(0) if rng is None else rng
    return random_decomposition(active, demand, min_crowd=min_crowd, rng=rng)


def _lp(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None
) -> Decomposition:
    from shoal.decompositions.lp import lp_decomposition

    return lp_decomposition(active, demand, min_crowd=min_crowd)


def _blocks(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None
) -> Decomposition:
    from shoal.decompositions.blocks import blocks_decomposition

    return blocks_decomposition(active, demand, min_crowd=min_crowd)


def _euler(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None
) -> Decomposition:
    return euler_decomposition(active, demand, min_crowd=min_crowd)


def _optimal(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None
) -> Decomposition:
    from shoal.decompositions.optimal import optimal_decomposition

    return optimal_decomposition(active, demand, min_crowd=min_crowd)


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "euler": _euler,
        "optimal": _optimal,
        "lp": _lp,
        "blocks": _blocks,
        "greedy": greedy_decomposition,
        "random": _random,
    }
)
