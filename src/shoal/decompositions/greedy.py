"""Greedy decomposition (Section 3.4.1): one assignment an arm, with everyone who wants it."""

import numpy as np

from shoal.arrays import BoolArray
from shoal.decompositions.decomposition import Decomposition, first_arms, gather_users
from shoal.decompositions.demand import checked_crowds, required_samples
from shoal.decompositions.random import draw


def greedy_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None = None
) -> Decomposition:
    """Gather on each arm all users who want it, until each of them has its demand met.

    Users who do not want the arm play one that ``rng`` draws, or their first active arm without.
    """
    checked_crowds(active, min_crowd)
    repeats = np.where(active, required_samples(active, demand)[:, None], 0).max(axis=0)
    n_wanted = int((repeats > 0).sum())
    others = first_arms(active) if rng is None else draw(active, n_wanted, rng=rng)
    return gather_users(active, repeats, others)
