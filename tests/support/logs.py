"""Logs that tests read."""

from __future__ import annotations

import numpy as np
import polars as pl


def visits(n_rows: int, *, rate: float = 0.3, seed: int = 0) -> pl.DataFrame:
    """Return a log of 60 users, 3 arms and 20 days, in which many rows coincide."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "user": rng.integers(60, size=n_rows),
            "arm": rng.integers(3, size=n_rows),
            "reward": (rng.random(n_rows) < rate).astype(int),
            "day": rng.integers(20, size=n_rows),
        }
    )
