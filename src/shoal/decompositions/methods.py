"""The decomposition methods by name, with what each guarantees.

All methods have the parameters of ``decompose``, and all refuse an arm that fewer than
``min_crowd`` users want. N, K, D, C and U are n_users, n_arms, the demand, min_crowd - 1 and the
cluster size.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import BoolArray
from shoal.decompositions.decomposition import Decomposition
from shoal.decompositions.demand import checked_active
from shoal.decompositions.euler import euler_decomposition
from shoal.decompositions.greedy import greedy_decomposition, printed_greedy_decomposition
from shoal.decompositions.home_away import home_away_decomposition
from shoal.decompositions.lp import blocks_decomposition, lp_decomposition
from shoal.decompositions.optimal import optimal_decomposition
from shoal.decompositions.random import random_decomposition
from shoal.errors import UnknownNameError
from shoal.model.numbers import generator, whole_number


class Decompose(Protocol):
    """The signature of all methods."""

    def __call__(
        self, active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None
    ) -> Decomposition:
        """Meet a demand by assignments; ``rng`` is used by the methods that draw."""
        ...


class Method(NamedTuple):
    """A method, the most assignments that it needs, and when it refuses a demand."""

    decompose: Decompose
    most_assignments: str
    refuses: str = ""


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "euler": Method(
            euler_decomposition, "a block: D + K·ceil(D/256); no more blocks than the paper"
        ),
        "home-away": Method(
            home_away_decomposition,
            "9·D + 71·K if U ≥ C+1, measured about (2 − 1/K)·D; never more than euler",
        ),
        "optimal": Method(
            optimal_decomposition,
            "D/beta, the fewest, up to rounding",
            refuses="a graph whose largest beta can't be proven within 60 s",
        ),
        "lp": Method(
            lp_decomposition,
            "D + N·K + 1",
            refuses="an arm whose mean load is below min_crowd",
        ),
        "blocks": Method(
            blocks_decomposition, "a block of k arms: D + N·k + 1; ceil(K / floor(U/(C+1))) blocks"
        ),
        "greedy": Method(greedy_decomposition, "K·D"),
        "greedy-printed": Method(
            printed_greedy_decomposition, "K·D exactly, if all arms are wanted"
        ),
        "random": Method(
            random_decomposition,
            "K·(4·D + 64)",
            refuses="a demand that this many random assignments do not meet",
        ),
    }
)


def decompose(
    active: ArrayLike,
    demand: int,
    *,
    min_crowd: int,
    method: str = "euler",
    rng: np.random.Generator | None = None,
) -> Decomposition:
    """Meet a demand for feedback by assignments of users to active arms.

    Every user gets at least ``demand / |active arms|`` informative assignments on each active arm:
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
        rng=None if rng is None else generator("rng", rng),
    )
