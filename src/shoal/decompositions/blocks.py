"""Block decomposition (Section 3.4.2, Lemma 6): arms in blocks that the clusters can fill.

Where C+1 ≤ U < K(C+1), blocks of at most U/(C+1) arms each, with ``min_crowd`` = C+1 and U the
graph's cluster size. In a block's turn, a user plays only its active arms in the block, evenly,
so that every arm of the block is informative in every assignment. The paper counts alpha =
ceil(K(C+1)/U) blocks; as a block holds whole arms, it takes ceil(K / floor(U/(C+1))), the same
number wherever C+1 divides U.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from shoal.arrays import BoolArray, LongArray
from shoal.decompositions.decomposition import Decomposition, concatenate, first_arms
from shoal.decompositions.demand import checked_crowds, cluster_size
from shoal.decompositions.lp import caratheodory, checked_loads, even_shares


def blocks_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None = None
) -> Decomposition:
    """Serve the arms block by block, each by the LP decomposition.

    Fewer assignments than one demand a block where no user wants the whole demand from one block.
    """
    checked_crowds(active, min_crowd)
    wanted_arms = np.flatnonzero(active.any(axis=0))
    width = max(1, cluster_size(active[:, wanted_arms]) // min_crowd)
    blocks = np.array_split(wanted_arms, -(-len(wanted_arms) // width))
    return concatenate([_serve(active, demand, block, min_crowd) for block in blocks])


def _serve(active: BoolArray, demand: int, block: LongArray, min_crowd: int) -> Decomposition:
    inside = np.zeros_like(active)
    inside[:, block] = active[:, block]
    busy = inside.any(axis=1)
    shares, total = even_shares(inside[busy])
    checked_loads(shares, total, min_crowd)
    block_assignments, steps = caratheodory(shares, total)
    assignments = np.tile(first_arms(active), (len(block_assignments), 1))
    assignments[:, busy] = block_assignments
    # A user wants demand/|active| of each arm and gets rounds/|inside|: the largest ratio decides.
    pairs = np.unique(np.stack([inside.sum(axis=1), active.sum(axis=1)]), axis=1).T.tolist()
    share = max(Fraction(n_inside, n_active) for n_inside, n_active in pairs)
    repeats = -(-demand * share.numerator * steps // (share.denominator * total))
    return Decomposition(assignments, repeats)
