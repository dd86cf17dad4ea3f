"""The public grid: rewards in [0, 1] become whole steps, and only whole numbers are ever summed.

Order, retries and rounding can't show in a sum of integers, and a fingerprint in the low-order
bits of a reward does not survive the grid (threats 13 and 14).
"""

from __future__ import annotations

import numpy as np

from shoal.arrays import FloatArray, LongArray


def to_steps(rewards: FloatArray, reward_steps: int) -> LongArray:
    """Return each reward's nearest step of the grid, -1 for what is not between 0 and 1.

    >>> to_steps(np.array([0.25004, -0.0, float("nan")]), 1000)
    array([250,   0,  -1])
    """
    inside = (rewards >= 0.0) & (rewards <= 1.0)
    steps = np.full(rewards.shape, -1, np.int64)
    steps[inside] = np.rint(rewards[inside] * reward_steps)
    return steps
