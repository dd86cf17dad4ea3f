"""Prices: the knowledge gradient against its definition."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from shoal.model import Problem
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.posterior import JointPosterior, mixed, shard_belief
from shoal.policies.shoal.joint.value_of_information import (
    all_prices,
    best_returns,
    bounded_improvement,
    expected_improvement,
    index,
    price,
)


@pytest.mark.parametrize("z", [-6.0, -1.0, 0.0, 0.5, 3.0])
def test_expected_improvement_is_the_mean_of_a_normal_above_zero(z: float) -> None:
    literal, _ = integrate.quad(lambda x: max(x + z, 0.0) * stats.norm.pdf(x), -12, 12)
    assert expected_improvement(z) == pytest.approx(literal, abs=1e-7)


@pytest.mark.parametrize("mean", [0.2, 0.7, 0.98])
@pytest.mark.parametrize("rival", [0.3, 0.6, 0.9])
def test_an_improvement_ends_at_the_bound(mean: float, rival: float) -> None:
    """The rival is a mean that is hardly ever above the bound, as the formula takes it."""
    variance, rival_variance = 0.04, 0.0004
    arm, other = stats.norm(mean, 0.2), stats.norm(rival, 0.02)

    def improvement(x: float) -> float:
        gap = (min(x, 1.0) - rival) / 0.02
        return 0.02 * expected_improvement(gap) * arm.pdf(x)

    literal, _ = integrate.quad(improvement, mean - 2, mean + 2, points=[1.0, rival], limit=200)
    formula = bounded_improvement(rival - mean, variance + rival_variance, 1 - mean, variance)
    assert other.sf(1) < 1e-6
    assert formula == pytest.approx(literal, abs=1e-6)
    free = bounded_improvement(rival - mean, variance + rival_variance, math.inf, variance)
    deviation = math.sqrt(variance + rival_variance)
    assert free == deviation * expected_improvement((mean - rival) / deviation) > formula


@settings(deadline=None, derandomize=True)
@given(
    st.floats(0, 0.5),
    st.floats(0.01, 1),
    st.floats(1e-4, 0.1),
    st.floats(1e-4, 0.1),
    st.floats(1, 1e4),
    st.floats(1, 1e5),
)
def test_a_price_is_never_negative_and_falls_with_the_gap_and_without_room(
    gap: float, room: float, variance: float, rival: float, halving: float, left: float
) -> None:
    here = price(gap, math.inf, variance, rival, halving, left)
    assert price(gap + 0.1, math.inf, variance, rival, halving, left) <= here * (1 + 1e-9) + 1e-12
    bounded = price(gap, room, variance, rival, halving, left)
    assert 0 <= bounded <= here
    assert bounded <= price(gap, room + 0.1, variance, rival, halving, left) * (1 + 1e-9) + 1e-12


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
    assert 0.85 * best < price(gap, math.inf, variance, rival, halving, left) < best * (1 + 1e-6)


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


def test_prices_count_no_gain_beyond_the_bound_of_rewards() -> None:
    """With a favourite of 0.95 and an arm of N(0.5, 1/6), most of a normal gain lies above 1."""
    belief = JointPosterior(Problem(6, 2, 2)).belief
    belief.means[0, 0] = 0.95
    belief.covariances[0, 0] = np.eye(6) * 1e-4
    shard, allowed = shard_belief(belief, 0), np.ones((2, 6), np.bool_)
    bounded, free = (all_prices(shard, mixed(shard), allowed, 1e4, b) for b in (True, False))
    assert (bounded.prices[1] < 0.5 * free.prices[1]).all()
    assert (bounded.regrets < 0.5 * free.regrets).all()
    assert (bounded.prices[1] > 0).all()


@settings(deadline=None)  # the kernel is compiled
@given(
    costs=st.lists(st.floats(0.01, 5.0), min_size=1, max_size=5),
    ratios=st.lists(st.floats(1.01, 50.0), min_size=5, max_size=5),
    weights=st.lists(st.floats(0.1, 1.0), min_size=2, max_size=4),
    regret=st.floats(0.01, 5.0),
)
def test_groups_for_the_same_users_are_those_of_the_highest_return(
    costs: list[float], ratios: list[float], weights: list[float], regret: float
) -> None:
    """Users who share every value in the same parts are one user: no set of groups returns more."""
    parts, cost = np.array(weights) / sum(weights), np.array(costs)
    value = cost * np.array(ratios[: len(costs)])
    pays = best_returns(cost, np.outer(value, parts), regret * parts)
    subsets = [np.array(s, bool) for s in product([False, True], repeat=len(costs)) if any(s)]
    best = max(value[s].sum() / (regret + cost[s].sum()) for s in subsets)
    if best > 1:
        assert value[pays].sum() / (regret + cost[pays].sum()) == pytest.approx(best)
    else:
        assert pays.all()


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_a_group_that_is_worth_its_cost_does_not_wait_for_ever(seed: int) -> None:
    """Of groups that are worth their costs one always pays; alone, or among strangers, each."""
    rng = np.random.default_rng(seed)
    n_groups, n_users = rng.integers(1, 6), rng.integers(1, 8)
    values = rng.exponential(size=(n_groups, n_users)) * rng.integers(0, 2, (n_groups, n_users))
    values[:, 0] += 0.01
    costs, regrets = values.sum(axis=1) * rng.uniform(0.01, 0.99, n_groups), rng.random(n_users)
    assert best_returns(costs, values, regrets).any()
    strangers = np.zeros((n_groups, n_groups * n_users))
    for group in range(n_groups):
        strangers[group, group * n_users : (group + 1) * n_users] = values[group]
    assert best_returns(costs, strangers, np.tile(regrets, n_groups)).all()
