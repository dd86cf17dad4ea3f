"""A common trend in time, taken out of a log's rewards before users are compared.

Where rates move and users come at different times, users seem to differ though all are alike; where
arms move differently, they even seem to have tastes. Rows are cut into stretches of time with equal
numbers of rows. The mean of a stretch against that of the whole log is the *trend*: one factor for
all arms, and on top of it one for each arm, each drawn towards 1 as far as chance explains it
(James and Stein's rule). Rewards are divided by it; where an arm's mean is above 1/2, the distance
to 1 is, so that rare events stay what they are.

What users have in common with the time at which they come is lost with the trend: tastes of which
the log could not say whether they are the user's or the day's.
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import FloatArray, LongArray

MAX_STRETCHES = 12
MIN_EVENTS = 40
"""Expected events (successes, or failures where those are rarer) in a stretch of all arms."""

SMALLEST_FACTOR = 0.1
"""A trend is not believed to make anything ten times rarer or more frequent."""


def remove_trend(
    times: FloatArray, arms: LongArray, rewards: FloatArray, n_arms: int
) -> tuple[FloatArray, float, FloatArray]:
    """Return the rewards without the trend, and the deviation of the trend's factor over rows.

    The third is how many rows each stretch of time has of each arm, (n_stretches, n_arms).

    Examples
    --------
    >>> times, arms = np.arange(10_000.0), np.zeros(10_000, dtype=np.int64)
    >>> rewards = (np.arange(10_000) % 10 < np.where(times < 5_000, 1, 3)).astype(float)
    >>> flat, size, _ = remove_trend(times, arms, rewards, 1)
    >>> [round(float(flat[part].mean()), 1) for part in (slice(5_000), slice(5_000, None))]
    [0.2, 0.2]
    >>> round(size, 1)
    0.5
    """
    rows = np.bincount(arms, minlength=n_arms)
    sums = np.bincount(arms, rewards, minlength=n_arms)
    upper = sums > 0.5 * rows  # arms whose failures are the rarer events
    events = np.where(upper[arms], 1.0 - rewards, rewards)
    n_stretches = min(MAX_STRETCHES, int(events.sum() / MIN_EVENTS))
    if n_stretches < 2 or times.min() == times.max():
        return rewards, 0.0, rows[None].astype(np.float64)
    stretch = _stretches(times, n_stretches)
    totals = np.maximum(np.bincount(arms, events, minlength=n_arms), 1e-12)
    means = totals / np.maximum(rows, 1)
    squares = np.bincount(arms, events**2, minlength=n_arms).astype(np.float64, copy=False)
    variances = np.maximum(squares / np.maximum(rows, 1) - means**2, 0.0)
    place, shape = stretch * n_arms + arms, (n_stretches, n_arms)
    counts = np.bincount(place, minlength=n_stretches * n_arms).astype(np.float64).reshape(shape)
    observed = np.bincount(place, events, minlength=n_stretches * n_arms).astype(np.float64)
    observed = observed.reshape(shape)
    common = _shrunk(observed.sum(axis=1), counts @ means, counts @ variances)[:, None]
    by_arm = np.column_stack(
        [
            _shrunk(observed[:, arm], counts[:, arm] * means[arm] * common[:, 0],
                    counts[:, arm] * variances[arm])
            for arm in range(n_arms)
        ]
    )  # fmt: skip
    factors = np.clip(common * by_arm, SMALLEST_FACTOR, 1 / SMALLEST_FACTOR)
    # The mean of an arm stays what it is.
    factors *= counts.sum(axis=0) / np.maximum((counts * factors).sum(axis=0), 1e-12)
    by_row = factors[stretch, arms]
    level = events / by_row
    return np.where(upper[arms], 1.0 - level, level), float(by_row.std()), counts


def _stretches(times: FloatArray, n_stretches: int) -> LongArray:
    """Return each row's stretch; equal times are never parted."""
    edges = np.quantile(times, np.arange(1, n_stretches) / n_stretches)
    places: LongArray = np.searchsorted(edges, times, side="right").astype(np.int64)
    return places


def _shrunk(observed: FloatArray, expected: FloatArray, variances: FloatArray) -> FloatArray:
    """Return observed / expected for each stretch, drawn to 1 as far as chance explains it."""
    present = expected > 0
    safe = np.where(present, expected, 1.0)
    ratio = np.where(present, observed / safe, 1.0)
    chance = np.where(present, variances / safe**2, 0.0)
    weights = expected / max(expected.sum(), 1e-300)
    spread = float((weights * (ratio - 1) ** 2).sum())
    noise = float((weights * chance).sum())
    kept_part = max(0.0, 1.0 - noise / spread) if spread > 0 else 0.0
    factors: FloatArray = 1.0 + kept_part * (ratio - 1.0)
    return factors
