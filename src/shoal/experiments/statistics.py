"""Student's 95 % intervals, the only place that computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from shoal.arrays import FloatArray


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with a 95 % interval, from Student's distribution over the runs."""

    mean: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2

    def within(self, lowest: float, highest: float) -> Interval:
        """Return the part of it between two bounds that no value can pass."""
        low, mean, high = (min(max(x, lowest), highest) for x in (self.low, self.mean, self.high))
        return Interval(mean, low, high)


def mean_interval(values: FloatArray) -> Interval:
    """Return the mean's interval.

    >>> import numpy as np
    >>> mean_interval(np.array([1.0, 2.0, 3.0]))
    Interval(mean=2.0, low=-0.48413..., high=4.48413...)
    """
    return _around(float(values.mean()), values.std(ddof=1) / len(values) ** 0.5, len(values))


def prediction_interval(values: FloatArray) -> Interval:
    """Return the interval for one more value of the same kind."""
    n = len(values)
    return _around(float(values.mean()), values.std(ddof=1) * (1 + 1 / n) ** 0.5, n)


def ratio_interval(parts: FloatArray, wholes: FloatArray) -> Interval:
    """Return the interval of mean(parts) / mean(wholes), by linearisation; 0 of nothing is 0."""
    whole = float(wholes.mean())
    if whole <= 0:
        return Interval(0.0, 0.0, 0.0)
    ratio = float(parts.mean()) / whole
    residuals = (parts - ratio * wholes) / whole
    return _around(ratio, residuals.std(ddof=1) / len(parts) ** 0.5, len(parts))


def regret_intervals(records: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Return for each group the mean regret over runs, their number, and its interval.

    One run has no interval: its bounds are null.
    """
    means = records.group_by(by, maintain_order=True).agg(
        pl.mean("regret").alias("mean"),
        pl.std("regret").fill_null(0.0).alias("deviation"),
        pl.len().alias("runs"),
    )
    quantiles = {n: _quantile(n) if n > 1 else None for n in means["runs"].unique()}
    half = (
        pl.col("deviation")
        / pl.col("runs").sqrt()
        * pl.col("runs").replace_strict(quantiles, return_dtype=pl.Float64)
    )
    return means.with_columns(low=pl.col("mean") - half, high=pl.col("mean") + half).drop(
        "deviation"
    )


def _around(mean: float, error: float, n: int) -> Interval:
    half = float(_quantile(n) * error)
    return Interval(mean, mean - half, mean + half)


def _quantile(n: int) -> float:
    """Return the 97.5 % point of Student's distribution for the mean of n values."""
    return students_quantile(n - 1)


def students_quantile(n_free: int) -> float:
    """Return the 97.5 % point of Student's distribution with so many degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(n_free, 0.975))
