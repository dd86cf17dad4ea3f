"""The joint posterior against a fresh solve, and the mean-field against its literal formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from shoal.environments import make_environment
from shoal.grouping import RoundTotals, regroup
from shoal.kernels import kernel
from shoal.model import Feedback, Plan, Problem
from shoal.policies.pooled.mean_field import MeanField
from shoal.policies.shoal.constants import JOINT
from shoal.policies.shoal.joint.posterior import (
    Belief,
    JointPosterior,
    absorb,
    overdispersion,
    reward_noise,
    shard_belief,
)


def _new(n_users: int, min_group_size: int) -> tuple[Problem, JointPosterior, Belief]:
    problem = Problem(n_users, 1, min_group_size)
    posterior = JointPosterior(problem)
    return problem, posterior, shard_belief(posterior.belief, 0)


@kernel()
def _play(
    belief: Belief,
    precision: NDArray[np.float64],
    value: NDArray[np.float64],
    means: NDArray[np.float64],
    updates: int,
    rng: np.random.Generator,
) -> None:
    """Absorb random pairs' totals, and add the same observations to a least-squares problem."""
    n_users = len(means)
    arms, ones = np.zeros(n_users, np.int32), np.ones(n_users, np.int32)
    for _ in range(updates):
        members = rng.permutation(n_users)[:2]
        groups = np.full(n_users, -1, np.int32)
        groups[members] = 0
        noise, total = 0.0, 0.0
        for member in members:
            noise += reward_noise(belief.means[0, member], belief.covariances[0, member, member])
            total += rng.random() < means[member]
        noise *= overdispersion(belief)
        for one in members:
            value[one] += total / noise
            for other in members:
                precision[one, other] += 1 / noise
        absorb(belief, RoundTotals(arms, groups, np.array([total]), ones[:1], ones), 2)


@pytest.mark.slow
def test_rank_one_updates_equal_a_fresh_solve_after_a_hundred_thousand_of_them(
    rng: np.random.Generator,
) -> None:
    _, _, belief = _new(6, 2)
    precision = np.linalg.inv(belief.covariances[0])
    value = precision @ np.full(6, JOINT.prior_mean)
    _play(belief, precision, value, rng.random(6), 10**5, rng)
    covariance = np.linalg.inv(precision)
    np.testing.assert_allclose(belief.covariances[0], covariance, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(belief.means[0], covariance @ value, atol=1e-8)
    assert np.linalg.eigvalsh(belief.covariances[0]).min() > 0


def test_noise_beyond_the_model_is_noticed() -> None:
    """Unit-variance rewards have at least four times the variance of Bernoulli ones."""
    problem = Problem(40, 1, 4)
    posterior = JointPosterior(problem)
    rng = np.random.default_rng(0)
    environment = make_environment("gaussian", problem, np.full((40, 1), 0.5), rng=rng)
    groups = np.empty(40, np.int32)
    for _ in range(2000):
        regroup(np.zeros(40, np.int32), 1, 4, 0, rng.random(40), groups)
        plan = Plan(np.zeros(40, np.int32), groups, problem=problem)
        posterior.absorb(plan, environment.play(plan))
    belief = shard_belief(posterior.belief, 0)
    assert 3.5 < overdispersion(belief) < 4.5
    scores = (belief.means[0] - 0.5) / np.sqrt(belief.covariances[0].diagonal())
    assert np.mean(scores**2) < 3  # not overconfident


@pytest.mark.parametrize(("mean", "variance"), [(0.5, 0.01), (0.9, 0.0), (0.0, 0.0), (1.2, 0.01)])
def test_reward_noise_is_what_the_means_variance_leaves_of_m_times_1_minus_m(
    mean: float, variance: float
) -> None:
    inside = min(max(mean, 0.05), 0.95)
    shifted = inside + np.sign(0.5 - inside) * min(0.5 * math.sqrt(variance), abs(inside - 0.5))
    whole = shifted * (1 - shifted)
    assert reward_noise(mean, variance) == pytest.approx(max(whole - variance, whole / 2))


def test_a_withheld_total_teaches_about_reporting_only() -> None:
    problem, posterior, belief = _new(6, 3)
    before = belief.means.copy()
    plan = Plan([0] * 6, [0] * 6, problem=problem)
    posterior.absorb(plan, Feedback(np.zeros(1), np.zeros(1, np.int32), np.zeros(6, np.int32)))
    np.testing.assert_array_equal(belief.means, before)
    assert posterior.belief.tallies[0, 2] / posterior.belief.tallies[0, 3] < 1


@pytest.mark.parametrize("kind", [JointPosterior, MeanField])
def test_drift_widens_what_was_known_up_to_the_prior(
    kind: type[JointPosterior] | type[MeanField],
) -> None:
    problem = Problem(8, 2, 2)
    posterior = kind(problem, drift=0.01)
    plan = Plan([0] * 8, [0, 0, 1, 1, 2, 2, 3, 3], problem=problem)
    feedback = Feedback(np.ones(4), np.ones(4, np.int32), np.ones(8, np.int32))
    for _ in range(50):
        posterior.absorb(plan, feedback)
    idle = Plan([0] * 8, [-1] * 8, problem=problem)
    nothing = Feedback(np.zeros(0), np.zeros(0, np.int32), np.zeros(8, np.int32))
    for _ in range(100):
        posterior.absorb(idle, nothing)
    if isinstance(posterior, MeanField):
        np.testing.assert_allclose(posterior.deviations**2, JOINT.prior_variance, rtol=1e-5)
    else:
        diagonal = np.diagonal(posterior.belief.covariances, axis1=2, axis2=3)
        np.testing.assert_allclose(diagonal, 2 * JOINT.prior_variance)
