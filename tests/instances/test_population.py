"""What a log says about people, and what it does not say.

Everything has a fixed seed. With users who are alike, the lower end of the gain lies above 0 only
if the odds for tastes exceed 39: by Markov's inequality in at most one log of 39, so that 6 of 10
logs have a probability of at most 6e-8; the test allows five. docs/benchmarks/placebo.md has more
logs, with seeds of their own.
"""

from __future__ import annotations

import numpy as np
import pytest

from shoal.arrays import FloatArray, LongArray
from shoal.errors import InvalidInputError
from shoal.instances import clustered
from shoal.instances.population import PairTotals, Population, estimate_population
from shoal.instances.population.arms import draw_arm_means
from shoal.instances.population.clusters import KINDS, compare_shapes, fit_clusters
from shoal.instances.population.estimate import (
    EXCLUDED,
    WORTHWHILE,
    _strata,
    weighted_quantile,
)
from shoal.instances.population.moments import estimate_moments
from shoal.instances.population.posterior import Model, normal_gains

N_USERS = 250  # of the tests over many logs; the time that an estimate takes grows with the square


def log_of(
    means: FloatArray, rows: int, rng: np.random.Generator
) -> tuple[PairTotals, tuple[PairTotals, PairTotals]]:
    """Return the totals of a log with so many rows a user on random arms, and of its halves."""
    n_arms = means.shape[1]
    counts = rng.multinomial(rows, np.full(n_arms, 1 / n_arms), size=len(means))
    sums = rng.binomial(counts, means)
    first = counts // 2
    first_sums = rng.hypergeometric(sums, counts - sums, first)

    def totals(counts: LongArray, sums: LongArray) -> PairTotals:
        return PairTotals(counts.astype(float), sums.astype(float), sums.astype(float))

    halves = totals(first, first_sums), totals(counts - first, sums - first_sums)
    return totals(counts, sums), halves


def estimate(
    means: FloatArray, rows: int, rng: np.random.Generator, *, check: bool = False
) -> Population:
    pairs, halves = log_of(means, rows, rng)
    return estimate_population(pairs, rng, halves=halves if check else None)


def gain_of(means: FloatArray) -> float:
    return float(means.max(axis=1).mean() - means.mean(axis=0).max())


@pytest.mark.slow
def test_users_who_agree_have_no_gain() -> None:
    claimed, above = [], 0
    for seed in range(10):
        rng = np.random.default_rng([seed, 1])
        n_arms, rows = int(rng.integers(2, 7)), int(rng.choice([5, 13, 50]))
        rate = float(rng.choice([0.02, 0.18, 0.5]))
        arms = rate * (rng.uniform(0.5, 1.5, n_arms) if seed % 2 else np.ones(n_arms))
        population = estimate(np.tile(arms, (N_USERS, 1)), rows, rng)
        claimed.append(population.gain.median / population.best_arm)
        above += population.gain.low > 1e-3 * population.best_arm
    assert above <= 5
    assert np.mean(claimed) < 0.01


@pytest.mark.slow
def test_populations_have_the_arm_means_of_the_log_also_with_one_row_a_user() -> None:
    """Such a log allows any tastes, so that atoms are cut off at 0 and 1.

    Of 192 populations with 3 arms each, none is 6 standard errors away but in 1e-6 of the logs.
    """
    rng = np.random.default_rng(8)
    counts = np.eye(3)[rng.integers(3, size=1_500)]
    sums = counts * (rng.random(counts.shape) < [0.25, 0.29, 0.26])
    worlds = estimate_population(PairTotals(counts, sums, sums), rng).worlds
    means = np.array([world.weights @ world.atoms for world in worlds])
    rates = sums.sum(axis=0) / counts.sum(axis=0)
    errors = np.sqrt(rates * (1 - rates) / counts.sum(axis=0))
    assert np.abs((means - rates) / errors).max() < 6


@pytest.mark.slow
def test_a_handful_of_successes_shows_no_tastes() -> None:
    """16 rewards among 160 users: three logs of 8 may be wrong, each at most one time in 39.

    Where coincidences are weighed as if they were normal, most of these eight are wrong.
    """
    shown = 0
    for seed in range(8):
        rng = np.random.default_rng([seed, 14])
        shown += estimate(np.full((160, 6), 0.02), 5, rng).shows_tastes
    assert shown <= 3  # more have a probability of 3e-5


