"""The public grid: rewards in [0, 1] become whole steps, and only whole numbers are ever summed.

Order, retries and rounding can't show in a sum of integers, and a fingerprint in the low-order
bits of a reward does not survive the grid (threats 13 and 14).
"""

from __future__ import annotations


def to_steps(reward: float, reward_steps: int) -> int | None:
    """Return the nearest step of the grid, None for what is no number between 0 and 1.

    >>> to_steps(0.25004, 1000), to_steps(-0.0, 1000), to_steps(float("nan"), 1000)
    (250, 0, None)
    """
    return round(reward * reward_steps) if 0.0 <= reward <= 1.0 else None
