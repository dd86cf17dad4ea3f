"""When batches end: the static grids of batched bandits (Section 2.2; Gao et al., 2019).

With T the ``horizon`` and B the ``n_batches``, the minimax grid is u_1 = a, u_b = a·sqrt(u_{b-1})
with a = T^(1/(2 - 2^(1-B))), and the geometric grid is u_b = T^(b/B). Both end at T whatever is
observed, so that many instances can run side by side in step.
"""

import math

import numpy as np

from shoal.arrays import LongArray
from shoal.errors import UnknownNameError
from shoal.model.numbers import whole_number


def _minimax(horizon: int, n_batches: int) -> list[float]:
    a = horizon ** (1 / (2 - 2 ** (1 - n_batches)))
    ends = [a]
    for _ in range(n_batches - 1):
        ends.append(a * math.sqrt(ends[-1]))
    return ends


def _geometric(horizon: int, n_batches: int) -> list[float]:
    return [horizon ** (b / n_batches) for b in range(1, n_batches + 1)]


GRIDS = {"minimax": _minimax, "geometric": _geometric}


def batch_ends(horizon: int, n_batches: int, *, grid: str = "minimax") -> LongArray:
    """Return the last round of each batch, rounded down; the last one is ``horizon``.

    Ends that coincide after rounding are kept once, so a short horizon has fewer batches.

    >>> batch_ends(10_000, 3).tolist()
    [193, 2682, 10000]
    >>> batch_ends(10_000, 4, grid="geometric").tolist()
    [10, 100, 1000, 10000]
    """
    if grid not in GRIDS:
        raise UnknownNameError("grid", grid, GRIDS)
    exact = GRIDS[grid](whole_number("horizon", horizon), whole_number("n_batches", n_batches))
    # The small push undoes float error where the exact end is a whole number.
    ends = np.floor(np.array(exact) * (1 + 1e-12)).astype(np.int64)
    ends[-1] = horizon
    return np.unique(ends[(ends >= 1) & (ends <= horizon)])


def default_batches(horizon: int, *, grid: str = "minimax") -> int:
    """Return round(log2 T) for the geometric grid, round(log2 log2 T) for the minimax grid.

    The minimax grid has at least 2: one batch to explore, one to commit.

    >>> default_batches(100_000), default_batches(100_000, grid="geometric")
    (4, 17)
    """
    if grid == "geometric":
        return round(math.log2(horizon + 1))
    return max(2, round(math.log2(max(2.0, math.log2(max(2, horizon))))))
