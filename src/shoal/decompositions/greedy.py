"""Greedy decomposition (Section 3.4.1): one assignment an arm, with everyone who wants it.

Section 3.4.1 prints D copies of each arm's assignment. Appendix B goes through the arms "until all
the demand is met", which takes no more than the largest ceil(D/|A_i|) of those who want the arm.
"""

import numpy as np

from shoal.arrays import BoolArray, LongArray
from shoal.decompositions.decomposition import Decomposition, first_arms, gather_users
from shoal.decompositions.demand import checked_crowds, required_samples
from shoal.decompositions.random import draw


def greedy_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None = None
) -> Decomposition:
    """Gather on each arm all users who want it, until each of them has its demand met (Appendix B).

    Users who do not want the arm play one that ``rng`` draws, or their first active arm without.
    """
    checked_crowds(active, min_crowd)
    return _gather(active, np.where(active, required_samples(active, demand)[:, None], 0), rng)


def printed_greedy_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None = None
) -> Decomposition:
    """Gather on each arm all users who want it, ``demand`` times (Section 3.4.1 as printed)."""
    checked_crowds(active, min_crowd)
    return _gather(active, np.where(active, demand, 0), rng)


def _gather(
    active: BoolArray, samples: LongArray, rng: np.random.Generator | None
) -> Decomposition:
    """Play each arm as often as the largest of its ``samples``, (n_users, n_arms)."""
    repeats = samples.max(axis=0)
    n_wanted = int((repeats > 0).sum())
    others = first_arms(active) if rng is None else draw(active, n_wanted, rng=rng)
    return gather_users(active, repeats, others)
