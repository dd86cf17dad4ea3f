"""Optimal decomposition (Section 3.4.2, Lemma 3): D/beta assignments, up to rounding.

Each open set of the optimum (``beta.max_beta``) becomes a stretch of slots with that set open.
Plays per user are rounded to integers that keep every crowd, and spread over the slots by Euler
tours (``equitable``), so that every slot is informative on the whole set. What rounding down
took from users is made up for at the end, arm by arm, with everyone who wants the arm.
"""

import numpy as np

from shoal.arrays import BoolArray, FloatArray, LongArray
from shoal.decompositions.beta.max_beta import MaxBeta, max_beta
from shoal.decompositions.decomposition import Decomposition, concatenate, first_arms, gather_users
from shoal.decompositions.demand import batched_graph, required_samples
from shoal.decompositions.equitable import equitable, fit_loads
from shoal.decompositions.euler import open_blocks
from shoal.decompositions.home_away import home_away_decomposition
from shoal.errors import DemandError


def optimal_decomposition(
    active: BoolArray,
    demand: int,
    *,
    min_crowd: int,
    rng: np.random.Generator | None = None,
    seconds: float = 60.0,
) -> Decomposition:
    """Meet the demand in demand/beta assignments, the fewest up to rounding.

    Where all arms can be open at once, that is the Euler decomposition. Rounding can cost more than
    is gained: then it is ``home-away``, whose bound so holds here too. Refuses if the largest beta
    could not be proven within ``seconds``; ``max_beta`` then still returns beta and a bound.
    """
    home_away = home_away_decomposition(active, demand, min_crowd=min_crowd)
    if len(open_blocks(batched_graph(active, min_crowd)[0])) == 1:
        return home_away
    best = max_beta(active, min_crowd=min_crowd, seconds=seconds)
    if best.gap > 0:
        raise DemandError(
            f"beta must be proven the largest within seconds={seconds:g}; got {best.beta:.6g} "
            f"and the bound {best.bound:.6g}."
        )
    rounded = round_to_assignments(best, demand)
    return min(rounded, home_away, key=lambda decomposition: decomposition.total)


def round_to_assignments(best: MaxBeta, demand: int, *, levels: int = 8) -> Decomposition:
    """Round an optimum to assignments.

    With q = ceil(demand / (beta·2^levels)) repeats, n_arms arms and n_sets open sets, rounding
    costs at most q·n_sets·(n_arms + 1) + n_arms assignments beyond demand/beta.
    """
    active = best.graph.patterns[best.of_user]  # (n_users, n_arms)
    rounds = demand / best.beta
    repeats = int(np.ceil(rounds / (1 << levels)))
    n_served = np.zeros(active.shape, np.int64)
    parts: list[Decomposition] = []
    for open_arms, weight, plays in zip(best.open_sets, best.set_weights, best.plays, strict=True):
        n_slots = int(np.ceil(rounds * weight / repeats - 1e-6))
        if n_slots:
            shares = _integer_plays(best, open_arms, n_slots * plays / weight, n_slots)
            rows = equitable(shares, n_slots)
            parts.append(Decomposition(rows, np.full(n_slots, repeats, np.int64)))
            informative = shares.sum(axis=0) >= best.graph.min_crowd * n_slots
            n_served += repeats * shares * informative
    lacking = np.where(active, required_samples(active, demand)[:, None] - n_served, 0).max(axis=0)
    return concatenate([*parts, gather_users(active, lacking, first_arms(active))])


def _integer_plays(
    best: MaxBeta, open_arms: BoolArray, plays: FloatArray, n_slots: int
) -> LongArray:
    """Round plays per type to integers per user that keep ``min_crowd`` users on open arms."""
    patterns, _, min_crowd = best.graph
    inside = patterns & open_arms
    n_inside = inside.sum(axis=1, keepdims=True)
    idle = n_inside[:, 0] == 0
    # Time that a user need not play on open arms is spent on them all the same.
    spare = np.maximum(0.0, n_slots - plays.sum(axis=1, keepdims=True)) * inside
    plays = plays + spare / np.maximum(1, n_inside)
    plays[idle, patterns[idle].argmax(axis=1)] = n_slots
    floors = np.floor(plays + 1e-6).astype(np.int64)
    fractional = plays - floors > 1e-6
    extra = n_slots - floors.sum(axis=1)
    # Solver noise may leave more to hand out than there are fractional plays.
    short = extra > fractional.sum(axis=1)
    fractional[short] = inside[short]
    shares, allowed = floors[best.of_user], fractional[best.of_user]
    n_users = len(shares)
    n_allowed = np.maximum(1, allowed.sum(axis=1))[:, None]
    turn = (allowed.cumsum(axis=1) - 1 - np.arange(n_users)[:, None]) % n_allowed
    chosen = allowed & (turn < extra[best.of_user, None])
    crowds = np.where(open_arms, min_crowd * n_slots, 0) - shares.sum(axis=0)
    fit_loads(chosen, allowed, crowds, np.full(len(open_arms), n_users))
    rounded_plays: LongArray = shares + chosen
    return rounded_plays
