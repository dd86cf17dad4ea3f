"""Prices: the knowledge gradient against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.value_of_information import expected_improvement, price


@pytest.mark.parametrize("z", [-6.0, -1.0, 0.0, 0.5, 3.0])
def test_expected_improvement_is_the_mean_of_a_normal_above_zero(z: float) -> None:
    literal, _ = integrate.quad(lambda x: max(x + z, 0.0) * stats.norm.pdf(x), -12, 12)
    assert expected_improvement(z) == pytest.approx(literal, abs=1e-7)


@settings(deadline=None, derandomize=True)
@given(
    st.floats(0, 0.5),
    st.floats(1e-4, 0.1),
    st.floats(1e-4, 0.1),
    st.floats(1, 1e4),
    st.floats(1, 1e5),
)
def test_a_price_is_never_negative_and_falls_with_the_gap(
    gap: float, variance: float, rival: float, halving: float, left: float
) -> None:
    here = price(gap, variance, rival, halving, left)
    assert here >= 0
    assert price(gap + 0.1, variance, rival, halving, left) <= here * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("gap", [0.0, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("halving", [2.0, 50.0, 1000.0])
def test_the_number_of_observations_is_nearly_the_best(gap: float, halving: float) -> None:
    """Where the horizon is long, the price is nearly the largest worth per observation."""
    variance, rival, left = 0.02, 0.01, 1e9
    both = variance + rival

    chance = min(1.0, 2 * stats.norm.sf(gap / math.sqrt(both)))
    expected = chance + (1 - chance) * JOINT.early_end

    def worth(n: float) -> float:
        moved = math.sqrt(both / (1 + halving / n))
        return variance / both * left / (n * expected) * moved * expected_improvement(-gap / moved)

    best = max(worth(n) for n in np.geomspace(1, 1e6, 4000))
    assert 0.85 * best < price(gap, variance, rival, halving, left) < best * (1 + 1e-6)
