import numpy as np
import pytest
from scipy.stats import chi2

from shoal.decompositions import is_decomposition, random_decomposition
from shoal.decompositions.random import draw
from shoal.errors import DemandError


def test_draws_active_arms_uniformly() -> None:
    """Chi-square per user at a false-alarm probability of 1e-7 for each of 6 users."""
    active = np.array([[1, 1, 1, 1, 1], [1, 0, 1, 0, 1], [0, 1, 1, 0, 0]] * 2, bool)
    rows = draw(active, 20_000, rng=np.random.default_rng(0))
    for user, wanted in enumerate(active):
        counts = np.bincount(rows[:, user], minlength=5)
        assert (counts[~wanted] == 0).all()
        mean = len(rows) / wanted.sum()
        statistic = ((counts[wanted] - mean) ** 2 / mean).sum()
        assert statistic < chi2.isf(1e-7, wanted.sum() - 1)


def test_stops_with_the_assignment_that_meets_the_last_demand() -> None:
    active = np.random.default_rng(0).random((30, 3)) < 0.7
    active[:, 0] = True
    decomposition = random_decomposition(active, 20, min_crowd=4, rng=np.random.default_rng(1))
    rows = decomposition.assignments
    assert is_decomposition(active, 20, rows, min_crowd=4)
    assert not is_decomposition(active, 20, rows[:-1], min_crowd=4)


def test_a_partial_one_stops_at_the_limit() -> None:
    active = np.ones((6, 3), bool)
    rng = np.random.default_rng(0)
    decomposition = random_decomposition(active, 50, min_crowd=6, rng=rng, limit=40, partial=True)
    assert decomposition.total == 40


def test_says_which_pair_chance_did_not_serve() -> None:
    active = np.ones((12, 3), bool)
    with pytest.raises(
        DemandError, match="arm 0 must be informative for user 0 in 17 of limit=150"
    ):
        random_decomposition(active, 50, min_crowd=12, rng=np.random.default_rng(0), limit=150)
