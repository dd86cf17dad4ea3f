from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import UnknownNameError
from shoal.policies.paper.grid import batch_ends, default_batches


@pytest.mark.parametrize("n_batches", [2, 3, 4, 5])
def test_the_minimax_grid_follows_its_recursion(n_batches: int) -> None:
    horizon = 1_000_000
    a = horizon ** (1 / (2 - 2 ** (1 - n_batches)))
    exact = [a]
    while len(exact) < n_batches:
        exact.append(a * math.sqrt(exact[-1]))
    assert exact[-1] == pytest.approx(horizon)
    ends = batch_ends(horizon, n_batches)
    np.testing.assert_allclose(ends, exact, atol=1)
    assert ends[-1] == horizon


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 10**7), st.integers(1, 20), st.sampled_from(["minimax", "geometric"]))
def test_batches_are_never_empty_and_end_at_the_horizon(
    horizon: int, n_batches: int, grid: str
) -> None:
    ends = batch_ends(horizon, n_batches, grid=grid)
    assert ends[-1] == horizon
    assert (np.diff(ends, prepend=0) >= 1).all()
    assert len(ends) <= n_batches


@pytest.mark.parametrize("horizon", [1, 2, 100, 10**5, 10**9])
def test_the_default_number_of_batches_is_log_log_t(horizon: int) -> None:
    expected = round(math.log2(math.log2(horizon))) if horizon > 4 else 2
    assert default_batches(horizon) == max(2, expected)


def test_an_unknown_grid_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'minimax'"):
        batch_ends(100, 3, grid="minmax")
