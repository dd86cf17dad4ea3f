"""Users of two kinds: against the exact posterior, and calibrated where the model holds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shoal.environments import make_environment
from shoal.instances import uniform
from shoal.model import Problem
from shoal.policies import make_policy
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.posterior import CORE, OUTSIDER, Belief, mixed, mixed_moments
from shoal.policies.shoal.joint.prior import UserPrior

Floats = NDArray[np.float64]

NOISE = 0.5
FALSE_ALARM = 1e-6


def _prior(core: float, outsider: float, share: float) -> UserPrior:
    return UserPrior(*(np.array([value]) for value in (core, outsider, share)))


def _condition(groups: Floats, totals: Floats, variances: Floats) -> tuple[Floats, Floats, float]:
    """Return the posterior of the means and the log likelihood, given each user's variance."""
    covariance = np.diag(variances) + JOINT.prior_variance
    offsets = totals - groups @ np.full(len(variances), JOINT.prior_mean)
    of_totals = groups @ covariance @ groups.T + NOISE * np.eye(len(groups))
    gain = covariance @ groups.T @ np.linalg.inv(of_totals)
    log_likelihood = float(stats.multivariate_normal.logpdf(offsets, cov=of_totals))
    means = JOINT.prior_mean + gain @ offsets
    return means, covariance - gain @ groups @ covariance, log_likelihood


def _belief(groups: Floats, totals: Floats, prior: UserPrior) -> Belief:
    variances = np.full(groups.shape[1], prior.variance[0])
    means, covariance, _ = _condition(groups, totals, variances)
    return Belief(means[None], covariance[None], np.ones(1), np.ones(5), prior)


def test_one_kind_of_users_is_the_joint_posterior(rng: np.random.Generator) -> None:
    groups = (rng.random((20, 6)) < 0.5).astype(float)
    belief = _belief(groups, rng.normal(2, 1, 20), _prior(0.05, 0.05, 0.1))
    mixture = mixed(belief)
    for kind in (CORE, OUTSIDER):
        np.testing.assert_allclose(mixture.means[kind], belief.means, atol=1e-9)
        diagonal = np.diagonal(belief.covariances, axis1=1, axis2=2)
        np.testing.assert_allclose(mixture.variances[kind], diagonal, rtol=1e-6)
    np.testing.assert_allclose(mixture.chances[OUTSIDER], 0.1, rtol=1e-6)


@pytest.mark.parametrize("outside", [0.35, -0.35, 0.0])
def test_chances_and_means_are_near_those_of_all_kinds_summed(
    outside: float, rng: np.random.Generator
) -> None:
    """The exact posterior sums over who is an outsider: 2^n normal ones."""
    n_users, prior = 8, _prior(0.002, 0.08, 0.1)
    true = 0.45 + 0.04 * rng.standard_normal(n_users)
    true[0] += outside
    groups = np.array([rng.permutation(np.arange(n_users) < 4) for _ in range(60)], float)
    totals = groups @ true + np.sqrt(NOISE) * rng.standard_normal(60)
    belief = _belief(groups, totals, prior)
    weights, chances, means = [], [], []
    for kinds in product((False, True), repeat=n_users):
        outsiders = np.array(kinds)
        variances = np.where(outsiders, prior.outsider[0], prior.core[0])
        mean, _, log_likelihood = _condition(groups, totals, variances)
        log_prior = float(np.log(np.where(outsiders, 0.1, 0.9)).sum())
        weights.append(log_likelihood + log_prior)
        chances.append(outsiders)
        means.append(mean)
    exact = np.exp(np.array(weights) - max(weights))
    exact /= exact.sum()
    mixture = mixed(belief)
    found = np.array([mixed_moments(mixture, 0, user)[0] for user in range(n_users)])
    np.testing.assert_allclose(mixture.chances[OUTSIDER, 0], exact @ np.array(chances), atol=0.15)
    np.testing.assert_allclose(found, exact @ np.array(means), atol=0.06)


@pytest.mark.slow
def test_intervals_hold_as_many_true_means_as_they_say() -> None:
    """Uniform means, from which the prior is learnt, early and late in a run.

    Users of one run are not independent; the mean share over runs is judged by its spread.
    """
    shares: dict[int, list[float]] = {10: [], 100: [], 600: []}
    half = stats.norm.ppf(0.95)
    for run in range(12):
        rng = np.random.default_rng([31, run])
        means = uniform(30, 4, rng=rng)
        problem = Problem(30, 4, 3, horizon=2_000)
        environment = make_environment("bernoulli", problem, means, rng=rng)
        policy = make_policy("shoal", problem, rng=rng)
        while policy.rounds < max(shares):
            policy.tell(environment.play(policy.ask()))
            if policy.rounds in shares:
                beliefs = policy.beliefs()
                assert beliefs is not None
                inside = np.abs(means - beliefs.means) < half * beliefs.deviations
                shares[policy.rounds].append(float(inside.mean()))
    for found in shares.values():
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        allowed = stats.t.isf(FALSE_ALARM / 6, len(found) - 1) * error
        assert abs(np.mean(found) - 0.9) < allowed + 0.04, (found, allowed)
