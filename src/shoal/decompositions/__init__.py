"""Anonymous decompositions (Sections 3.2 and 3.4): demand for feedback, met by assignments.

``decompose`` runs any of the methods, ``is_decomposition`` verifies what it returns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shoal.decompositions.certificate import Certificate, is_decomposition
from shoal.decompositions.decomposition import Decomposition
from shoal.decompositions.demand import checked_active, cluster_size, is_batched, serviceable
from shoal.decompositions.euler import euler_decomposition
from shoal.decompositions.greedy import greedy_decomposition
from shoal.decompositions.methods import METHODS, Method
from shoal.decompositions.random import random_decomposition
from shoal.errors import UnknownNameError
from shoal.model.numbers import whole_number

__all__ = [
    "METHODS",
    "Certificate",
    "Decomposition",
    "Method",
    "cluster_size",
    "decompose",
    "euler_decomposition",
    "greedy_decomposition",
    "is_batched",
    "is_decomposition",
    "random_decomposition",
    "serviceable",
]


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
    return METHODS[method].decompose(
        checked_active(active),
        whole_number("demand", demand),
        min_crowd=whole_number("min_crowd", min_crowd),
        rng=rng,
    )