def test_an_arm_without_any_success_says_nothing_of_users() -> None:
    counts = np.random.default_rng(0).integers(1, 4, (80, 2)).astype(float)
    sums = np.zeros((80, 2))
    sums[::9, 1] = 1.0
    moments = estimate_moments(PairTotals(counts, sums, sums))
    assert moments.covariance[0].tolist() == [0.0, 0.0]
    assert 0 < moments.arm_means[0] < 0.01
    assert moments.row_variance[0] == pytest.approx(moments.arm_means[0], rel=0.01)


@pytest.mark.slow
def test_users_who_like_everything_more_have_no_gain() -> None:
    rng = np.random.default_rng(2)
    means = np.clip(0.15 * np.exp(rng.normal(0, 0.5, (400, 1))) * np.ones(4), 0, 0.95)
    population = estimate(means, 40, rng)
    assert population.gain.low < 1e-3
    assert population.covariance.min() > 0  # they do differ, and on all arms alike


@pytest.mark.slow
def test_the_true_gain_lies_inside_for_every_kind_of_taste() -> None:
    inside = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 3])
        n_arms, rate = int(rng.integers(2, 6)), float(rng.choice([0.05, 0.15, 0.4]))
        kinds = [
            clustered(N_USERS, n_arms, rate=rate, spread=0.3, rng=rng),
            rng.beta(20 * rate, 20 * (1 - rate), (N_USERS, n_arms)),
            1 / (1 + np.exp(-np.log(rate / (1 - rate)) - rng.normal(size=(N_USERS, 2))
                            @ rng.normal(size=(2, n_arms)) / 3)),
        ]  # fmt: skip
        means = kinds[seed % 3]
        low, _, high = estimate(means, int(rng.choice([10, 20, 50])), rng).gain
        inside += low <= gain_of(means) <= high
    assert inside >= 6  # at 95 % each, fewer has a probability of 5e-7


@pytest.mark.slow
def test_the_gain_of_a_few_kinds_of_people_is_not_taken_for_less() -> None:
    """Three kinds, each with an arm of its own: normal tastes of the same size gain a quarter less.

    Each truth lies above its interval in 2.5 % of the logs, more than 4 of 8 with 6e-7.
    """
    above = 0
    for seed in range(8):
        rng = np.random.default_rng([seed, 15])
        means = three_kinds(700, rng)
        above += gain_of(means) > estimate(means, 17, rng).gain.high
    assert above <= 4


def three_kinds(n_users: int, rng: np.random.Generator) -> FloatArray:
    means = np.full((n_users, 3), 0.15)
    means[np.arange(n_users), rng.integers(3, size=n_users)] = 0.45
    return means


@pytest.mark.parametrize("kinds", [True, False])
def test_users_who_are_held_out_tell_kinds_of_people_from_normal_tastes(kinds: bool) -> None:
    rng = np.random.default_rng(16)
    normal = np.clip(rng.normal(0.4, 0.12, (400, 3)), 0, 1)
    pairs, _ = log_of(three_kinds(400, rng) if kinds else normal, 60, rng)
    moments = estimate_moments(pairs)
    clusters = compare_shapes(pairs, moments, moments.covariance, rng)
    assert (clusters.probability > EXCLUDED) == kinds
    assert clusters.of_kinds.sum() == pytest.approx(1.0)
    if kinds:
        assert KINDS[int(clusters.of_kinds.argmax())] in (3, 4)


def test_kinds_of_people_are_recovered() -> None:
    # 20 rows a pair: a kind's means have a standard error of at most 0.5 / sqrt(20 * 130) = 0.01.
    rng = np.random.default_rng(17)
    pairs, _ = log_of(three_kinds(400, rng), 60, rng)
    moments = estimate_moments(pairs)
    alike = np.full(400, 1 / 400)
    kinds, shares = fit_clusters(pairs, moments, moments.covariance, 3, alike, rng)
    np.testing.assert_allclose(np.sort(kinds, axis=1)[:, 2], 0.45, atol=0.06)
    np.testing.assert_allclose(np.sort(kinds, axis=1)[:, :2], 0.15, atol=0.06)
    assert sorted(kinds.argmax(axis=1).tolist()) == [0, 1, 2]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.1)


def test_an_arm_that_hardly_anybody_saw_hides_no_tastes() -> None:
    """Its mean in half of the users is unknown: that had made all means of all kinds unknown."""
    rng = np.random.default_rng(18)
    pairs, _ = log_of(three_kinds(200, rng), 30, rng)
    lone = np.zeros((200, 1))
    lone[0] = 1.0  # one row, with reward 0
    counts, none = np.hstack([pairs.counts, lone]), np.zeros((200, 1))
    sums = np.hstack([pairs.sums, none])
    population = estimate_population(PairTotals(counts, sums, sums), rng)
    assert population.gain.low > 0.1  # of 0.2


