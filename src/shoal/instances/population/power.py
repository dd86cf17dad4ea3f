"""How many rows a log would need to show a gain: asked of the estimator itself.

In populations that the log allows, tastes are shrunk or stretched until full knowledge would gain
just so much. Logs of their users are simulated, with a multiple of the rows that the log has, and
fitted. The least multiple is searched at which most of them leave no doubt about tastes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shoal.instances.population.moments import Moments, estimate_moments
from shoal.instances.population.pairs import PairTotals
from shoal.instances.population.posterior import fit_posterior
from shoal.instances.population.worlds import World

STEP, N_STEPS = 1.5, 13
"""Factor between the multiples that are tried, and how many of them."""

MAX_TIMES = STEP**N_STEPS
"""More rows than so many times those of the log, about 200, are not considered."""

N_SIMULATED, N_SHOWING = 12, 9
"""Logs simulated for a multiple, and how many of them have to show tastes."""

MAX_USERS_SIMULATED = 20_000
"""Of a log with more users, more rows are asked for than it needs."""

N_POWER_PARTICLES = 200
ENOUGH = 0.975
"""Probability of tastes at which the interval of the gain leaves 0."""


def rows_to_show(
    gain: float,
    worlds: Sequence[World],
    moments: Moments,
    pairs: PairTotals,
    rng: np.random.Generator,
) -> float | None:
    """Return how many times the log's rows would show such a gain; None if too many.

    Parameters
    ----------
    gain
        What full knowledge would earn above the best arm.
    worlds
        Populations with tastes, for their shapes; simulated logs take them in turn.
    """
    targets = [target for world in worlds if (target := _with_gain(world, gain)) is not None]
    if not targets:
        return None
    if pairs.n_users > MAX_USERS_SIMULATED:
        pairs = pairs.of_users(rng.choice(pairs.n_users, MAX_USERS_SIMULATED, replace=False))

    def shows(times: float) -> bool:
        missed = 0
        for number in range(N_SIMULATED):
            simulated = _simulate(times, targets[number % len(targets)], moments, pairs, rng)
            posterior = fit_posterior(
                estimate_moments(simulated), rng, n_particles=N_POWER_PARTICLES
            )
            missed += posterior.taste <= ENOUGH
            if missed > N_SIMULATED - N_SHOWING:
                return False
        return True

    low, high = 0, N_STEPS
    if not shows(MAX_TIMES):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shows(STEP**middle) else (middle, high)
    return float(STEP**high)


def _with_gain(world: World, gain: float) -> World | None:
    """Stretch users' tastes until full knowledge gains as much as asked for.

    Arm means stay, and so does what a user likes all arms more by.
    """
    mean = world.weights @ world.atoms
    deviations = world.atoms - mean
    level = deviations.mean(axis=1, keepdims=True)

    def stretched(factor: float) -> World:
        atoms = mean + level + factor * (deviations - level)
        return replace(world, atoms=np.clip(atoms, 0.0, 1.0))

    low, high = 0.0, 1.0
    while stretched(high).gain < gain:
        high *= 2
        if high > 1e3:
            return None
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if stretched(middle).gain < gain else (low, middle)
    return stretched(high)


def _simulate(
    times: float, world: World, moments: Moments, pairs: PairTotals, rng: np.random.Generator
) -> PairTotals:
    """Draw the totals of a log with so many times the rows, of users of this world.

    A reward is m + s (b - m), with m the user's mean, b 1 with probability m and else 0, and s² the
    variance of the log's rewards against that of rewards of 0 or 1.
    """
    shares = pairs.counts.sum(axis=0) / pairs.counts.sum()
    rows = np.rint(times * pairs.counts.sum(axis=1)).astype(np.int64)
    counts = rng.multinomial(rows, shares)
    users = world.draw(pairs.n_users, rng)
    successes = rng.binomial(counts, users)
    scale = np.sqrt(np.minimum(moments.dispersion, 1.0))
    sums = counts * users * (1 - scale) + scale * successes
    squares = (
        successes * (users + scale * (1 - users)) ** 2
        + (counts - successes) * (users * (1 - scale)) ** 2
    )
    return PairTotals(counts.astype(np.float64), sums, squares)
