from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from shoal.errors import InvalidInputError, UnknownNameError
from shoal.instances import INSTANCES, clustered, instance, linear, uniform

RNG_SEED = 20_220


@pytest.mark.parametrize("name", sorted(INSTANCES))
def test_every_class_draws_means_in_the_unit_interval(name: str) -> None:
    means = instance(name, 200, 7, rng=np.random.default_rng(RNG_SEED))
    assert means.shape == (200, 7)
    assert means.dtype == np.float64
    assert 0.0 <= means.min() < means.max() <= 1.0


@pytest.mark.parametrize("name", sorted(INSTANCES))
def test_the_same_seed_gives_the_same_means(name: str) -> None:
    first, second = (instance(name, 20, 3, rng=np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_uniform_means_fill_the_unit_interval_evenly() -> None:
    # 100,000 means in 10 bins: 6 deviations of 95 each; false alarm below 1e-7.
    means = uniform(20_000, 5, rng=np.random.default_rng(RNG_SEED))
    counts = np.histogram(means, bins=10, range=(0.0, 1.0))[0]
    assert np.abs(counts - 10_000).max() < 6 * 95


@pytest.mark.parametrize("dimension", [2, 10])
def test_linear_means_have_the_moments_of_a_cosine(dimension: int) -> None:
    # A random cosine has mean 0 and variance 1 / dimension, so means have 1/2 and 1/(4 dimension).
    # Users share the arms' vectors, so it is over many draws; 6 deviations, false alarm 2e-9.
    rng = np.random.default_rng(RNG_SEED)
    means = np.array([linear(1, 1, rng=rng, dimension=dimension)[0, 0] for _ in range(20_000)])
    variance = 1 / (4 * dimension)
    assert abs(means.mean() - 0.5) < 6 * np.sqrt(variance / len(means))
    squares = (means - 0.5) ** 2
    assert abs(squares.mean() - variance) < 6 * squares.std() / np.sqrt(len(means))


def test_linear_means_have_the_rank_of_their_dimension() -> None:
    cosines = 2 * linear(40, 20, rng=np.random.default_rng(RNG_SEED), dimension=3) - 1
    assert np.linalg.matrix_rank(cosines) == 3
    assert np.linalg.matrix_rank(2 * linear(40, 20, rng=np.random.default_rng(0)) - 1) == 10


def test_users_of_a_cluster_agree_where_they_do_not_spread() -> None:
    rng = np.random.default_rng(RNG_SEED)
    means = clustered(500, 4, rng=rng, n_clusters=3, spread=0.0)
    assert len(np.unique(means, axis=0)) == 3


def test_clusters_have_the_given_rate_and_users_the_given_spread() -> None:
    rng = np.random.default_rng(RNG_SEED)
    # Beta(1, 3) has mean 1/4 and variance 3/80; 6 deviations, false alarm 2e-9.
    tastes = clustered(20_000, 5, rng=rng, n_clusters=200_000, rate=0.25, spread=0.0)
    assert abs(tastes.mean() - 0.25) < 6 * np.sqrt(3 / 80 / 80_000)
    one = np.log(clustered(20_000, 1, rng=rng, n_clusters=1, rate=0.01, spread=0.3))
    assert abs(one.std() - 0.3) < 6 * 0.3 / np.sqrt(2 * 20_000)


def test_clustered_means_stop_at_nine_tenths() -> None:
    means = clustered(2000, 5, rng=np.random.default_rng(RNG_SEED), rate=0.9, spread=1.0)
    assert means.max() == 0.9


def test_bad_sizes_and_parameters_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"n_users must be a whole number.*got 0"):
        uniform(0, 5, rng=rng)
    with pytest.raises(InvalidInputError, match=r"n_arms must be a whole number.*got 2\.5"):
        instance("linear", 5, cast(int, 2.5), rng=rng)
    with pytest.raises(InvalidInputError, match=r"dimension must be a whole number.*got 0"):
        linear(5, 2, rng=rng, dimension=0)
    with pytest.raises(InvalidInputError, match=r"n_clusters must be a whole number.*got 0"):
        clustered(5, 2, rng=rng, n_clusters=0)
    for rate in (0.0, 1.0, np.nan):
        with pytest.raises(InvalidInputError, match="rate must lie strictly between 0 and 1"):
            clustered(5, 2, rng=rng, rate=rate)
    for spread in (-0.1, np.inf, np.nan):
        with pytest.raises(InvalidInputError, match="spread must be finite and at least 0"):
            clustered(5, 2, rng=rng, spread=spread)


def test_an_unknown_class_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'uniform'"):
        instance("unifrom", 5, 2, rng=np.random.default_rng(0))
