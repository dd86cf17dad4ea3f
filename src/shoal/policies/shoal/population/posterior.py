"""One user's posterior under the factor prior N(b, F F' + diag(s)), from evidence per arm.

The evidence is a precision L_j and a weighted value h_j on each arm j; the means are b + F f + e
with tastes f ~ N(0, I) and e ~ N(0, diag(s)). No matrix over arms is formed: rank is what costs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.arrays import FloatArray, SmallFloatArray
from shoal.kernels import kernel


class Prior(NamedTuple):
    """What is believed of a user before any evidence."""

    means: FloatArray  # (n_arms,)
    factors: FloatArray  # (n_arms, rank)
    own: FloatArray  # (n_arms,)


class Posterior(NamedTuple):
    """One user's means: N(means, loads loads' + diag(own)), with room to reckon in."""

    means: FloatArray  # (n_arms,)
    loads: FloatArray  # (n_arms, rank)
    own: FloatArray  # (n_arms,)
    root: FloatArray  # (rank, rank)
    tastes: FloatArray  # (rank,)


@kernel()
def room(n_arms: int, rank: int) -> Posterior:
    """Return a posterior to be filled, once for all users."""
    return Posterior(
        np.empty(n_arms), np.empty((n_arms, rank)), np.empty(n_arms), np.empty((rank, rank)),
        np.empty(rank),
    )  # fmt: skip


@kernel(fastmath=True)
def infer(
    prior: Prior, precision: SmallFloatArray, value: SmallFloatArray, posterior: Posterior
) -> None:
    """Fill one user's posterior from its evidence, in O(n_arms rank² + rank³).

    Given the tastes, each arm is on its own; so the tastes come first, from evidence of weight
    L / (1 + s L), by the Cholesky root of I + F' diag(weight) F.
    """
    means, loads, own, root, tastes = posterior
    n_arms, rank = loads.shape
    for a in range(rank):
        tastes[a] = 0.0
        root[a, : a + 1] = 0.0
        root[a, a] = 1.0
    for arm in range(n_arms):
        seen = precision[arm]
        if seen > 0.0:
            share = 1.0 / (1.0 + prior.own[arm] * seen)
            surprise = (value[arm] - seen * prior.means[arm]) * share
            for a in range(rank):
                load = prior.factors[arm, a]
                tastes[a] += load * surprise
                for c in range(a + 1):
                    root[a, c] += load * seen * share * prior.factors[arm, c]
    for a in range(rank):
        for c in range(a + 1):
            left = root[a, c]
            for e in range(c):
                left -= root[a, e] * root[c, e]
            root[a, c] = math.sqrt(left) if a == c else left / root[c, c]
        left = tastes[a]
        for e in range(a):
            left -= root[a, e] * tastes[e]
        tastes[a] = left / root[a, a]
    for arm in range(n_arms):
        seen = precision[arm]
        share = 1.0 / (1.0 + prior.own[arm] * seen)
        mean = prior.means[arm]
        for a in range(rank):
            left = prior.factors[arm, a]
            for e in range(a):
                left -= root[a, e] * loads[arm, e]
            loads[arm, a] = left / root[a, a]
            mean += loads[arm, a] * tastes[a]
        for a in range(rank):
            loads[arm, a] *= share
        own[arm] = prior.own[arm] * share
        means[arm] = mean + own[arm] * (value[arm] - seen * mean)
