"""The open problem of Section 3.4.2: the smallest beta(G) over U-batched graphs.

It is K/(2K-1) for U = C+1, and docs/theory.md has a bound for larger U, which the search can only
confirm or miss.

The search tries some candidates, goes through all graphs with K·U users, up to renaming arms and
users, where those are few, and then anneals: a user's active arms change, a user comes
or goes, always within the U-batched graphs, and graphs of larger beta are accepted less and less.
The hardest graph is returned with its beta as a fraction and the proof of it.

``n_arms``, ``min_group_size`` and ``cluster_size`` are K, C and U.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, permutations
from math import comb
from time import monotonic

import numpy as np

from shoal.arrays import BoolArray, LongArray
from shoal.decompositions.beta.max_beta import ENUMERATED_ARMS, max_beta
from shoal.decompositions.beta.open_sets import fillable_sets
from shoal.decompositions.beta.proof import Proof, prove_beta
from shoal.decompositions.demand import BatchedGraph
from shoal.errors import InvalidInputError
from shoal.model.numbers import whole_number

MAX_LISTED_GRAPHS = 200_000
"""The search is exhaustive where there are at most so many vectors of counts."""

RESTART_AFTER = 400
"""Graphs without a smaller beta before the annealing starts again."""

TEMPERATURE = 0.05
"""By how much more beta an accepted graph may have, at the start."""


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search is: its phase, graphs tried, the smallest beta so far, seconds spent."""

    phase: str
    n_tried: int
    beta: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class HardestGraph:
    """The U-batched graph with the smallest beta that a search has tried."""

    active: BoolArray  # (n_users, n_arms)
    proof: Proof  # its beta in fractions, with the certificate
    exhausted: bool  # whether all graphs with n_arms·cluster_size users were tried
    n_tried: int  # some of them more than once
    guarantee: Fraction  # the paper's lower bound on every beta, 1/alpha
    proved: Fraction  # the lower bound of docs/theory.md


