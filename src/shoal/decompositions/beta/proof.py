"""The largest beta of a small graph as a fraction, proven without rounding errors.

The LP solver's mixture and prices are turned into fractions. Any prices whatsoever prove an upper
bound on beta, and a mixture that keeps the rules exactly proves a lower one; both are computed in
fractions. Where the two are equal, beta is known exactly.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from shoal.arrays import BoolArray, FloatArray, FractionArray
from shoal.decompositions.beta.max_beta import ENUMERATED_ARMS
from shoal.decompositions.beta.open_sets import OpenSetProgram, fillable_sets
from shoal.decompositions.demand import BatchedGraph
from shoal.errors import InvalidInputError

_DENOMINATOR = 10**6


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """Bounds on the largest beta, and what proves them, as fractions in arrays of objects."""

    lower: Fraction
    upper: Fraction
    open_sets: BoolArray
    set_weights: FractionArray  # the mixture that reaches ``lower``, as in ``MaxBeta``
    plays: FractionArray
    prices: FractionArray  # prove ``upper``: of (type, arm) pairs, (n_types, n_arms)
    crowd_prices: FractionArray  # of users on open arms, (n_sets, n_arms)

    @property
    def tight(self) -> bool:
        """Whether the bounds are equal, so that beta is known exactly."""
        return self.lower == self.upper


def prove_beta(graph: BatchedGraph, *, exact: bool = False) -> Proof:
    """Prove bounds on the largest beta of a graph with few arms; ``exact`` as in ``max_beta``."""
    if graph.patterns.shape[1] > ENUMERATED_ARMS:
        raise InvalidInputError(
            f"n_arms must be at most {ENUMERATED_ARMS} for a proof in fractions; "
            f"got {graph.patterns.shape[1]}."
        )
    sets = fillable_sets(graph)
    program = OpenSetProgram(graph, exact=exact)
    for open_arms in sets:
        program.add(open_arms)
    program.solve(vertex=True)
    weights, plays = (_fractions(part) for part in program.solution())
    # Where more feedback than wanted is allowed, it can't have a negative price.
    prices = _fractions(np.maximum(program.prices()[1], -np.inf if exact else 0.0))
    crowd_prices = _fractions(np.maximum(program.crowd_prices(), 0.0))
    lower = lower_bound(graph, sets, weights, plays, exact=exact)
    upper = upper_bound(graph, sets, prices, crowd_prices)
    return Proof(lower, upper, sets, weights, plays, prices, crowd_prices)


def _fractions(values: FloatArray) -> FractionArray:
    fractions: FractionArray = np.frompyfunc(
        lambda value: Fraction(value).limit_denominator(_DENOMINATOR), 1, 1
    )(values)
    return fractions


def lower_bound(
    graph: BatchedGraph,
    sets: BoolArray,
    weights: FractionArray,
    plays: FractionArray,
    *,
    exact: bool,
) -> Fraction:
    """Return the beta that the mixture reaches; 0 if it breaks a rule, however slightly."""
    patterns, counts, min_crowd = graph
    users = (counts[:, None] * plays).sum(axis=1)  # (n_sets, n_arms)
    keeps_the_rules = (
        weights.sum() <= 1
        and (plays >= 0).all()
        and (plays.sum(axis=2) <= weights[:, None]).all()
        and (users >= min_crowd * weights[:, None])[sets].all()
        and not plays[~(patterns & sets[:, None, :])].any()
    )
    if not keeps_the_rules:
        return Fraction(0)
    betas = (plays.sum(axis=0) * patterns.sum(axis=1, keepdims=True))[patterns]
    if exact and min(betas) != max(betas):
        return Fraction(0)
    return Fraction(min(betas))


def upper_bound(
    graph: BatchedGraph, sets: BoolArray, prices: FractionArray, crowd_prices: FractionArray
) -> Fraction:
    """Return the bound that the prices prove: no plays of any open set are worth more.

    Paying every user on an open arm its crowd price, and taking ``min_crowd`` times the price
    from the arm, only ever adds to what plays are worth; each type then earns its best arm.
    """
    patterns, counts, min_crowd = graph
    worth = (prices / patterns.sum(axis=1, keepdims=True))[patterns].sum()
    if worth <= 0:
        return Fraction(1)
    best = Fraction(0)
    for open_arms, crowd in zip(sets, crowd_prices, strict=True):
        gains = np.where(patterns & open_arms, prices + counts[:, None] * crowd, 0)
        total = gains.max(axis=1, initial=0).sum()
        best = max(best, total - min_crowd * crowd[open_arms].sum())
    return min(Fraction(1), Fraction(best / worth))
