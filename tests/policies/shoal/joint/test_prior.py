"""How much users differ: the likelihood against its definition, and what is learnt by it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.environments import make_environment
from shoal.grouping import regroup
from shoal.model import Plan, Problem
from shoal.policies.shoal.joint.posterior import JointPosterior
from shoal.policies.shoal.joint.prior import apply_prior, log_likelihoods, remove_prior

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
    agreed = _learn(np.tile(levels, (40, 1)), 300)
    uniform = _learn(rng.random((40, 3)), 300)
    alike = np.clip(levels + 0.1 * rng.standard_normal((40, 3)), 0, 1)
    between = _learn(alike, 1_000)
    assert agreed.user_variances.max() < 1e-3
    np.testing.assert_allclose(agreed.belief.means[0], np.tile(levels[:, None], 40), atol=0.06)
    np.testing.assert_allclose(between.user_variances, 0.01, rtol=0.7)
    np.testing.assert_allclose(uniform.user_variances, 1 / 12, rtol=0.5)


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
    assert posterior.user_variances[0].max() < 2e-3 < 0.03 < posterior.user_variances[1].min()


def test_where_means_drift_the_spread_is_not_learnt() -> None:
    agreed = _learn(np.full((40, 2), 0.5), 100, drift=1e-6)
    np.testing.assert_array_equal(agreed.user_variances, 1 / 12)
