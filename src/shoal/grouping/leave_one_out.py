"""Leave-one-out rotas (Section 3.1): groups of C+1 to 2C+1 users, each left out in its turn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, IntArray, LongArray
from shoal.kernels import kernel


class Rota(NamedTuple):
    """The whole groups of some users, and the turn in which each user is left out."""

    groups: IntArray  # (n_users,) -1 for none
    places: IntArray  # (n_users,) 1, 2, ... in the group, 0 for none
    sizes: IntArray  # (n_users,) members of each group, by its number


def empty_rota(n_users: int) -> Rota:
    """Return a rota without groups."""
    zeros = np.zeros(n_users, np.int32)
    return Rota(np.full(n_users, -1, np.int32), zeros, zeros.copy())


@kernel()
def split_crowds(arms: IntArray, n_arms: int, min_crowd: int, first_group: int, rota: Rota) -> None:
    """Split every crowd of at least ``min_crowd`` users into as many groups of that size as fit.

    Sizes differ by at most one, so they lie between ``min_crowd`` and 2·min_crowd-1. Fills
    ``rota``, its groups numbered from ``first_group`` and its sizes from 0.
    """
    crowds = np.zeros(n_arms, np.int32)
    for arm in arms:
        crowds[arm] += 1
    n_groups = crowds // min_crowd
    start = np.empty(n_arms, np.int32)
    number = 0
    for arm in range(n_arms):
        start[arm] = number
        number += n_groups[arm]
    rota.sizes[:] = 0
    n_placed = np.zeros(n_arms, np.int32)
    for user in range(len(arms)):
        arm = arms[user]
        if n_groups[arm] == 0:
            rota.groups[user] = -1
            rota.places[user] = 0
        else:
            group = start[arm] + n_placed[arm] % n_groups[arm]
            rota.sizes[group] += 1
            rota.groups[user] = first_group + group
            rota.places[user] = rota.sizes[group]
            n_placed[arm] += 1


@kernel()
def leave_out(rota: Rota, turns: LongArray, committed: BoolArray) -> IntArray:
    """Return the groups without the users whose turn it is in each shard; turn 0 is nobody's.

    Users of shards that have ``committed``, (n_shards,), are in no group.
    """
    groups = np.full_like(rota.groups, -1)
    shard_size = len(groups) // len(turns)
    for shard in range(len(turns)):
        if not committed[shard]:
            for user in range(shard * shard_size, (shard + 1) * shard_size):
                if rota.places[user] != turns[shard]:
                    groups[user] = rota.groups[user]
    return groups
