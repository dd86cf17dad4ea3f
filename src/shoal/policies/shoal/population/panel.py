"""How many users explore for the others: a panel that pays for itself.

Its share is p = g / (2 c), as in docs/theory.md, "The panel". The gain g is the expected maximum of
the posterior means if the ``hidden`` variance were one factor's, less that if it were specific to
each arm and user; c is what a panellist loses per round.
"""

import numpy as np

from shoal.arrays import FloatArray
from shoal.policies.shoal.constants import POPULATION
from shoal.policies.shoal.population.belief import PopulationBelief
from shoal.threads import one_thread

PANEL_ALL = 2.0  # the share of a panel of all users: above every rank


@one_thread
def best_panel_share(
    belief: PopulationBelief,
    min_group_size: int,
    rounds_left: float,
    others: float,
    *,
    rng: np.random.Generator,
) -> float:
    """Return the share of users that should explore, where ``others`` expect that reward each."""
    means = np.clip(belief.means, POPULATION.min_spread_mean, 1 - POPULATION.min_spread_mean)
    n_arms = len(means)
    noise = belief.overdispersion * min_group_size * means * (1 - means)
    evidence = rounds_left * POPULATION.panel_evidence / n_arms / noise
    normals = rng.standard_normal((POPULATION.n_draws, n_arms))
    normals = np.vstack([normals, -normals])
    known = belief.factors @ belief.factors.T
    alone = expected_best(means, known + np.diag(belief.hidden), evidence, normals)
    together = 0.0
    for signs in rng.choice([-1.0, 1.0], size=(POPULATION.n_signs, n_arms)):
        factor = np.sqrt(belief.hidden) * signs
        covariance = known + np.outer(factor, factor)
        together += expected_best(means, covariance, evidence, normals) / POPULATION.n_signs
    cost = max(means.max(), others) - means.mean() + 1e-9
    return float(min(POPULATION.max_panel_share, max(together - alone, 0.0) / (2 * cost)))


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
    factors = directions * np.sqrt(np.maximum(sizes, 0.0))
    return float((means + normals @ factors.T).max(axis=1).mean())
