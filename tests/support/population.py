"""Beliefs of a large population, with evidence that tests give them."""

from __future__ import annotations

import numpy as np

from shoal.arrays import CountArray, FloatArray, IntArray, SmallFloatArray
from shoal.grouping import RoundTotals
from shoal.policies.shoal.population.belief import (
    Decision,
    PopulationBelief,
)


def random_evidence(rng: np.random.Generator, n_users: int, n_arms: int) -> PopulationBelief:
    """Return a belief with evidence, some of it missing, and two factors."""
    belief = PopulationBelief(n_users, n_arms, 5)
    belief.means = rng.uniform(0.2, 0.8, n_arms)
    belief.factors = rng.normal(0.0, 0.2, (n_arms, 2))
    precision = rng.gamma(1.0, 5.0, (n_users, n_arms)) * (rng.random((n_users, n_arms)) < 0.8)
    belief.evidence.precision[:] = precision
    belief.evidence.value[:] = belief.evidence.precision * rng.normal(0.5, 0.4, (n_users, n_arms))
    return belief


def absorb(
    belief: PopulationBelief,
    arms: IntArray,
    groups: IntArray,
    totals: FloatArray,
    reported: CountArray,
    predicted: SmallFloatArray,
    variances: SmallFloatArray,
) -> None:
    released = np.bincount(groups[groups >= 0], reported[groups >= 0]) > 0
    played = RoundTotals(arms, groups, totals, released, reported)
    belief.absorb(played, Decision(arms, predicted, variances))


def give_evidence(
    belief: PopulationBelief, tastes: FloatArray, precision: float, rng: np.random.Generator
) -> None:
    """Let every user see its means with noise of this precision."""
    seen = tastes + rng.normal(0.0, precision**-0.5, tastes.shape)
    belief.evidence.precision[:] = precision
    belief.evidence.value[:] = precision * seen
