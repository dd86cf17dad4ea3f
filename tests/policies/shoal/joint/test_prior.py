"""How much users differ: the likelihood against its definition, and what is learnt by it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.environments import make_environment
from shoal.grouping import regroup
from shoal.model import Plan, Problem
from shoal.policies.shoal.joint.posterior import JointPosterior, mixed, shard_belief
from shoal.policies.shoal.joint.prior import (
    RATIOS,
    SHARES,
    UserPrior,
    apply_prior,
    distances,
    log_density,
    log_likelihoods,
    log_mixture_density,
    mixture_likelihoods,
    partially_pool,
    remove_prior,
)

Floats = NDArray[np.float64]

COMMON = 0.08
N_USERS, N_TOTALS, NOISE = 7, 12, 0.6


def _covariance(user_variance: float) -> Floats:
    return user_variance * np.eye(N_USERS) + COMMON


def _observe(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return random groups, one a row, and their totals' distance from what was expected."""
    groups = np.zeros((N_TOTALS, N_USERS))
    for row in groups:
        row[rng.permutation(N_USERS)[:3]] = 1.0
    return groups, rng.normal(size=N_TOTALS)


def _posterior(groups: Floats, totals: Floats, user_variance: float) -> tuple[Floats, Floats]:
    inverse = np.linalg.inv(_covariance(user_variance)) + groups.T @ groups / NOISE
    covariance = np.asarray(np.linalg.inv(inverse), np.float64)
    return covariance @ groups.T @ totals / NOISE, covariance


def test_the_likelihood_is_that_of_the_totals(rng: np.random.Generator) -> None:
    groups, totals = _observe(rng)
    likelihood = remove_prior(*_posterior(groups, totals, 0.05), 0.05, COMMON)
    candidates = np.array([0.3, 0.05, 1e-3, 1e-5])
    direct = [
        stats.multivariate_normal.logpdf(
            totals, cov=groups @ _covariance(own) @ groups.T + NOISE * np.eye(N_TOTALS)
        )
        for own in candidates
    ]
    computed = log_likelihoods(likelihood, candidates, COMMON)
    np.testing.assert_allclose(np.diff(computed), np.diff(direct), atol=1e-8)


@pytest.mark.parametrize("other", [0.3, 0.05, 1e-5])
def test_a_posterior_under_another_prior_is_the_one_from_the_start(
    other: float, rng: np.random.Generator
) -> None:
    groups, totals = _observe(rng)
    likelihood = remove_prior(*_posterior(groups, totals, 0.05), 0.05, COMMON)
    offsets, covariance = apply_prior(likelihood, other, COMMON)
    expected, expected_covariance = _posterior(groups, totals, other)
    np.testing.assert_allclose(offsets, expected, atol=1e-9)
    np.testing.assert_allclose(covariance, expected_covariance, atol=1e-9)


def _learn(means: Floats, rounds: int, *, drift: float = 0.0) -> JointPosterior:
    """Play arms in turn, in random groups of 4."""
    n_users, n_arms = len(means), len(means[0])
    problem = Problem(n_users, n_arms, 4)
    rng = np.random.default_rng(0)
    environment = make_environment("bernoulli", problem, means, rng=rng)
    posterior = JointPosterior(problem, drift=drift)
    groups = np.empty(n_users, np.int32)
    for number in range(rounds):
        arms = np.full(n_users, number % n_arms, np.int32)
        regroup(arms, n_arms, 4, 0, rng.random(n_users), groups)
        plan = Plan(arms, groups, problem=problem)
        posterior.absorb(plan, environment.play(plan))
    return posterior


def test_users_who_agree_are_found_to_and_others_not(rng: np.random.Generator) -> None:
    levels = np.array([0.2, 0.5, 0.7])
    agreed = _learn(np.tile(levels, (40, 1)), 600)
    uniform = _learn(rng.random((40, 3)), 300)
    alike = np.clip(levels + 0.1 * rng.standard_normal((40, 3)), 0, 1)
    between = _learn(alike, 1_000)
    assert agreed.belief.prior.core.max() < 2e-3  # a deviation of 0.04: never quite alike
    mixture = mixed(shard_belief(agreed.belief, 0))
    means = (mixture.chances * mixture.means).sum(axis=0)
    np.testing.assert_allclose(means, np.tile(levels[:, None], 40), atol=0.06)
    np.testing.assert_allclose(between.belief.prior.variance[0], 0.01, rtol=0.7)
    np.testing.assert_allclose(uniform.belief.prior.variance[0], 1 / 12, rtol=0.5)


