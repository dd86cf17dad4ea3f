"""Rotas: users who take turns on their arms, slot after slot, written at memory speed.

A rota of s users with the same s arms, each starting one arm further than the one before, has
one user on each arm in every slot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.decompositions.decomposition import arm_dtype
from shoal.kernels import kernel


def rotas(
    patterns: BoolArray, of_user: LongArray, starts: LongArray, *, n_slots: int
) -> WholeArray:
    """Return the arm of each user in each slot, (n_slots, n_users).

    Parameters
    ----------
    patterns
        The active arms of each type of users, (n_types, n_arms).
    of_user
        Each user's type, (n_users,).
    starts
        Where in the list of its active arms each user starts, (n_users,).
    n_slots
        Slots to write.
    """
    rows = np.empty((n_slots, len(of_user)), arm_dtype(patterns.shape[1]))
    sizes = patterns.sum(axis=1)
    width = sizes.max()
    lists = np.argsort(~patterns, axis=1, kind="stable")[:, :width]  # active arms come first
    if patterns.shape[1] > 16:
        _write(rows, lists.astype(rows.dtype), sizes, of_user, starts.copy())
        return rows
    place = np.arange(width)
    turned = (place[:, None] + place) % sizes[:, None, None]  # (n_types, start, place)
    arms = np.take_along_axis(lists[:, None, :], turned, axis=2)
    words = (arms.astype(np.uint64) << (4 * place).astype(np.uint64)).sum(axis=2, dtype=np.uint64)
    shifts = (4 * (sizes - 1)).astype(np.uint64)
    _write_packed(rows, words[of_user, starts], shifts[of_user])
    return rows


@kernel()
def _write_packed(rows: WholeArray, words: NDArray[np.uint64], shifts: NDArray[np.uint64]) -> None:
    """Write rotas of at most 16 arms: four bits an arm, the whole list in one word that turns."""
    n_slots, n_users = rows.shape
    width = 1024  # users whose words stay in the fastest cache from slot to slot
    for start in range(0, n_users, width):
        word, shift = words[start : start + width], shifts[start : start + width]
        for slot in range(n_slots):
            row = rows[slot, start : start + width]
            for user in range(len(row)):
                arm = word[user] & np.uint64(15)
                row[user] = arm
                word[user] = (word[user] >> np.uint64(4)) | (arm << shift[user])


@kernel()
def _write(
    rows: WholeArray, lists: WholeArray, sizes: LongArray, of_user: LongArray, places: LongArray
) -> None:
    for slot in range(len(rows)):
        for user, kind in enumerate(of_user):
            place = places[user]
            rows[slot, user] = lists[kind, place]
            places[user] = place + 1 if place + 1 < sizes[kind] else 0
