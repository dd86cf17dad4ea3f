from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments import simulate
from shoal.instances import FAMILIES, lower_bound


def test_the_main_family_gives_each_user_one_favourite_of_mean_sqrt_c_over_t() -> None:
    means = lower_bound(
        "main",
        n_users=4000,
        n_arms=4,
        min_group_size=9,
        horizon=10_000,
        rng=np.random.default_rng(0),
    )
    assert means.shape == (4000, 4)
    assert ((means > 0).sum(axis=1) == 1).all()
    assert means.max() == np.sqrt(9 / 10_000)
    # Favourites are uniform: 1,000 an arm, 6 deviations of 27.4; false alarm below 1e-7.
    assert np.abs((means > 0).sum(axis=0) - 1000).max() < 6 * 27.4


def members(family: str, **options: Any) -> set[tuple[float, ...]]:
    rng = np.random.default_rng(0)
    return {tuple(lower_bound(family, rng=rng, **options).ravel()) for _ in range(50)}


def test_the_no_clusters_family_has_the_two_members_of_theorem_4() -> None:
    low, high = 0.5 - 1000 ** (-1 / 3), 0.5 + 1000 ** (-1 / 3)
    first = (1, 0, 0, 0, low, high, 0, high, low)
    second = (1, 0, 0, 0, high, low, 0, low, high)
    assert members("no-clusters", horizon=1000) == {first, second}


def test_the_gap_may_be_given() -> None:
    means = lower_bound("no-clusters", gap=0.2, horizon=1000, rng=np.random.default_rng(0))
    assert sorted(means[1]) == [0.0, 0.3, 0.7]


def test_the_shortest_horizon_still_makes_probabilities() -> None:
    means = lower_bound("no-clusters", horizon=8, rng=np.random.default_rng(0))
    assert set(means.ravel()) == {0.0, 1.0}


def test_the_too_few_users_family_has_the_two_members_of_theorem_5() -> None:
    assert members("too-few-users") == {(1, 0, 0, 1), (0, 1, 1, 0)}


@pytest.mark.parametrize("family", ["no-clusters", "too-few-users"])
def test_means_have_the_size_that_the_family_says(family: str) -> None:
    means = lower_bound(family, horizon=1000, rng=np.random.default_rng(0))
    assert means.shape == (FAMILIES[family].n_users, FAMILIES[family].n_arms)


MAIN = {"n_users": 10, "n_arms": 2, "min_group_size": 4, "horizon": 100}


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("main", {**MAIN, "n_users": None}, "n_users must be a whole number of at least 1; got N"),
        ("main", {**MAIN, "horizon": None}, "horizon must be a whole number of at least 1; got N"),
        ("main", {**MAIN, "horizon": 3}, "horizon must be a whole number of at least 4; got 3."),
        ("main", {**MAIN, "min_group_size": 11}, "min_group_size must be between 1 and n_users=10"),
        ("main", {**MAIN, "gap": 0.1}, "gap must be left out for the main family; got 0.1."),
        ("no-clusters", {}, "horizon or gap must be set for the no-clusters family"),
        ("no-clusters", {"horizon": 7}, "horizon must be a whole number of at least 8; got 7."),
        ("no-clusters", {"gap": 0.6}, "gap must be above 0 and at most 0.5; got 0.6."),
        ("no-clusters", {"gap": 0.1, "n_users": 4}, "n_users must be 3 for the no-clusters family"),
        ("too-few-users", {"min_group_size": 1}, "min_group_size must be 2 for the too-few-users"),
    ],
)
def test_what_the_family_does_not_allow_is_refused(
    family: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}"):
        lower_bound(family, rng=np.random.default_rng(0), **options)


def test_an_unknown_family_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'no-clusters'"):
        lower_bound("no-cluster", rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", ["random", "best-arm", "shoal", "pooled-thompson"])
def test_theorem_5_gives_linear_regret(name: str, rng: np.random.Generator) -> None:
    means = lower_bound("too-few-users", rng=rng)
    short, long = (
        simulate(name, means, min_group_size=2, horizon=t, rewards="deterministic").regret
        for t in (1_000, 10_000)
    )
    assert short == pytest.approx(1_000, rel=0.2)
    assert long == pytest.approx(10_000, rel=0.1)