@pytest.mark.slow
def test_more_rows_of_the_same_users_make_the_interval_narrower() -> None:
    """The width has a Monte Carlo error of a tenth; these differ by a third and more."""
    rng = np.random.default_rng(4)
    means = clustered(600, 4, rate=0.2, spread=0.3, rng=rng)
    widths = []
    for rows in (6, 30, 120):
        low, _, high = estimate_population(log_of(means, rows, rng)[0], rng).gain
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2]


@pytest.mark.slow
def test_the_log_says_in_words_what_it_can_tell() -> None:
    rng = np.random.default_rng(5)
    alike = estimate(np.full((700, 2), 0.5), 170, rng, check=True)
    assert alike.tells.startswith("Users hardly differ")
    means = np.where(np.arange(300)[:, None] % 3 == np.arange(3), 0.4, 0.1)
    different = estimate(means, 60, rng, check=True)
    assert different.tells.startswith("Users differ in which arms suit them")
    assert "rows: tastes predict" in different.held_out_tells
    assert "rows: tastes are not shown to predict" in alike.held_out_tells
    assert different.taste > 0.99


@pytest.mark.slow
def test_a_short_log_says_how_many_rows_it_lacks_and_is_about_right() -> None:
    """A gain of 5 % that a log can't show: a log with ten times the advised rows shows it.

    With the 370 rows that are advised here, tastes are then seven standard errors from none.
    """
    rng = np.random.default_rng(12)
    means = np.where(np.arange(600)[:, None] % 3 == np.arange(3), 0.21538, 0.2)
    short = estimate(means, 10, rng)
    assert gain_of(means) == pytest.approx(WORTHWHILE * means.mean(), rel=0.01)
    assert short.gain.low == 0.0
    assert short.more_rows is not None
    assert 10 < short.more_rows < 1_000
    assert "10 rows a user on 3 arms can't distinguish" in short.tells
    assert f"collect about {short.more_rows:,} more rows a user" in short.tells
    assert estimate(means, 10 * short.more_rows, rng).gain.low > 0


@pytest.mark.slow
def test_worlds_stand_for_strata_of_the_posterior() -> None:
    quantiles, shares = _strata(16)
    assert shares.sum() == pytest.approx(1.0)
    assert (np.diff(quantiles) > 0).all()
    population = estimate(np.full((300, 3), 0.2), 10, np.random.default_rng(13))
    assert sum(world.probability for world in population.worlds) == pytest.approx(1.0, abs=0.06)


def test_normal_gains_are_those_of_two_arms() -> None:
    """For two independent arms with equal means, E max = sqrt(variance / pi); 256 draws."""
    gains = normal_gains(np.array([np.eye(2), 4 * np.eye(2), 0 * np.eye(2)]), np.zeros(2))
    assert gains[0] == pytest.approx(1 / np.sqrt(np.pi), abs=0.15)
    assert gains[1] == pytest.approx(2 * gains[0])
    assert gains[2] == 0.0


@pytest.mark.slow
def test_drawn_users_are_like_the_log() -> None:
    rng = np.random.default_rng(6)
    means = np.where(np.arange(300)[:, None] % 3 == np.arange(3), 0.4, 0.1)
    population = estimate(means, 120, rng)
    drawn = population.draw(20_000, rng)
    assert drawn.shape == (20_000, 3)
    assert 0.0 <= drawn.min() <= drawn.max() <= 1.0
    # The arms' means have an error of 0.005 from 12,000 rows each; users' sampling adds 0.008.
    np.testing.assert_allclose(drawn.mean(axis=0), means.mean(axis=0), atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), np.cov(means.T), atol=0.006)
    world = population.worlds[-1]
    again = population.draw(50, np.random.default_rng(0), world=len(population.worlds) - 1)
    assert set(map(tuple, again)) <= set(map(tuple, world.atoms))


