"""Group sizes where not everyone reports."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shoal.grouping.sizes import group_size, safe_size
from shoal.model.merging import merge_short


@pytest.mark.parametrize(("share", "size"), [(1.0, 4), (0.7, 8), (0.05, 30)])
def test_groups_are_large_enough_to_be_released_most_of_the_time(share: float, size: int) -> None:
    assert safe_size(4, share, 30) == size
    if share > 0.5:
        assert stats.binom.sf(3, size, share) > 0.9


@pytest.mark.parametrize(("least", "share"), [(4, 0.7), (20, 0.7), (20, 0.9), (10, 0.3)])
def test_groups_have_the_size_that_makes_most_totals_once_merged(least: int, share: float) -> None:
    rng = np.random.default_rng(5)

    def totals_per_member(size: int) -> float:
        reporters = rng.binomial(size, share, size=200_000 // size)
        into = merge_short(reporters, np.zeros_like(reporters), least)
        return len(np.unique(into[into >= 0])) / (size * len(reporters))

    most = max(totals_per_member(size) for size in range(least, 3 * least))
    assert totals_per_member(group_size(least, share, 3 * least)) > 0.97 * most
