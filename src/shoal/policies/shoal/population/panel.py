"""How many users explore for the others: a panel that pays for itself.

No user's own value of information pays for learning what all share. So a share p of the users, the
panel, plays at random for everyone. It costs p c a round, c being what a panellist loses; and
while tastes are unknown, everyone misses the gain g of knowing them, for a time of 1 / sqrt(p). The
sum is least at p = g / (2 c).

The gain g is what a taste that is still ``hidden`` in the noise would be worth to everyone: the
expected maximum of the posterior means if the hidden variance were one factor's, less that if it
were each arm's own, which nobody else could help to learn.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import FloatArray
from shoal.policies.shoal.population.belief import PopulationBelief
from shoal.policies.shoal.population.prior import EDGE
from shoal.threads import one_thread

LARGEST = 0.5
DRAWS = 400  # normal vectors, and their opposites, behind an expected maximum
GUESSES = 6  # signs of the hidden factor over which its worth is averaged
SHARE = 1 / 3  # of the rounds left, spread over all arms, is the evidence reckoned with


@one_thread
def panel_share(
    belief: PopulationBelief,
    min_group_size: int,
    left: float,
    others: float,
    *,
    rng: np.random.Generator,
) -> float:
    """Return the share of users that should explore for all.

    Parameters
    ----------
    left
        Rounds left.
    others
        What users outside the panel are expected to earn in a round, each.
    """
    means = np.clip(belief.means, EDGE, 1 - EDGE)
    n_arms = len(means)
    noise = belief.misfit * min_group_size * means * (1 - means)
    evidence = left * SHARE / n_arms / noise
    normals = rng.standard_normal((DRAWS, n_arms))
    normals = np.vstack([normals, -normals])
    known = belief.factors @ belief.factors.T
    alone = expected_best(means, known + np.diag(belief.hidden), evidence, normals)
    together = 0.0
    for signs in rng.choice([-1.0, 1.0], size=(GUESSES, n_arms)):
        factor = np.sqrt(belief.hidden) * signs
        covariance = known + np.outer(factor, factor)
        together += expected_best(means, covariance, evidence, normals) / GUESSES
    cost = max(means.max(), others) - means.mean() + 1e-9
    return float(min(LARGEST, max(together - alone, 0.0) / (2 * cost)))


def expected_best(
    means: FloatArray, covariance: FloatArray, evidence: FloatArray, normals: FloatArray
) -> float:
    """Return E[max posterior mean] of a user who gathers this precision on each arm.

    Posterior means vary with covariance P = S (S + diag(1 / evidence))^-1 S, S the prior's.
    """
    root = np.sqrt(evidence)
    scaled = covariance * root
    inner = np.eye(len(means)) + covariance * np.outer(root, root)
    moved = scaled @ np.linalg.solve(inner, scaled.T)
    sizes, directions = np.linalg.eigh((moved + moved.T) / 2)
    spread = directions * np.sqrt(np.maximum(sizes, 0.0))
    return float((means + normals @ spread.T).max(axis=1).mean())
