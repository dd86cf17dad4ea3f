"""Home-and-away decomposition: about (2 − 1/K)·D assignments wherever U ≥ C+1 (docs/theory.md).

Every user has a home among its active arms, and every arm is home to at least U ≥ ``min_crowd``
users. An assignment opens a set of arms. On each open arm ``min_crowd`` of its home users stay, in
turns, so that the arm is informative for everyone on it; all other users play the open arm that
they have played least. Users without an open arm wait at home.

The sets must treat all arms and all pairs of arms alike. So the arms are placed at random among the
2^a - 1 nonzero vectors of GF(2)^a, with 2^(a-1) ≤ K < 2^a, and the sets are the complements of the
hyperplanes, one for each nonzero vector: any two arms are separated by exactly 2^(a-2) of them in
each direction. In some of the placements the hyperplanes themselves are open, so that an arm is
open in K/(2K-1) of the assignments. Where clusters are larger than a crowd, some open all arms.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from shoal.arrays import BoolArray, LongArray, WholeArray
from shoal.decompositions.decomposition import (
    Decomposition,
    arm_dtype,
)
from shoal.decompositions.demand import batched_graph, checked_crowds, required_samples
from shoal.decompositions.equitable import fit_loads
from shoal.decompositions.euler import euler_decomposition, fit_together
from shoal.kernels import kernel

_MAX_ENTRIES = 1 << 27  # of all assignments: 256 MB
_SLOTS_PER_ARM = 100  # different assignments, about


def home_away_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, rng: np.random.Generator | None = None
) -> Decomposition:
    """Meet the demand with some home users on every open arm, and all others away.

    ``rng`` places the arms, a fixed stream if not given. At most about 100·n_arms
    different assignments. Where all arms can be open at once, or where no assignment of users to
    homes exists, and where that needs fewer assignments, it is the Euler decomposition.
    """
    checked_crowds(active, min_crowd)
    arms = np.flatnonzero(active.any(axis=0))
    euler = euler_decomposition(active, demand, min_crowd=min_crowd)
    if fit_together(batched_graph(active, min_crowd)[0], arms):
        return euler
    inside = np.ascontiguousarray(active[:, arms])
    homes = home_arms(inside, min_crowd)
    if homes is None:
        return euler
    rng = np.random.default_rng(0) if rng is None else rng
    part = _play_home_and_away(inside, homes, demand, min_crowd, rng)
    if part.total >= euler.total:
        return euler
    return Decomposition(arms.astype(part.assignments.dtype)[part.assignments], part.repeats)


def home_arms(active: BoolArray, min_crowd: int) -> LongArray | None:
    """Return an active arm for each user, (n_users,), with at least ``min_crowd`` users on each.

    With about as many on the smallest as possible. None if there is no such assignment.
    """
    n_users, n_arms = active.shape
    chosen = np.zeros_like(active)
    chosen[np.arange(n_users), active.argmax(axis=1)] = True
    max_loads = np.full(n_arms, n_users)
    min_load = n_users // n_arms
    while min_load >= min_crowd:
        if fit_loads(chosen, active, np.full(n_arms, min_load), max_loads):
            homes: LongArray = chosen.argmax(axis=1)
            return homes
        min_load = min_crowd + (min_load - min_crowd) // 2 if min_load > min_crowd else 0
    return None


def stay_share(active: BoolArray, homes: LongArray, min_crowd: int) -> float:
    """Return the largest share of an arm's undecided home users who must stay: C+1 of U, or less.

    Users with no other arm stay anyway.
    """
    n_stay, n_rotating = _duties(active, homes, min_crowd)
    return float((n_stay / np.maximum(1, n_rotating)).max())


def open_set_stream(n_arms: int, all_open: float, rng: np.random.Generator) -> Iterator[BoolArray]:
    """Yield blocks of sets of open arms, (n_sets, n_arms), a share ``all_open`` of them whole.

    The others treat all pairs of arms alike within each block.
    """
    size = 1 << n_arms.bit_length()  # 2^a
    codes = np.arange(1, size)
    separated = (np.bitwise_count(codes[:, None] & codes) & 1).astype(np.bool_)
    # An arm is open in 2^(a-1) of the sets, and in one less of their complements.
    complements = size / 2 - n_arms / (2 * n_arms - 1) * (size - 1)
    n_blocks = 0
    n_whole = 0
    while True:
        n_blocks += 1
        sets = np.ones((0, n_arms), np.bool_)
        if all_open < 1.0:
            points = rng.permutation(size - 1)[:n_arms]
            turned = math.floor(n_blocks * complements) > math.floor((n_blocks - 1) * complements)
            sets = separated[:, points] ^ turned
        whole = size - 1 if all_open >= 1.0 else all_open / (1 - all_open) * (size - 1)
        n_due = math.floor(n_blocks * whole) - n_whole
        n_whole += n_due
        both = np.concatenate([sets, np.ones((n_due, n_arms), np.bool_)])
        yield both[rng.permutation(len(both))]


class _Users(NamedTuple):
    """What each user wants and has."""

    lists: WholeArray  # (n_users, most active arms) active arms first
    sizes: LongArray  # (n_users,) active arms
    homes: LongArray  # (n_users,)
    places: LongArray  # (n_users,) among the undecided users of the home
    need: LongArray  # (n_users,) informative assignments on each active arm
    served: LongArray  # (n_users, n_arms) informative assignments so far


class _Homes(NamedTuple):
    """Who must stay on each arm when it is open."""

    n_stay: LongArray  # (n_arms,) undecided home users who stay
    n_rotating: LongArray  # (n_arms,) undecided home users
    first: LongArray  # (n_arms,) whose turn it is


def _duties(active: BoolArray, homes: LongArray, min_crowd: int) -> tuple[LongArray, LongArray]:
    """Return how many undecided home users of each arm must stay, and how many there are."""
    decided = active.sum(axis=1) == 1
    n_arms = active.shape[1]
    n_decided = np.bincount(homes[decided], minlength=n_arms)
    n_rotating = np.bincount(homes[~decided], minlength=n_arms)
    return np.maximum(0, min_crowd - n_decided), n_rotating


def _play_home_and_away(
    active: BoolArray, homes: LongArray, demand: int, min_crowd: int, rng: np.random.Generator
) -> Decomposition:
    n_users, n_arms = active.shape
    away_share = 1 - 1 / n_arms
    share = max(stay_share(active, homes, min_crowd), 1 / n_arms)
    ratio = share + away_share  # 1/beta of the theorem
    closed_open = n_arms / (2 * n_arms - 1)
    all_open = max(0.0, (1 / ratio - closed_open) / (1 - closed_open))
    max_slots = max(2 * n_arms, min(_SLOTS_PER_ARM * n_arms, _MAX_ENTRIES // n_users))
    repeats = _repeats(np.unique(active.sum(axis=1)), demand, ratio, max_slots)
    users, at_home = _start(active, homes, -(-demand // repeats), min_crowd)
    chunks: list[WholeArray] = []
    n_unmet = int(users.sizes.sum())
    # Ends after 7·demand/repeats + 32·n_arms assignments at the latest: see docs/theory.md.
    for sets in open_set_stream(n_arms, all_open, rng):
        rows = np.empty((len(sets), n_users), arm_dtype(n_arms))
        n_rows, n_unmet = _assign(rows, sets, users, at_home, min_crowd, n_unmet)
        chunks.append(rows[:n_rows])
        if n_unmet == 0:
            break
    assignments = np.concatenate(chunks)
    return Decomposition(assignments, np.full(len(assignments), repeats, np.int64))


def _repeats(sizes: LongArray, demand: int, ratio: float, max_slots: int) -> int:
    """Return the repeats of each assignment that lose least to rounding.

    A user with k arms needs ceil(demand / (k·repeats)) of each, so k times that in all.
    """
    fewest = -(-math.ceil(ratio * demand) // max_slots)
    repeats = np.arange(fewest, 2 * fewest + 1)
    units = (sizes[:, None] * -(-demand // (sizes[:, None] * repeats))).max(axis=0)
    return int(repeats[(repeats * units).argmin()])


def _start(
    active: BoolArray, homes: LongArray, demand: int, min_crowd: int
) -> tuple[_Users, _Homes]:
    n_users, n_arms = active.shape
    sizes = active.sum(axis=1)
    order = np.argsort(~active, axis=1, kind="stable")[:, : sizes.max()]
    places = np.zeros(n_users, np.int64)
    n_placed = np.zeros(n_arms, np.int64)
    _place(places, n_placed, homes, sizes)
    n_stay, n_rotating = _duties(active, homes, min_crowd)
    users = _Users(
        np.ascontiguousarray(order, arm_dtype(n_arms)), sizes, homes, places,
        required_samples(active, demand), np.zeros((n_users, n_arms), np.int64),
    )  # fmt: skip
    return users, _Homes(n_stay, n_rotating, np.zeros(n_arms, np.int64))


@kernel()
def _place(places: LongArray, n_placed: LongArray, homes: LongArray, sizes: LongArray) -> None:
    """Number the undecided users of each home."""
    for user in range(len(places)):
        if sizes[user] > 1:
            places[user] = n_placed[homes[user]]
            n_placed[homes[user]] += 1


@kernel()
def _assign(
    rows: WholeArray, sets: BoolArray, users: _Users, at_home: _Homes, min_crowd: int, n_unmet: int
) -> tuple[int, int]:
    """Fill an assignment for each set, until no pair is unmet; return their number and the rest."""
    n_users, n_arms = users.served.shape
    for slot in range(len(rows)):
        open_arms, row = sets[slot], rows[slot]
        crowds = np.zeros(n_arms, np.int64)
        for user in range(n_users):
            arm = users.homes[user]
            if not (open_arms[arm] and _stays(users, at_home, user)):
                arm = _away(users, open_arms, user)
            row[user] = arm
            crowds[arm] += 1
        for arm in range(n_arms):
            if open_arms[arm] and at_home.n_rotating[arm] > 0:
                at_home.first[arm] += at_home.n_stay[arm]
                at_home.first[arm] %= at_home.n_rotating[arm]
        for user in range(n_users):
            arm = row[user]
            if crowds[arm] >= min_crowd:
                users.served[user, arm] += 1
                n_unmet -= users.served[user, arm] == users.need[user]
        if n_unmet == 0:
            return slot + 1, 0
    return len(rows), n_unmet


@kernel()
def _stays(users: _Users, at_home: _Homes, user: int) -> bool:
    """Tell whether it is the user's turn to stay at home."""
    home = users.homes[user]
    if users.sizes[user] == 1:
        return True
    turn = (users.places[user] - at_home.first[home]) % at_home.n_rotating[home]
    return bool(turn < at_home.n_stay[home])


@kernel()
def _away(users: _Users, open_arms: BoolArray, user: int) -> int:
    """Return the open active arm that the user has been served least on, or its home."""
    best, fewest = users.homes[user], np.int64(1) << 62
    for index in range(users.sizes[user]):
        arm = users.lists[user, index]
        if open_arms[arm] and users.served[user, arm] < fewest:
            best, fewest = arm, users.served[user, arm]
    return int(best)
