"""Greedy decomposition (Section 3.4.1): one assignment an arm, with everyone who wants it.

Needs at most K·D assignments, whenever each wanted arm is wanted by ``min_crowd`` users.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray
from shoal.decompositions.decomposition import Decomposition, arm_dtype
from shoal.decompositions.demand import checked_crowds, needed
from shoal.decompositions.random import draw


def greedy_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None = None
) -> Decomposition:
    """Gather on each arm all users who want it, until the hungriest of them is served.

    Parameters
    ----------
    active, demand, min_crowd
        As in ``decompose``.
    rng
        Draws the arms of users who do not want the gathered arm; each one's first active arm if
        not given.
    """
    checked_crowds(active, min_crowd)
    need = needed(active, demand)
    arms = np.flatnonzero(active.any(axis=0))
    if rng is None:
        others = active.argmax(axis=1).astype(arm_dtype(active.shape[1]))[None]
    else:
        others = draw(active, len(arms), rng=rng)
    assignments = np.where(active[:, arms].T, arms[:, None].astype(others.dtype), others)
    repeats = np.array([need[active[:, arm]].max() for arm in arms], np.int64)
    return Decomposition(assignments, repeats)
