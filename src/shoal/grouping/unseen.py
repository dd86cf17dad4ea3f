"""Nobody explores unseen: users of a crowd too small for a group play their favourite arm."""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray, IntArray, LongArray, WholeArray
from shoal.kernels import kernel


@kernel()
def small_crowds(
    arms: IntArray, counted: BoolArray, n_arms: int, min_crowd: int
) -> tuple[LongArray, LongArray]:
    """Return the ``counted`` users of each arm, (n_arms,), and who is in a crowd that is too small.

    A crowd that is large enough stays so, so only these users can need their favourites.
    """
    crowds = np.zeros(n_arms, np.int64)
    for user in range(len(arms)):
        if counted[user]:
            crowds[arms[user]] += 1
    users = np.empty(crowds[crowds < min_crowd].sum(), np.int64)
    if len(users):
        place = 0
        for user in range(len(arms)):
            if counted[user] and crowds[arms[user]] < min_crowd:
                users[place] = user
                place += 1
    return crowds, users


@kernel()
def play_favourites(
    users: LongArray, favourites: WholeArray, arms: IntArray, crowds: LongArray, min_crowd: int
) -> None:
    """Move each of ``users``, while its crowd is too small, to its favourite, one after another."""
    for place in range(len(users)):
        user, favourite = users[place], favourites[place]
        if crowds[arms[user]] < min_crowd:
            crowds[arms[user]] -= 1
            crowds[favourite] += 1
            arms[user] = favourite
