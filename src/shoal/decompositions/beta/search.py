"""The open problem of Section 3.4.2: the smallest beta(G) over U-batched graphs.

The search goes through all graphs with K·U users, up to renaming arms and users, where those are
few; then, and else, it tries some candidates and anneals: a user's active arms change, a user comes
or goes, always within the U-batched graphs, and graphs of larger beta are accepted less and less.
The hardest graph is returned with its beta as a fraction and the proof of it.

``n_arms``, ``min_group_size`` and ``cluster_size`` are K, C and U.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from time import monotonic

import numpy as np

from shoal.arrays import BoolArray, LongArray
from shoal.decompositions.beta.graph_class import GraphClass
from shoal.decompositions.beta.max_beta import ENUMERATED_ARMS, max_beta
from shoal.decompositions.beta.proof import Proof, prove_beta
from shoal.errors import InvalidInputError
from shoal.model.numbers import whole_number

MOST_LISTED_GRAPHS = 200_000
"""The search is exhaustive where there are at most so many vectors of counts."""

RESTART_AFTER = 400
"""Graphs without a smaller beta before the annealing starts again."""

TEMPERATURE = 0.05
"""By how much more beta an accepted graph may have, at the start."""

SECONDS_BETWEEN_REPORTS = 0.5


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search is: its phase, graphs tried, the smallest beta so far, seconds spent."""

    phase: str
    n_tried: int
    beta: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class HardestGraph:
    """The U-batched graph with the smallest beta that a search has tried.

    Parameters
    ----------
    active
        Each user's active arms, (n_users, n_arms).
    proof
        Its beta in fractions, with the certificate.
    exhausted
        Whether all graphs with n_arms·cluster_size users were tried.
    n_tried
        Graphs tried, some of them more than once.
    guarantee
        The paper's lower bound on every beta, 1/alpha.
    """

    active: BoolArray
    proof: Proof
    exhausted: bool
    n_tried: int
    guarantee: Fraction


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

    Parameters
    ----------
    n_arms, min_group_size, cluster_size
        The class of graphs: K (2 to 5), C, and U of at least C+1.
    seconds, max_graphs
        Stop after this time, or after so many graphs.
    rng
        Draws the moves of the annealing.
    exact
        As in ``max_beta``: whether beta·w itself must lie in P_C, as the paper words it.
    on_progress
        Called at every smaller beta and about twice a second.

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
    whole_number("cluster_size", cluster_size, least=min_crowd)
    graphs = GraphClass(n_arms, cluster_size)
    end = monotonic() + seconds
    limit = np.inf if max_graphs is None else max_graphs
    search = _Search(graphs, min_crowd, exact, end, limit, on_progress)
    exhausted = search.exhaust()
    search.anneal(rng)
    return HardestGraph(
        active=np.repeat(graphs.patterns, search.hardest, axis=0),
        proof=prove_beta(graphs.graph(search.hardest, min_crowd), exact=exact),
        exhausted=exhausted,
        n_tried=search.n_tried,
        guarantee=Fraction(1, -(-n_arms * min_crowd // cluster_size)),
    )


class _Search:
    """The smallest beta so far, and the limits of the search."""

    def __init__(
        self,
        graphs: GraphClass,
        min_crowd: int,
        exact: bool,
        end: float,
        max_graphs: float,
        on_progress: Callable[[SearchProgress], None] | None,
    ) -> None:
        self.n_tried = 0
        self.beta = np.inf
        self.hardest: LongArray = np.zeros(len(graphs.patterns), np.int64)
        self._graphs, self._min_crowd, self._exact = graphs, min_crowd, exact
        self._max_graphs, self._on_progress = max_graphs, on_progress
        self._start, self._end, self._last_report = monotonic(), end, 0.0
        self._known: dict[bytes, float] = {}
        self._phase = "exhaustive"

    def exhaust(self) -> bool:
        """Try all graphs with the fewest users, if they are few; return whether it did."""
        if self._graphs.n_smallest() > MOST_LISTED_GRAPHS:
            return False
        for counts in self._graphs.smallest():
            if self._is_over():
                return False
            self._try(counts)
        return True

    def anneal(self, rng: np.random.Generator) -> None:
        """Walk from graph to graph until the time is over; start again when stuck."""
        self._phase = "annealing"
        for counts in self._graphs.candidate_graphs():
            if not self._is_over():
                self._try(counts)
        while not self._is_over():
            counts = self.hardest if rng.random() < 0.5 else self._graphs.random(rng)
            beta, smallest, idle = self._try(counts), np.inf, 0
            while idle < RESTART_AFTER and not self._is_over():
                idle += 1
                moved = self._graphs.neighbour(counts, rng)
                if not self._graphs.contains(moved):
                    continue
                value = self._try(moved)
                if value <= beta + TEMPERATURE * rng.random() * (1 - idle / RESTART_AFTER):
                    counts, beta = moved, value
                if value < smallest - 1e-9:
                    smallest, idle = value, 0

    def _try(self, counts: LongArray) -> float:
        counts = self._graphs.canonical(counts)
        key = counts.tobytes()
        if key not in self._known:
            active = np.repeat(self._graphs.patterns, counts, axis=0)
            self._known[key] = max_beta(active, min_crowd=self._min_crowd, exact=self._exact).beta
        self.n_tried += 1
        beta = self._known[key]
        smaller = beta < self.beta - 1e-9
        if smaller:
            self.beta, self.hardest = beta, counts
        self._report(always=smaller)
        return beta

    def _is_over(self) -> bool:
        spent = self.n_tried >= self._max_graphs or monotonic() > self._end
        return self.n_tried > 0 and spent

    def _report(self, *, always: bool) -> None:
        seconds = monotonic() - self._start
        if self._on_progress and (always or seconds - self._last_report > SECONDS_BETWEEN_REPORTS):
            self._last_report = seconds
            self._on_progress(SearchProgress(self._phase, self.n_tried, self.beta, seconds))
