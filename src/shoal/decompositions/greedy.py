"""Greedy decomposition (Section 3.4.1): one assignment an arm, with everyone who wants it."""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray
from shoal.decompositions.decomposition import Decomposition, arm_dtype
from shoal.decompositions.demand import checked_crowds, needed
from shoal.decompositions.random import draw


def greedy_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None = None
) -> Decomposition:
    """Gather on each arm all users who want it, until each of them has its demand met.

    Users who do not want the arm play one that ``rng`` draws, or their first active arm without.
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
