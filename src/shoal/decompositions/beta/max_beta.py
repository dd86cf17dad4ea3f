"""The optimal decomposition's ratio (Section 3.4.2, Lemma 3): the largest beta for a graph.

The paper takes the largest beta with beta·w in P_C. We let a point of P_C cover beta·w, which is
all that a decomposition needs (docs/theory.md); ``exact=True`` takes the paper's words instead,
with a beta that can be 0 where the covering one is not: users 0 {arm 0}, 1 {0, 1}, 2 and 3 {1}
with C+1 = 2 are such a graph. Open sets are added by column generation; the last pricing proves
the bound.
"""

from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.decompositions.beta.open_sets import OpenSetProgram, column_pricing, fillable_sets
from shoal.decompositions.demand import BatchedGraph, batched_graph, checked_active, checked_crowds
from shoal.model.numbers import whole_number

TOLERANCE = 1e-8  # of the LP solver
ENUMERATED_ARMS = 5


@dataclass(frozen=True, slots=True, eq=False)
class MaxBeta:
    """The largest beta, with both halves of its proof.

    Parameters
    ----------
    beta
        Reached by the mixture below: 1/beta assignments per unit of demand.
    bound
        No beta is larger: with ``prices`` p, the sum of p·w is 1, and the sum of p·v is at most
        ``bound`` for every point v of P_C.
    open_sets, set_weights, plays
        The mixture: sets of open arms (n_sets, n_arms), the share of the assignments that each
        set is open in (n_sets,), and how much users of each type play each arm meanwhile
        (n_sets, n_types, n_arms).
    prices
        The price of each (type, arm) pair, (n_types, n_arms); a user's is 1/counts of it.
    graph, of_user
        The graph by types of users, and each user's type, (n_users,).
    """

    beta: float
    bound: float
    open_sets: BoolArray
    set_weights: FloatArray
    plays: FloatArray
    prices: FloatArray
    graph: BatchedGraph
    of_user: LongArray

    @property
    def gap(self) -> float:
        """How far beta may be from the largest; 0 if nothing but rounding is left."""
        return 0.0 if self.bound - self.beta <= 2 * TOLERANCE else self.bound - self.beta


def max_beta(
    active: ArrayLike, *, min_crowd: int, exact: bool = False, seconds: float = 60.0
) -> MaxBeta:
    """Return the largest beta for which a point of P_C covers beta times the graph's weights.

    Parameters
    ----------
    active
        Each user's active arms, (n_users, n_arms).
    min_crowd
        Fewest users on an open arm, C+1.
    exact
        Whether beta·w itself must lie in P_C.
    seconds
        Stop pricing after this time; ``gap`` says what may be left to gain.

    Examples
    --------
    >>> best = max_beta([[True, True]] * 4, min_crowd=3)
    >>> round(best.beta, 6), best.gap
    (1.0, 0.0)
    """
    matrix = checked_active(active)
    min_crowd = whole_number("min_crowd", min_crowd)
    checked_crowds(matrix, min_crowd)
    graph, of_user = batched_graph(matrix, min_crowd)
    program = OpenSetProgram(graph, exact=exact)
    wanted_arms = np.asarray(matrix.any(axis=0))
    few = wanted_arms.sum() <= ENUMERATED_ARMS
    for open_arms in fillable_sets(graph) if few else _first_sets(wanted_arms):
        program.add(open_arms)
    beta = program.solve(vertex=True)
    # No beta is above 1, for each user plays one arm at a time: prices of 1 on one type's arms.
    bound, prices = 1.0, np.zeros(graph.patterns.shape)
    prices[0, graph.patterns[0]] = 1.0
    if few:
        bound, prices = program.prices()
    elif beta < bound - TOLERANCE:
        beta, bound, prices = _generate(program, prices, graph, seconds)
    weights, plays = program.solution()
    used = weights > 0
    return MaxBeta(
        beta=beta,
        bound=max(beta, bound),
        open_sets=np.array(program.sets)[used],
        set_weights=weights[used],
        plays=plays[used],
        prices=prices,
        graph=graph,
        of_user=of_user,
    )


def _first_sets(wanted_arms: BoolArray) -> BoolArray:
    """Return all wanted arms at once and each alone, (n_sets, n_arms)."""
    return np.vstack([wanted_arms, np.diag(wanted_arms)[wanted_arms]])


def _generate(
    program: OpenSetProgram, prices: FloatArray, graph: BatchedGraph, seconds: float
) -> tuple[float, float, FloatArray]:
    """Add the open sets that raise beta; return beta, the smallest bound and its prices."""
    pricing = column_pricing(graph)
    end, bound = monotonic() + seconds, 1.0
    while True:
        beta = program.solve(vertex=False)
        duals = program.prices()[1]
        better, value = pricing.best(duals, above=beta + TOLERANCE, seconds=end - monotonic())
        if value < bound:
            bound, prices = value, duals
        if bound - beta <= 2 * TOLERANCE or not better or monotonic() > end:
            return program.solve(vertex=True), bound, prices
        for open_arms in better:
            program.add(open_arms)
