"""Optimal decomposition (Section 3.4.2, Lemma 3): D/beta assignments, up to rounding.

Each open set of the optimum (``optimum``) becomes a stretch of slots with that set open. Plays
per user are rounded to whole numbers that keep every crowd, and spread over the slots by Euler
tours (``equitable``), so that every slot is informative on the whole set. What rounding down
took from users is made up for at the end, arm by arm, with everyone who wants the arm.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.decompositions.decomposition import Decomposition, arm_dtype, joined
from shoal.decompositions.demand import needed, types
from shoal.decompositions.equitable import equitable, settle
from shoal.decompositions.euler import euler_decomposition, open_blocks
from shoal.decompositions.optimum import Optimum, optimum
from shoal.errors import DemandError


def optimal_decomposition(
    active: BoolArray, demand: int, *, min_crowd: int, levels: int = 8, seconds: float = 60.0
) -> Decomposition:
    """Meet the demand in demand/beta assignments, the fewest up to rounding.

    Where all arms can be open at once, that is the Euler decomposition. Refuses if the largest
    beta could not be proven in time; ``optimum`` then still tells beta and a bound.

    Parameters
    ----------
    active, demand, min_crowd
        As in ``decompose``.
    levels
        As in ``euler_decomposition``: about 2^levels different assignments.
    seconds
        Most time for the proof that beta is the largest.
    """
    patterns, counts, _ = types(active)
    if len(open_blocks(patterns, counts, min_crowd)) == 1:
        return euler_decomposition(active, demand, min_crowd=min_crowd, levels=levels)
    best = optimum(active, min_crowd=min_crowd, seconds=seconds)
    if best.gap > 0:
        raise DemandError(
            f"beta must be proven the largest within seconds={seconds:g}; got {best.beta:.6g} "
            f"and the bound {best.bound:.6g}."
        )
    # Where little is to be gained, rounding can cost more than blocks do.
    blocks = euler_decomposition(active, demand, min_crowd=min_crowd, levels=levels)
    fine = rounded(best, demand, min_crowd=min_crowd, levels=levels)
    return min(fine, blocks, key=lambda decomposition: decomposition.total)


def rounded(best: Optimum, demand: int, *, min_crowd: int, levels: int = 8) -> Decomposition:
    """Round an optimum to assignments.

    With q = ceil(demand / (beta·2^levels)) repeats, n_arms arms and n_sets open sets, rounding
    costs at most q·n_sets·(n_arms + 1) + n_arms assignments beyond demand/beta.
    """
    active = best.patterns[best.of_user]  # (n_users, n_arms)
    rounds = demand / best.beta
    repeats = int(np.ceil(rounds / (1 << levels)))
    served = np.zeros(active.shape, np.int64)
    parts: list[Decomposition] = []
    for opened, weight, plays in zip(best.open_sets, best.set_weights, best.plays, strict=True):
        n_slots = int(np.ceil(rounds * weight / repeats - 1e-6))
        if n_slots:
            shares = _whole_plays(best, opened, n_slots * plays / weight, n_slots, min_crowd)
            rows = equitable(shares, n_slots)
            parts.append(Decomposition(rows, np.full(n_slots, repeats, np.int64)))
            informative = shares.sum(axis=0) >= min_crowd * n_slots
            served += repeats * shares * informative
    return joined([*parts, _rest(active, needed(active, demand)[:, None] - served)])


def _whole_plays(
    best: Optimum, opened: BoolArray, plays: FloatArray, n_slots: int, min_crowd: int
) -> LongArray:
    """Round plays per type to whole ones per user that keep ``min_crowd`` users on open arms."""
    inside = best.patterns & opened
    n_inside = inside.sum(axis=1, keepdims=True)
    idle = n_inside[:, 0] == 0
    # Time that a user need not play on open arms is spent on them all the same.
    spare = np.maximum(0.0, n_slots - plays.sum(axis=1, keepdims=True)) * inside
    plays = plays + spare / np.maximum(1, n_inside)
    plays[idle, best.patterns[idle].argmax(axis=1)] = n_slots
    whole = np.floor(plays + 1e-6).astype(np.int64)
    broken = plays - whole > 1e-6
    extra = n_slots - whole.sum(axis=1)
    # Solver noise may leave more to hand out than there are broken plays.
    short = extra > broken.sum(axis=1)
    broken[short] = inside[short]
    shares, allowed = whole[best.of_user], broken[best.of_user]
    n_users = len(shares)
    n_allowed = np.maximum(1, allowed.sum(axis=1))[:, None]
    turn = (allowed.cumsum(axis=1) - 1 - np.arange(n_users)[:, None]) % n_allowed
    chosen = allowed & (turn < extra[best.of_user, None])
    crowds = np.where(opened, min_crowd * n_slots, 0) - shares.sum(axis=0)
    settle(chosen, allowed, crowds, np.full(len(opened), n_users))
    rounded_plays: LongArray = shares + chosen
    return rounded_plays


def _rest(active: BoolArray, lacking: LongArray) -> Decomposition:
    """Gather on each arm all who want it, as often as the one who lacks most needs it."""
    times = np.where(active, lacking, 0).max(axis=0)
    arms = np.flatnonzero(times > 0)
    dtype = arm_dtype(active.shape[1])
    waiting = active.argmax(axis=1).astype(dtype)
    rows = np.where(active[:, arms].T, arms[:, None].astype(dtype), waiting)
    return Decomposition(rows, times[arms])