def test_the_covariance_is_estimated_without_bias() -> None:
    """Over 200 logs, the mean is within 6 of its deviations: false alarm below 1e-7."""
    covariance = np.array([[0.01, 0.004], [0.004, 0.02]])
    estimates = []
    for seed in range(200):
        rng = np.random.default_rng([seed, 7])
        means = np.clip(rng.multivariate_normal([0.5, 0.4], covariance, size=300), 0, 1)
        estimates.append(estimate_moments(log_of(means, 8, rng)[0]).covariance)
    spread = np.std(estimates, axis=0) / np.sqrt(200)
    assert (np.abs(np.mean(estimates, axis=0) - covariance) < 6 * spread).all()


def test_products_of_different_rows_are_what_the_formula_says() -> None:
    """One arm, one user: the mean over all pairs of different rows of their product."""
    rewards = np.array([0.2, 0.9, 0.4])
    other = np.array([0.1, 0.3])
    users = np.array([0, 0, 0, 1, 1])
    pairs = PairTotals.from_rows(
        users, np.zeros(5, dtype=np.int64), np.concatenate([rewards, other]), (2, 1)
    )
    moments = estimate_moments(pairs)
    mean = moments.arm_means[0]
    products = [
        np.mean([(a - mean) * (b - mean) for i, a in enumerate(rows) for j, b in enumerate(rows)
                 if i != j])
        for rows in (rewards, other)
    ]  # fmt: skip
    assert min(products) <= moments.covariance[0, 0] <= max(products)


def test_equal_arms_have_no_best_one_and_different_arms_keep_their_order() -> None:
    """1,000 users with 20 rows: the largest raw estimate of four equal arms is 0.006 too high."""
    rng = np.random.default_rng(11)
    equal = estimate_moments(log_of(np.full((1_000, 4), 0.2), 20, rng)[0])
    drawn = np.array([draw_arm_means(equal, rng).max() for _ in range(400)])
    assert drawn.mean() < equal.arm_means.max() - 0.0005
    means = np.tile([0.1, 0.2, 0.3, 0.4], (1_000, 1))
    different = estimate_moments(log_of(means, 20, rng)[0])
    drawn = np.mean([draw_arm_means(different, rng) for _ in range(400)], axis=0)
    np.testing.assert_allclose(drawn, different.arm_means, atol=0.002)


def test_models_have_the_covariances_that_they_say() -> None:
    rng = np.random.default_rng(8)
    moments = estimate_moments(log_of(np.full((200, 4), 0.3), 10, rng)[0])
    for model in (
        Model(moments, level=True, rank=0),
        Model(moments, level=False, rank=2),
        Model(moments, level=False, rank=4, independent=True),
    ):
        scores = rng.standard_normal((3, model.n_scores))
        for covariance in model.covariances(scores):
            rank = model.rank or 1
            assert np.linalg.matrix_rank(covariance, tol=1e-12) == rank
            if model.independent:
                assert np.count_nonzero(covariance) == 4


@pytest.mark.parametrize("rewards", [np.zeros(60), np.ones(60), np.full(60, 0.5)])
def test_logs_without_any_variation_are_fitted(rewards: FloatArray) -> None:
    users, arms = np.arange(60) % 10, np.arange(60) % 3
    pairs = PairTotals.from_rows(users, arms, rewards, (10, 3))
    population = estimate_population(pairs, np.random.default_rng(9))
    assert population.gain.low == 0.0
    assert np.isfinite(population.gain.high)


def test_one_arm_leaves_nothing_to_choose() -> None:
    pairs = PairTotals.from_rows(np.arange(50) % 10, np.zeros(50, int), np.ones(50) / 2, (10, 1))
    population = estimate_population(pairs, np.random.default_rng(10))
    assert population.gain == (0.0, 0.0, 0.0)
    assert population.rank == 0
    empty = PairTotals(*(np.zeros((1, 1)) for _ in range(3)))
    with pytest.raises(InvalidInputError, match="at least one row; got none"):
        estimate_population(empty, np.random.default_rng(0))


def test_a_quantile_of_weighted_values_is_one_of_them() -> None:
    values, weights = np.array([0.0, 1.0, 2.0]), np.array([0.97, 0.02, 0.01])
    assert weighted_quantile(values, weights, 0.5) == 0.0
    assert weighted_quantile(values, weights, 0.98) == 1.0
    assert weighted_quantile(values, weights, 0.999) == 2.0


def test_a_log_that_no_more_rows_would_help_says_how_many_were_tried() -> None:
    short = estimate(np.full((100, 3), 0.2), 5, np.random.default_rng(3))
    short.__dict__["more_rows"] = None  # as if the search had found none
    assert short.tells.endswith(
        "Even 195 times as many rows of these users would not reliably show a gain of 5%."
    )
