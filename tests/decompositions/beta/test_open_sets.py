from itertools import product

import numpy as np
import pytest

from shoal.decompositions.beta.open_sets import MilpPricing, TrialPricing
from shoal.decompositions.demand import BatchedGraph


def test_both_pricings_agree() -> None:
    rng = np.random.default_rng(0)
    patterns = np.array(list(product([False, True], repeat=4)))[1:]
    counts = rng.integers(1, 6, len(patterns))
    graph = BatchedGraph(patterns, counts, min_crowd=9)
    trial, milp = TrialPricing(graph), MilpPricing(graph)
    for _ in range(5):
        prices = rng.normal(size=patterns.shape)
        values = [trial.value(prices, open_arms) for open_arms in trial.sets]
        better, bound = milp.best(prices, above=0.0, seconds=10)
        assert bound == pytest.approx(max(values), abs=1e-6)
        assert trial.value(prices, better[0]) == pytest.approx(bound, abs=1e-6)
