"""Prices: the knowledge gradient against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.value_of_information import expected_improvement, index, price


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


@pytest.mark.parametrize("s", [0.2, 1.0, 5.0, 100.0, 3_000.0])
def test_the_index_is_that_of_the_best_stopping_rule(s: float) -> None:
    """To try the arm pays at 4 % less than the index's bonus, and no longer at 4 % more."""
    mean, variance, noise = 0.3, 0.04, 0.8
    bonus = (index(mean, variance, noise, s * noise / variance) - mean) / math.sqrt(variance)
    assert _value_of_trying(0.96 * bonus, s) > 0
    assert _value_of_trying(1.04 * bonus, s) <= 1e-9 * s


def _value_of_trying(known: float, s: float, *, n_steps: int = 300) -> float:
    """Return by how much playing an arm of mean N(0, 1) at first beats a ``known`` reward.

    By backward induction over the posterior's mean; time is the posterior's precision, up to 1 + s.
    """
    precisions = np.geomspace(1.0, 1.0 + s, n_steps + 1)
    grid = np.linspace(-6.0, 6.0, 801)
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    value = going_on = np.zeros_like(grid)
    for now, then in zip(precisions[-2::-1], precisions[:0:-1], strict=True):
        deviation = math.sqrt(1 / now - 1 / then)
        later = np.interp(grid[:, None] + deviation * nodes, grid, value) @ weights / weights.sum()
        going_on = (grid - known) * (then - now) + later
        value = np.maximum(going_on, 0.0)
    return float(np.interp(0.0, grid, going_on))
