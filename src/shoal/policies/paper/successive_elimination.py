"""BaSE, batched successive elimination (Appendix A, Algorithm 3), for many users at once.

Every user is a separate bandit: ``means`` and ``counts`` are sigma_j / n_j and n_j, ``active`` is
A, each of shape (n_users, n_arms). ``gamma`` is the paper's parameter, O(log(NKT)) in its
analysis. An arm without samples can't be compared: it stays, and is nobody's best.
"""

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
    """Return the arms that survive a batch (Algorithm 3, lines 9 to 13).

    An arm goes when the user's best active arm beats it by at least sqrt(gamma / tau), with tau
    the largest count among the user's active arms; in BaSE all are about equal. Where they are
    not, ``pairwise`` takes 1/tau as the mean of the two arms' 1/count.

    >>> active = np.array([[True, True, True, False]])
    >>> means, counts = np.array([[0.9, 0.5, 0.88, 0.0]]), np.array([[100.0, 100.0, 100.0, 0.0]])
    >>> eliminate(active, means, counts, gamma=4.0)
    array([[ True, False,  True, False]])
    """
    sampled = active & (counts > 0)
    best = np.max(means, axis=1, keepdims=True, where=sampled, initial=-np.inf)
    if pairwise:
        inverse = 1.0 / np.where(sampled, counts, np.inf)
        leader = np.where(sampled, means, -np.inf).argmax(axis=1)
        spread = (inverse + np.take_along_axis(inverse, leader[:, None], axis=1)) / 2
    else:
        spread = 1.0 / np.max(counts, axis=1, keepdims=True, where=sampled, initial=1e-300)
    beaten = means <= best - np.sqrt(gamma * spread)
    survivors: BoolArray = active & ~(sampled & beaten)
    return survivors


def best_arms(active: BoolArray, means: FloatArray, counts: FloatArray) -> LongArray:
    """Return each user's best active arm (line 15), -1 for a user without any sample.

    >>> active = np.ones((2, 2), dtype=bool)
    >>> best_arms(active, np.array([[0.2, 0.5], [0.0, 0.0]]), np.array([[4.0, 4.0], [0.0, 0.0]]))
    array([ 1, -1])
    """
    sampled = active & (counts > 0)
    best = np.where(sampled, means, -np.inf).argmax(axis=1)
    return np.where(sampled.any(axis=1), best, -1)
