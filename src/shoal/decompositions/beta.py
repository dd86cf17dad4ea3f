"""The open problem of Section 3.4.2: the smallest beta(G) over U-batched graphs.

The search goes through all graphs with K·U users, up to renaming arms and users, where those are
few; then, and else, it tries some suspects and anneals: a user's active arms change, a user comes
or goes, always within the U-batched graphs, and graphs of larger beta are accepted less and less.
The hardest graph found is returned with its beta as a fraction and the proof of it.

``n_arms``, ``min_group_size`` and ``cluster_size`` are K, C and U.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, permutations
from math import comb
from time import monotonic

import numpy as np

from shoal.arrays import BoolArray, LongArray
from shoal.decompositions.optimum import ENUMERATED_ARMS, optimum
from shoal.decompositions.pricing import fillable_sets
from shoal.decompositions.proof import Proof, prove_beta
from shoal.errors import InvalidInputError
from shoal.model.numbers import whole_number

_FEW_GRAPHS = 200_000
_PATIENCE = 400  # graphs without a better one before the annealing starts afresh
_WARMTH = 0.05  # beta that a worse graph may have more, at the start


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is: its phase, graphs tried, the smallest beta so far, seconds spent."""

    phase: str
    n_tried: int
    beta: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class HardestGraph:
    """The U-batched graph with the smallest beta that a search found.

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
    on_progress: Callable[[Progress], None] | None = None,
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
        As in ``optimum``: whether beta·w itself must lie in P_C, as the paper words it.
    on_progress
        Called with a ``Progress`` at every better graph and about twice a second.

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
    search = _Search(n_arms, min_crowd, cluster_size, seconds, exact, max_graphs, on_progress)
    exhausted = search.exhaust()
    search.anneal(rng)
    counts = search.hardest
    used = counts > 0
    return HardestGraph(
        active=np.repeat(search.patterns, counts, axis=0),
        proof=prove_beta(search.patterns[used], counts[used], min_crowd=min_crowd, exact=exact),
        exhausted=exhausted,
        n_tried=search.n_tried,
        guarantee=Fraction(1, -(-n_arms * min_crowd // cluster_size)),
    )


class _Search:
    """A graph is a vector of counts, one for each non-empty set of active arms."""

    def __init__(
        self,
        n_arms: int,
        min_crowd: int,
        cluster_size: int,
        seconds: float,
        exact: bool,
        max_graphs: int | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        codes = np.arange(1, 1 << n_arms)
        self.patterns = (codes[:, None] >> np.arange(n_arms) & 1).astype(np.bool_)
        self.n_tried = 0
        self.beta = np.inf
        self.hardest: LongArray = np.zeros(len(codes), np.int64)
        self._renamings = np.array(
            [
                (self.patterns[:, order] @ (1 << np.arange(n_arms))) - 1
                for order in permutations(range(n_arms))
            ]
        )
        self._min_crowd, self._cluster_size, self._exact = min_crowd, cluster_size, exact
        self._max_graphs, self._on_progress = max_graphs, on_progress
        self._start, self._seconds, self._reported = monotonic(), seconds, 0.0
        self._known: dict[bytes, float] = {}
        self._phase = "exhaustive"

    def exhaust(self) -> bool:
        """Try all graphs with n_arms·cluster_size users, if they are few; tell whether it did."""
        n_users = self.patterns.shape[1] * self._cluster_size
        if comb(n_users + len(self.patterns) - 1, n_users) > _FEW_GRAPHS:
            return False
        for counts in _compositions(n_users, len(self.patterns)):
            if self._over():
                return False
            if (self._canonical(counts) == counts).all() and self._is_batched(counts):
                self._try(counts)
        return True

    def anneal(self, rng: np.random.Generator) -> None:
        """Walk from graph to graph until the time is over; start afresh when stuck."""
        self._phase = "annealing"
        for counts in self._suspects():
            if not self._over():
                self._try(counts)
        while not self._over():
            counts = self.hardest if rng.random() < 0.5 else self._random_graph(rng)
            beta, least, idle = self._try(counts), np.inf, 0
            while idle < _PATIENCE and not self._over():
                idle += 1
                moved = self._move(counts, rng)
                if not self._is_batched(moved):
                    continue
                value = self._try(moved)
                if value <= beta + _WARMTH * rng.random() * (1 - idle / _PATIENCE):
                    counts, beta = moved, value
                if value < least - 1e-9:
                    least, idle = value, 0

    def _suspects(self) -> Iterator[LongArray]:
        """Yield graphs in which few undecided users must keep company to lone decided ones.

        Some arms have a few users who want nothing else; the rest of their clusters want all
        arms, all such arms, or their own and the other arms. The other arms' clusters want
        nothing else.
        """
        n_arms = self.patterns.shape[1]
        everything = (1 << n_arms) - 1
        for n_thin in range(1, n_arms + 1):
            thin = (1 << n_thin) - 1
            for n_lone in range(self._cluster_size + 1):
                for wanted in (everything, thin, everything & ~thin):
                    counts = np.zeros(len(self.patterns), np.int64)
                    for arm in range(n_arms):
                        n_decided = n_lone if arm < n_thin else self._cluster_size
                        counts[(1 << arm) - 1] += n_decided
                        counts[(wanted | 1 << arm) - 1] += self._cluster_size - n_decided
                    yield counts

    def _random_graph(self, rng: np.random.Generator) -> LongArray:
        """Return cluster_size users for each arm, with random other arms."""
        n_arms = self.patterns.shape[1]
        own = np.repeat(np.arange(n_arms), self._cluster_size)
        others = rng.integers(0, 1 << n_arms, len(own)) & rng.integers(0, 1 << n_arms, len(own))
        return np.bincount((others | 1 << own) - 1, minlength=len(self.patterns))

    def _move(self, counts: LongArray, rng: np.random.Generator) -> LongArray:
        moved = counts.copy()
        n_users, n_least = counts.sum(), self.patterns.shape[1] * self._cluster_size
        kind = rng.random()
        leaves = kind < 0.8 or n_users > 2 * n_least
        comes = kind < 0.7 or kind > 0.8
        if leaves:
            moved[rng.choice(len(counts), p=counts / n_users)] -= 1
        if comes:
            moved[rng.integers(len(counts))] += 1
        return moved

    def _is_batched(self, counts: LongArray) -> bool:
        used = counts > 0
        if not self.patterns[used].any(axis=0).all():
            return False
        sets = fillable_sets(self.patterns[used], counts[used], self._cluster_size)
        return bool(len(sets)) and bool(sets[-1].all())

    def _canonical(self, counts: LongArray) -> LongArray:
        renamed = counts[self._renamings]
        first: LongArray = renamed[np.lexsort(renamed.T[::-1])[0]]
        return first

    def _try(self, counts: LongArray) -> float:
        counts = self._canonical(counts)
        key = counts.tobytes()
        if key not in self._known:
            active = np.repeat(self.patterns, counts, axis=0)
            self._known[key] = optimum(active, min_crowd=self._min_crowd, exact=self._exact).beta
        self.n_tried += 1
        beta = self._known[key]
        better = beta < self.beta - 1e-9
        if better:
            self.beta, self.hardest = beta, counts
        self._report(always=better)
        return beta

    def _over(self) -> bool:
        spent = self._max_graphs is not None and self.n_tried >= self._max_graphs
        return self.n_tried > 0 and (spent or monotonic() - self._start > self._seconds)

    def _report(self, *, always: bool) -> None:
        seconds = monotonic() - self._start
        if self._on_progress and (always or seconds - self._reported > 0.5):
            self._reported = seconds
            self._on_progress(Progress(self._phase, self.n_tried, self.beta, seconds))


def _compositions(total: int, n_parts: int) -> Iterator[LongArray]:
    """Yield all vectors of ``n_parts`` whole numbers that sum to ``total``: stars and bars."""
    for bars in combinations(range(total + n_parts - 1), n_parts - 1):
        yield np.diff([-1, *bars, total + n_parts - 1]) - 1
