"""How many rows a log would need to show a gain: asked of the estimator itself.

A population with tastes that the log allows is shrunk or stretched until full knowledge would gain
just so much. Its covariance is what a log of any length estimates on average; the errors are those
of simulated rows, a multiple of those that the log has. The least multiple at which the posterior
would believe in tastes is searched: about half of such logs would then show them, as estimates lie
above and below their average alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.arrays import FloatArray
from shoal.instances.population.moments import Moments, estimate_moments
from shoal.instances.population.pairs import PairTotals
from shoal.instances.population.posterior import fit_posterior
from shoal.instances.population.worlds import World

MOST_TIMES = 256.0
"""More rows than so many times those of the log are not considered."""

MOST_USERS_SIMULATED = 2_000
N_POWER_PARTICLES = 200
ENOUGH = 0.975
"""Probability of tastes at which the interval of the gain leaves 0."""


def rows_to_show(
    gain: float, world: World, moments: Moments, pairs: PairTotals, rng: np.random.Generator
) -> float | None:
    """Return how many times the log's rows would show such a gain; None if too many.

    Parameters
    ----------
    gain
        What full knowledge would earn above the best arm.
    world
        A population with tastes, for their shape.
    """
    target = _with_gain(world, gain)
    if target is None:
        return None

    def shows(times: float) -> bool:
        simulated = _moments_after(times, target, moments, pairs, rng)
        return fit_posterior(simulated, rng, n_particles=N_POWER_PARTICLES).taste > ENOUGH

    if not shows(MOST_TIMES):
        return None
    low, high = 1.0, MOST_TIMES
    while high / low > 1.2:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def _with_gain(world: World, gain: float) -> World | None:
    """Stretch users' distances from the mean until full knowledge gains as much as asked for."""
    mean = world.weights @ world.atoms

    def stretched(factor: float) -> World:
        return replace(world, atoms=np.clip(mean + factor * (world.atoms - mean), 0.0, 1.0))

    low, high = 0.0, 1.0
    while stretched(high).gain < gain:
        high *= 2
        if high > 1e3:
            return None
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if stretched(middle).gain < gain else (low, middle)
    return stretched(high)


def _moments_after(
    times: float, world: World, moments: Moments, pairs: PairTotals, rng: np.random.Generator
) -> Moments:
    """Return the moments of an average log with so many times the rows."""
    n_users = min(pairs.n_users, MOST_USERS_SIMULATED)
    chosen = rng.choice(pairs.n_users, n_users, replace=False)
    shares = pairs.counts.sum(axis=0) / pairs.counts.sum()
    rows = np.rint(times * pairs.counts[chosen].sum(axis=1)).astype(np.int64)
    counts = rng.multinomial(rows, shares).astype(np.float64)
    mean = world.weights @ world.atoms
    deviations = world.atoms - mean
    covariance = (deviations * world.weights[:, None]).T @ deviations
    noise = moments.noise(np.diag(covariance))
    users = world.draw(n_users, rng)
    luck = rng.standard_normal(counts.shape) * np.sqrt(counts * noise)
    sums = counts * users + luck
    simulated = estimate_moments(PairTotals(counts, sums, counts * (noise + users**2)))
    part: FloatArray = np.array(n_users / pairs.n_users)
    both, first, second, alone = simulated.noise_factors
    return replace(
        simulated,
        arm_means=moments.arm_means,
        covariance=covariance,
        noise_factors=(both * part, first * part, second * part, alone * part),
    )
