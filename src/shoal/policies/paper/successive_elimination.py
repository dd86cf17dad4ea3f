"""BaSE, batched successive elimination (Appendix A, Algorithm 3), for many users at once.

Every user is a bandit of its own: ``means`` and ``counts`` are sigma_j / n_j and n_j, ``active``
is A, each of shape (n_users, n_arms). ``gamma`` is the paper's parameter, O(log(NKT)) in its
analysis. An arm without samples can't be judged: it stays, and is nobody's best.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray


def eliminate(
    active: BoolArray,
    means: FloatArray,
    counts: FloatArray,
    *,
    gamma: float,
    pairwise: bool = False,
) -> BoolArray:
    """Return the arms that survive a batch.

    An arm goes when the user's best active arm beats it by at least sqrt(gamma / tau), with tau
    the largest count among the user's active arms; in BaSE all are about equal. Where they are
    not, ``pairwise`` takes 1/tau as the mean of the two arms' own 1/count.

    Examples
    --------
    >>> active = np.array([[True, True, True, False]])
    >>> means, counts = np.array([[0.9, 0.5, 0.88, 0.0]]), np.array([[100.0, 100.0, 100.0, 0.0]])
    >>> eliminate(active, means, counts, gamma=4.0)
    array([[ True, False,  True, False]])
    """
    judged = active & (counts > 0)
    best = np.max(means, axis=1, keepdims=True, where=judged, initial=-np.inf)
    if pairwise:
        inverse = 1.0 / np.where(judged, counts, np.inf)
        leader = np.where(judged, means, -np.inf).argmax(axis=1)
        spread = (inverse + np.take_along_axis(inverse, leader[:, None], axis=1)) / 2
    else:
        spread = 1.0 / np.max(counts, axis=1, keepdims=True, where=judged, initial=1e-300)
    beaten = means <= best - np.sqrt(gamma * spread)
    kept: BoolArray = active & ~(judged & beaten)
    return kept


def best_arms(active: BoolArray, means: FloatArray, counts: FloatArray) -> LongArray:
    """Return each user's active arm with the highest mean, -1 for a user without any sample.

    Examples
    --------
    >>> active = np.ones((2, 2), dtype=bool)
    >>> best_arms(active, np.array([[0.2, 0.5], [0.0, 0.0]]), np.array([[4.0, 4.0], [0.0, 0.0]]))
    array([ 1, -1])
    """
    judged = active & (counts > 0)
    ranked = np.where(judged, means, -np.inf).argmax(axis=1)
    return np.where(judged.any(axis=1), ranked, -1)
