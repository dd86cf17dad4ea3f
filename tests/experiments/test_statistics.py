from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shoal.experiments.statistics import mean_interval, prediction_interval, ratio_interval


def test_intervals_are_students() -> None:
    values = np.random.default_rng(0).normal(size=9)
    low, high = stats.t.interval(0.95, 8, values.mean(), stats.sem(values))
    mean = mean_interval(values)
    assert (mean.low, mean.high) == pytest.approx((low, high))
    one = prediction_interval(values)
    assert one.half == pytest.approx(mean.half * np.sqrt(9 + 1))


def test_the_mean_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    n = 4_000
    covered = sum(
        i.low <= 0 <= i.high for i in (mean_interval(rng.normal(size=8)) for _ in range(n))
    )
    single = sum(
        i.low <= rng.normal() <= i.high
        for i in (prediction_interval(rng.normal(size=8)) for _ in range(n))
    )
    # 5 deviations of a binomial of 4,000 at 0.95: false alarms below 1e-6.
    for hits in (covered, single):
        assert abs(hits - 0.95 * n) < 5 * np.sqrt(n * 0.95 * 0.05)


def test_the_ratio_has_the_jackknife_error() -> None:
    rng = np.random.default_rng(2)
    wholes = rng.uniform(1, 2, size=200)
    parts = 0.3 * wholes + rng.normal(scale=0.1, size=200)
    left = (parts.sum() - parts) / (wholes.sum() - wholes)
    error = np.sqrt(199 / 200 * ((left - left.mean()) ** 2).sum())
    ratio = ratio_interval(parts, wholes)
    assert ratio.mean == pytest.approx(parts.sum() / wholes.sum())
    assert ratio.half == pytest.approx(stats.t.ppf(0.975, 199) * error, rel=0.01)
    assert ratio_interval(parts, np.zeros(200)).mean == 0
