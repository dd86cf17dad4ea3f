"""Demand for feedback: batched and U-batched graphs (Section 3.2).

A batched graph is a set of active arms A_i per user, ``active`` (n_users, n_arms), and a total
``demand`` D per user: user i wants D/|A_i| pieces of feedback on each active arm. It is U-batched
for U = ``cluster_size`` if some assignment of users to active arms gives every arm U users.

Users with the same active arms are one type. What is asked about the graph alone is answered on
types, whose number is free of the number of users.
"""

from bisect import bisect
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import BoolArray, LongArray
from shoal.errors import DemandError, InvalidInputError
from shoal.frames import as_array
from shoal.model.numbers import whole_number


class BatchedGraph(NamedTuple):
    """Who wants which arms, and how many users on an arm make an assignment informative."""

    patterns: BoolArray  # the active arms of each type of users, (n_types, n_arms)
    counts: LongArray  # users of each type, (n_types,)
    min_crowd: int


def serviceable(active: ArrayLike, min_crowd: int) -> BoolArray:
    """Return ``active`` without the arms that fewer than ``min_crowd`` users want.

    No assignment can be informative on those. Rows may become empty.
    """
    matrix: BoolArray = np.asarray(active, bool)
    popular: BoolArray = matrix.sum(axis=0) >= min_crowd
    return matrix & popular


def is_batched(active: ArrayLike, cluster_size: int) -> bool:
    """Tell whether users can be assigned to active arms with ``cluster_size`` on every arm.

    A maximum flow from types of users to arms, exact.

    >>> is_batched([[True, True], [True, True], [True, False]], 1)
    True
    >>> is_batched([[True, False], [True, False], [True, True]], 2)
    False
    """
    graph, _ = batched_graph(checked_active(active), whole_number("cluster_size", cluster_size))
    return _flow_fills(graph)


def cluster_size(active: ArrayLike) -> int:
    """Return the largest U for which the graph is U-batched, 0 if there is none.

    >>> cluster_size([[True, True], [True, True], [True, False], [True, False]])
    2
    """
    matrix = checked_active(active)
    graph, _ = batched_graph(matrix, 1)
    max_size = min(int(matrix.sum(axis=0).min()), len(matrix) // matrix.shape[1])
    # The number of sizes that fill: where one does not, no larger one does.
    sizes = range(1, max_size + 1)
    return bisect(sizes, 0, key=lambda size: not _flow_fills(graph._replace(min_crowd=size)))


def batched_graph(active: BoolArray, min_crowd: int) -> tuple[BatchedGraph, LongArray]:
    """Return the graph with its users gathered in types, and each user's type, (n_users,)."""
    packed = np.packbits(active, axis=1)  # (n_users, n_bytes)
    n_bytes = 1 << (packed.shape[1] - 1).bit_length()
    padded = np.zeros((len(active), n_bytes), np.uint8)
    padded[:, : packed.shape[1]] = packed
    # One integer a user, as short as possible, sorts far faster than a row of truth values. The
    # byte order fixes the order of the types, which decides among equal optima of a program.
    key = {1: "u1", 2: ">u2", 4: "u4", 8: "u8"}.get(n_bytes, f"V{n_bytes}")
    keys = padded.view(key).ravel().astype(key.lstrip(">"))
    _, first, of_user, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    return BatchedGraph(active[first], counts, min_crowd), of_user


def checked_active(active: ArrayLike) -> BoolArray:
    """Return ``active`` as a matrix of truth values, refusing a user without an active arm."""
    matrix = as_array("active", active)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidInputError(f"active must have shape (n_users, n_arms); got {matrix.shape}.")
    if matrix.dtype != np.bool_ and not np.isin(matrix, (0, 1)).all():
        raise InvalidInputError(f"active must hold truth values; got dtype {matrix.dtype}.")
    matrix = matrix.astype(np.bool_, copy=False)
    has_arms = matrix.any(axis=1)
    if not has_arms.all():
        user = int(has_arms.argmin())
        raise InvalidInputError(f"active[{user}] must have at least one active arm; got none.")
    return matrix


def checked_crowds(active: BoolArray, min_crowd: int) -> None:
    """Refuse a demand for an arm that too few users want for any assignment to be informative."""
    n_wanting = active.sum(axis=0)
    short = (n_wanting > 0) & (n_wanting < min_crowd)
    if short.any():
        arm = int(short.argmax())
        raise DemandError(
            f"arm {arm} must be wanted by at least min_crowd={min_crowd} users; "
            f"got {n_wanting[arm]}."
        )


def required_samples(active: BoolArray, demand: int) -> LongArray:
    """Return the informative assignments that each user needs on each active arm, (n_users,)."""
    sizes: LongArray = active.sum(axis=1)
    return -(-demand // sizes)


def _flow_fills(graph: BatchedGraph) -> bool:
    """Tell whether every arm can have ``min_crowd`` users at once."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    patterns, counts, min_crowd = graph
    n_types, n_arms = patterns.shape
    if min_crowd * n_arms > counts.sum():
        return False
    kind, arm = np.nonzero(patterns)
    source, sink = n_types + n_arms, n_types + n_arms + 1
    tails = np.concatenate([np.full(n_types, source), kind, n_types + np.arange(n_arms)])
    heads = np.concatenate([np.arange(n_types), n_types + arm, np.full(n_arms, sink)])
    capacities = np.concatenate([counts, counts[kind], np.full(n_arms, min_crowd)])
    flows = coo_array((capacities.astype(np.int32), (tails, heads)), shape=(sink + 1, sink + 1))
    return bool(maximum_flow(flows.tocsr(), source, sink).flow_value == min_crowd * n_arms)
