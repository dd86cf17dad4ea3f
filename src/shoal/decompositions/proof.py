"""The largest beta of a small graph as a fraction, proven without rounding errors.

The LP solver's mixture and prices are turned into fractions. Any prices whatsoever prove an upper
bound on beta, and a mixture that keeps the rules exactly proves a lower one; both are computed in
fractions. Where the two are equal, beta is known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.decompositions.optimum import ENUMERATED_ARMS, beta_program
from shoal.decompositions.pricing import fillable_sets
from shoal.errors import InvalidInputError

_DENOMINATOR = 10**6


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """Bounds on the largest beta, as fractions, and what proves them.

    Parameters
    ----------
    lower, upper
        Proven bounds; equal if beta is known exactly.
    open_sets, set_weights, plays
        The mixture that reaches ``lower``, as in ``Optimum``; fractions in arrays of objects.
    prices, crowd_prices
        The prices that prove ``upper``: of (type, arm) pairs (n_types, n_arms), and of users on
        open arms (n_sets, n_arms).
    """

    lower: Fraction
    upper: Fraction
    open_sets: BoolArray
    set_weights: NDArray[np.object_]
    plays: NDArray[np.object_]
    prices: NDArray[np.object_]
    crowd_prices: NDArray[np.object_]

    @property
    def exact(self) -> bool:
        """Whether beta is known exactly."""
        return self.lower == self.upper


def prove_beta(
    patterns: BoolArray, counts: LongArray, *, min_crowd: int, exact: bool = False
) -> Proof:
    """Prove bounds on the largest beta of the graph with these types of users.

    Parameters
    ----------
    patterns
        The active arms of each type, (n_types, n_arms), at most 5 arms.
    counts
        Users of each type, (n_types,).
    min_crowd, exact
        As in ``optimum``.
    """
    if patterns.shape[1] > ENUMERATED_ARMS:
        raise InvalidInputError(
            f"n_arms must be at most {ENUMERATED_ARMS} for a proof in fractions; "
            f"got {patterns.shape[1]}."
        )
    sets = fillable_sets(patterns, counts, min_crowd)
    program = beta_program(patterns, counts, min_crowd=min_crowd, exact=exact)
    for opened in sets:
        program.add(opened)
    program.solve(vertex=True)
    weights, plays = (_fractions(part) for part in program.solution())
    # More than is wanted may only be free, not dear, where it is allowed.
    prices = _fractions(np.maximum(program.prices()[1], -np.inf if exact else 0.0))
    crowd_prices = _fractions(np.maximum(program.crowd_prices(), 0.0))
    return Proof(
        lower=_lower(patterns, counts, min_crowd, sets, weights, plays, exact=exact),
        upper=_upper(patterns, counts, min_crowd, sets, prices, crowd_prices),
        open_sets=sets,
        set_weights=weights,
        plays=plays,
        prices=prices,
        crowd_prices=crowd_prices,
    )


def _fractions(values: FloatArray) -> NDArray[np.object_]:
    flat = [Fraction(value).limit_denominator(_DENOMINATOR) for value in values.ravel().tolist()]
    fractions = np.empty(len(flat), np.object_)
    fractions[:] = flat
    return fractions.reshape(values.shape)


def _lower(
    patterns: BoolArray,
    counts: LongArray,
    min_crowd: int,
    sets: BoolArray,
    weights: NDArray[np.object_],
    plays: NDArray[np.object_],
    *,
    exact: bool,
) -> Fraction:
    """Return the beta that the mixture reaches; 0 if it breaks a rule, however slightly."""
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
    reached = (plays.sum(axis=0) * patterns.sum(axis=1, keepdims=True))[patterns]
    if exact and min(reached) != max(reached):
        return Fraction(0)
    return Fraction(min(reached))


def _upper(
    patterns: BoolArray,
    counts: LongArray,
    min_crowd: int,
    sets: BoolArray,
    prices: NDArray[np.object_],
    crowd_prices: NDArray[np.object_],
) -> Fraction:
    """Return the bound that the prices prove: no plays of any open set are worth more.

    Paying every user on an open arm its crowd price, and taking ``min_crowd`` times the price
    from the arm, only ever adds to what plays are worth; each type then earns its best arm.
    """
    sizes = patterns.sum(axis=1)
    worth = sum(
        (prices[kind, arm] / int(sizes[kind]) for kind, arm in np.argwhere(patterns)), Fraction(0)
    )
    if worth <= 0:
        return Fraction(1)
    best = Fraction(0)
    for opened, crowd in zip(sets, crowd_prices, strict=True):
        earned = -min_crowd * sum(crowd[opened], Fraction(0))
        for kind, pattern in enumerate(patterns & opened):
            gains = prices[kind, pattern] + int(counts[kind]) * crowd[pattern]
            earned += max([Fraction(0), *gains])
        best = max(best, earned)
    return min(Fraction(1), best / worth)