def test_shards_learn_apart(rng: np.random.Generator) -> None:
    """Runs of an experiment are shards of one problem: nothing may pass between them."""
    problem = Problem(80, 2, 4, n_shards=2)
    posterior = JointPosterior(problem)
    means = np.vstack([np.full((40, 2), 0.4), rng.random((40, 2))])
    environment = make_environment("bernoulli", problem, means, rng=rng)
    groups = np.empty(80, np.int32)
    for number in range(300):
        arms = np.full(80, number % 2, np.int32)
        for shard in range(2):
            users = problem.shard(shard)
            regroup(arms[users], 2, 4, users.start, rng.random(40), groups[users])
        plan = Plan(arms, groups, problem=problem)
        posterior.absorb(plan, environment.play(plan))
    core = posterior.belief.prior.core
    assert core[0].max() < 2e-3 < 0.03 < core[1].min()


def test_where_means_drift_the_spread_is_not_learnt() -> None:
    agreed = _learn(np.full((40, 2), 0.5), 100, drift=1e-6)
    np.testing.assert_array_equal(agreed.belief.prior.core, 1 / 12)


def test_agreement_on_one_arm_is_not_agreement_on_another() -> None:
    """Arms that say the opposite of each other keep their own ratios; silent ones take part."""
    table = np.zeros((3, len(RATIOS), len(SHARES)))
    table[0] += 20 * np.log2(RATIOS)[:, None]  # surely 1
    table[1] -= 20 * np.log2(RATIOS)[:, None]  # surely the least
    ratios, shares = partially_pool(table)
    assert ratios[0] > 0.9
    assert ratios[1] < 1e-3
    assert 0.05 < ratios[2] < 0.5
    assert SHARES.min() < shares.min() <= shares.max() < SHARES.max()
    table[1] = table[0]
    assert partially_pool(table)[0][2] > 0.7


def test_a_mixture_of_one_kind_is_a_normal(rng: np.random.Generator) -> None:
    values, errors = rng.normal(size=9), rng.random(9)
    prior = UserPrior(np.array([0.3]), np.array([0.3]), np.array([0.2]))
    np.testing.assert_allclose(
        log_mixture_density(values, errors, prior), log_density(values, errors, prior.variance)
    )


def test_a_few_far_users_speak_for_outsiders() -> None:
    values, errors = np.zeros(40), np.full(40, 0.002)
    values[:3] = 0.4
    share = np.array([0.0125, 0.1])
    prior = UserPrior(np.full(2, 0.001), np.full(2, 0.08), share)
    few, many = log_mixture_density(values, errors, prior)
    assert many > few


def test_distances_are_what_the_totals_say_without_the_prior(rng: np.random.Generator) -> None:
    """With the crowd's mean known, a user's distance is seen with its own noise alone."""
    groups = np.repeat(np.eye(N_USERS), 4, axis=0)  # everyone alone, four times
    totals = rng.normal(0.0, 0.3, len(groups))
    inverse = np.linalg.inv(_covariance(0.05)) + groups.T @ groups / NOISE
    covariance = np.asarray(np.linalg.inv(inverse), np.float64)
    means = 0.5 + covariance @ groups.T @ totals / NOISE
    values, errors = distances(means, covariance, 0.05)
    own = totals.reshape(N_USERS, 4).mean(axis=1)
    assert np.corrcoef(values, own)[0, 1] > 0.99
    np.testing.assert_allclose(errors, NOISE / 4, rtol=0.4)


def test_users_who_are_never_seen_apart_say_no_more_than_their_totals() -> None:
    """Without the weight, far users would count once for each user of their groups."""
    variances = np.array([0.1, 0.001])
    prior = UserPrior(variances, np.maximum(variances, 0.08), np.full(2, 0.0125))
    values, errors = np.tile([0.4, -0.4], 30), np.full(60, 0.01)
    apart = log_density(values, errors, prior.variance)
    normal = 0.2 * apart  # as if groups of five were all that was seen
    likelihoods = mixture_likelihoods(normal, values, errors, prior)
    mixtures = log_mixture_density(values, errors, prior)
    np.testing.assert_allclose(np.diff(likelihoods), 0.2 * np.diff(mixtures), rtol=1e-6)
