"""The U-batched graphs with K arms, up to renaming arms and users: how to list and vary them.

A graph is a vector of counts: how many users have each non-empty set of active arms.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from math import comb

import numpy as np

from shoal.arrays import LongArray
from shoal.decompositions.beta.open_sets import fillable_sets
from shoal.decompositions.demand import BatchedGraph


class GraphClass:
    """All graphs in which every of ``n_arms`` arms can have ``cluster_size`` users at once."""

    def __init__(self, n_arms: int, cluster_size: int) -> None:
        codes = np.arange(1, 1 << n_arms)
        self.n_arms, self.cluster_size = n_arms, cluster_size
        self.patterns = (codes[:, None] >> np.arange(n_arms) & 1).astype(np.bool_)
        self.min_users = n_arms * cluster_size
        self._renamings = np.array(
            [
                (self.patterns[:, order] @ (1 << np.arange(n_arms))) - 1
                for order in permutations(range(n_arms))
            ]
        )

    def graph(self, counts: LongArray, min_crowd: int) -> BatchedGraph:
        """Return the graph with these counts, without the types that have no users."""
        used = counts > 0
        return BatchedGraph(self.patterns[used], counts[used], min_crowd)

    def canonical(self, counts: LongArray) -> LongArray:
        """Return the same graph with its arms renamed, one for all that differ in names alone."""
        renamed = counts[self._renamings]
        first: LongArray = renamed[np.lexsort(renamed.T[::-1])[0]]
        return first

    def contains(self, counts: LongArray) -> bool:
        """Tell whether a graph is U-batched."""
        graph = self.graph(counts, self.cluster_size)
        if not graph.patterns.any(axis=0).all():
            return False
        sets = fillable_sets(graph)
        return bool(len(sets)) and bool(sets[-1].all())

    def n_smallest(self) -> int:
        """Return how many vectors of counts have ``min_users`` users."""
        n_patterns = len(self.patterns)
        return comb(self.min_users + n_patterns - 1, self.min_users)

    def smallest(self) -> Iterator[LongArray]:
        """Yield all graphs with ``min_users`` users, one for all that differ in names alone."""
        for counts in _compositions(self.min_users, len(self.patterns)):
            if (self.canonical(counts) == counts).all() and self.contains(counts):
                yield counts

    def candidate_graphs(self) -> Iterator[LongArray]:
        """Yield graphs in which few undecided users must keep company to lone decided ones.

        Some arms have a few users who want nothing else; the rest of their clusters want all
        arms, all such arms, or their own and the other arms. The other arms' clusters want
        nothing else.
        """
        all_arms = (1 << self.n_arms) - 1
        for n_thin in range(1, self.n_arms + 1):
            thin = (1 << n_thin) - 1
            for n_lone in range(self.cluster_size + 1):
                for others in (all_arms, thin, all_arms & ~thin):
                    counts = np.zeros(len(self.patterns), np.int64)
                    for arm in range(self.n_arms):
                        n_decided = n_lone if arm < n_thin else self.cluster_size
                        counts[(1 << arm) - 1] += n_decided
                        counts[(others | 1 << arm) - 1] += self.cluster_size - n_decided
                    yield counts

    def random(self, rng: np.random.Generator) -> LongArray:
        """Return ``cluster_size`` users for each arm, with random other arms."""
        home = np.repeat(np.arange(self.n_arms), self.cluster_size)
        codes = 1 << self.n_arms
        others = rng.integers(0, codes, len(home)) & rng.integers(0, codes, len(home))
        return np.bincount((others | 1 << home) - 1, minlength=len(self.patterns))

    def neighbour(self, counts: LongArray, rng: np.random.Generator) -> LongArray:
        """Change a user's active arms, or let a user come or go; it may leave the class."""
        moved = counts.copy()
        n_users = counts.sum()
        draw = rng.random()
        if draw < 0.8 or n_users > 2 * self.min_users:
            moved[rng.choice(len(counts), p=counts / n_users)] -= 1
        if draw < 0.7 or draw > 0.8:
            moved[rng.integers(len(counts))] += 1
        return moved


def _compositions(total: int, n_parts: int) -> Iterator[LongArray]:
    """Yield all vectors of ``n_parts`` counts that sum to ``total``: stars and bars."""
    for bars in combinations(range(total + n_parts - 1), n_parts - 1):
        yield np.diff([-1, *bars, total + n_parts - 1]) - 1