def hardest_graph(
    n_arms: int,
    min_group_size: int,
    cluster_size: int,
    *,
    seconds: float,
    rng: np.random.Generator,
    exact: bool = False,
    max_graphs: int | None = None,
    on_progress: Callable[[SearchProgress], None] | None = None,
) -> HardestGraph:
    """Search for the U-batched graph with the smallest beta.

    K is 2 to 5 and U at least C+1; ``exact`` is as in ``max_beta``. Stops after ``seconds`` or
    ``max_graphs``; ``on_progress`` is called after every graph.

    Examples
    --------
    >>> hardest = hardest_graph(2, 1, 2, seconds=60, rng=np.random.default_rng(0), max_graphs=200)
    >>> hardest.proof.lower, hardest.guarantee
    (Fraction(2, 3), Fraction(1, 2))
    """
    if not 2 <= whole_number("n_arms", n_arms) <= ENUMERATED_ARMS:
        raise InvalidInputError(
            f"n_arms must be between 2 and {ENUMERATED_ARMS} for an exact search; got {n_arms}."
        )
    min_crowd = whole_number("min_group_size", min_group_size) + 1
    whole_number("cluster_size", cluster_size, minimum=min_crowd)
    graphs = _GraphClass(n_arms, cluster_size)
    limit = np.inf if max_graphs is None else max_graphs
    search = _Search(graphs, min_crowd, exact, seconds, limit, on_progress)
    search.try_candidates()
    exhausted = search.exhaust()
    search.anneal(rng)
    return HardestGraph(
        active=np.repeat(graphs.patterns, search.hardest, axis=0),
        proof=prove_beta(graphs.graph(search.hardest, min_crowd), exact=exact),
        exhausted=exhausted,
        n_tried=search.n_tried,
        guarantee=Fraction(1, -(-n_arms * min_crowd // cluster_size)),
        proved=least_beta(n_arms, min_crowd, cluster_size),
    )


def least_beta(n_arms: int, min_crowd: int, cluster_size: int) -> Fraction:
    """Return the proven lower bound on beta of every U-batched graph, for covering points.

    With s = crowd/U it is 1/(s + 1 - 1/K) for K ≥ 4, and for K = 3 if s ≤ 5/6, else
    (2s + 1)/(6s - 1); for K = 2 it is the smallest beta itself, with (crowd-1)/(U-1) for s.

    >>> [str(least_beta(n_arms, 2, 2)) for n_arms in (2, 3, 4)]
    ['2/3', '3/5', '4/7']
    >>> least_beta(5, 3, 4), least_beta(2, 3, 4), least_beta(4, 2, 8), least_beta(3, 9, 10)
    (Fraction(20, 31), Fraction(6, 7), Fraction(1, 1), Fraction(7, 11))
    """
    share = Fraction(min_crowd, cluster_size)
    if n_arms == 2 and min_crowd > 1:
        share = max(Fraction(min_crowd - 1, cluster_size - 1), Fraction(1, 2))
    elif n_arms == 3 and share > Fraction(5, 6):
        return (2 * share + 1) / (6 * share - 1)
    return 1 / (max(share, Fraction(1, n_arms)) + 1 - Fraction(1, n_arms))


@dataclass
class _Search:
    """The smallest beta so far, and the limits of the search."""

    graphs: _GraphClass
    min_crowd: int
    exact: bool
    seconds: float
    max_graphs: float
    on_progress: Callable[[SearchProgress], None] | None
    hardest: LongArray = field(default_factory=lambda: np.zeros(0, np.int64))
    beta: float = np.inf
    n_tried: int = 0
    phase: str = ""
    start: float = field(default_factory=monotonic)
    known: dict[bytes, float] = field(default_factory=dict)

    def try_candidates(self) -> None:
        """Try the graphs that are likely to be hard; the hardest known is one of them."""
        self.phase = "candidates"
        for counts in self.graphs.candidate_graphs():
            if not self._is_over():
                self._try(counts)

    def exhaust(self) -> bool:
        """Try all graphs with the fewest users, if they are few; return whether it did."""
        graphs, self.phase = self.graphs, "exhaustive"
        if comb(graphs.min_users + len(graphs.patterns) - 1, graphs.min_users) > MAX_LISTED_GRAPHS:
            return False
        for counts in graphs.smallest():
            if self._is_over():
                return False
            self._try(counts)
        return True

    def anneal(self, rng: np.random.Generator) -> None:
        """Walk from graph to graph until the time is over; start again when stuck."""
        self.phase = "annealing"
        while not self._is_over():
            counts = self.hardest if rng.random() < 0.5 else self.graphs.random(rng)
            beta, smallest, idle = self._try(counts), np.inf, 0
            while idle < RESTART_AFTER and not self._is_over():
                idle += 1
                moved = self.graphs.neighbour(counts, rng)
                if not self.graphs.contains(moved):
                    continue
                value = self._try(moved)
                if value <= beta + TEMPERATURE * rng.random() * (1 - idle / RESTART_AFTER):
                    counts, beta = moved, value
                if value < smallest - 1e-9:
                    smallest, idle = value, 0

    def _try(self, counts: LongArray) -> float:
        counts = self.graphs.canonical(counts)
        key = counts.tobytes()
        if key not in self.known:
            active = np.repeat(self.graphs.patterns, counts, axis=0)
            self.known[key] = max_beta(active, min_crowd=self.min_crowd, exact=self.exact).beta
        self.n_tried += 1
        beta = self.known[key]
        if beta < self.beta - 1e-9:
            self.beta, self.hardest = beta, counts
        if self.on_progress:
            seconds = monotonic() - self.start
            self.on_progress(SearchProgress(self.phase, self.n_tried, self.beta, seconds))
        return beta

    def _is_over(self) -> bool:
        spent = self.n_tried >= self.max_graphs or monotonic() - self.start > self.seconds
        return self.n_tried > 0 and spent


class _GraphClass:
    """The U-batched graphs: each arm can have ``cluster_size`` users at once.

    A graph is a vector of counts: how many users have each non-empty set of active arms.
    """

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

    def smallest(self) -> Iterator[LongArray]:
        """Yield all graphs with ``min_users`` users, one for all that differ in names alone."""
        n_bars = len(self.patterns) - 1
        n_places = self.min_users + n_bars
        for bars in combinations(range(n_places), n_bars):  # stars and bars: all counts
            counts = np.diff([-1, *bars, n_places]) - 1
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
