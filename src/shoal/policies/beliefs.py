"""What a policy believes of its users, and how sure it is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.arrays import FloatArray

N_PLACES = 200  # of an integral over means; three digits
N_DEVIATIONS = 5.0  # around a mean that the integral covers


class Beliefs(NamedTuple):
    """What a policy believes of every user's mean on every arm, each (n_users, n_arms).

    It is about single users: nothing of it may be shown but as a mean over at least C of them.
    """

    means: FloatArray
    deviations: FloatArray
    best: FloatArray  # probability that the arm is the user's best
    outsiders: FloatArray  # probability that the user is far from the crowd; 0 where not modelled


def best_chances(weights: FloatArray, means: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return the probability that each arm is a user's best, (n_users, n_arms).

    Means are independent over arms, each a mixture of normals with these ``weights``, ``means`` and
    ``deviations``, (n_kinds, n_users, n_arms).

    >>> one = np.ones((1, 1, 2))
    >>> best_chances(one, np.array([[[0.6, 0.5]]]), 0.1 * one).round(2)
    array([[0.76, 0.24]])
    """
    from scipy.special import ndtr  # late: it takes half a second to load

    result: FloatArray = np.empty(means.shape[1:])
    for user in range(len(result)):
        weight, mean, deviation = weights[:, user], means[:, user], deviations[:, user]
        low = (mean - N_DEVIATIONS * deviation).min()
        high = (mean + N_DEVIATIONS * deviation).max()
        places = np.concatenate(
            [
                np.linspace(low, high, N_PLACES),
                (mean + deviation * np.linspace(-3, 3, 25)[:, None, None]).ravel(),
            ]
        )
        places.sort()
        below = (weight * ndtr((places[:, None, None] - mean) / deviation)).sum(axis=1)
        middle = (below[1:] + below[:-1]) / 2
        gained = np.diff(below, axis=0)
        for arm in range(middle.shape[1]):
            result[user, arm] = gained[:, arm] @ np.delete(middle, arm, axis=1).prod(axis=1)
    result /= result.sum(axis=1, keepdims=True)
    return result
