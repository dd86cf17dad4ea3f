"""The prior that is learnt from everyone's evidence."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.population import absorb, give_evidence, random_evidence

from shoal.policies.shoal.constants import POPULATION
from shoal.policies.shoal.joint.prior import SHARES
from shoal.policies.shoal.population import prior as prior_module
from shoal.policies.shoal.population.belief import (
    PopulationBelief,
    beta_variance,
)
from shoal.policies.shoal.population.posterior import (
    infer,
    workspace,
)
from shoal.policies.shoal.population.prior import (
    estimate,
    find_factors,
    learn_prior,
    share_likelihoods,
    shared_errors,
)


@pytest.mark.parametrize(("n_outsiders", "low", "high"), [(0, 0.0125, 0.02), (100, 0.08, 0.2)])
def test_the_share_of_outsiders_is_learnt(n_outsiders: int, low: float, high: float) -> None:
    # 1,000 users seen with a deviation of 0.1, outsiders with means that lie 0.5 higher.
    rng = np.random.default_rng(11)
    belief = PopulationBelief(1000, 2, 10)
    tastes = np.full((1000, 2), 0.3)
    tastes[:n_outsiders, 1] = 0.8
    belief.means = np.array([0.3, 0.3])
    belief.mean_variances[:] = 1e-6
    belief.hidden[:] = 1e-4
    give_evidence(belief, tastes, 100.0, rng)
    tables = share_likelihoods(belief.prior(), belief.evidence, np.arange(1000))
    likelihood = np.exp(tables - tables.max(axis=1, keepdims=True))
    shares = likelihood @ SHARES / likelihood.sum(axis=1)
    assert 0.0125 <= shares[0] < 0.02
    assert low <= shares[1] < high


def test_scoring_step_is_the_literal_formula() -> None:
    n_arms = 4
    belief = random_evidence(np.random.default_rng(2), 300, n_arms)
    belief.evidence.precision[:] += np.float32(0.1)  # so that x exists for everyone
    covariance, errors = estimate(belief, np.arange(300))
    now = belief.factors @ belief.factors.T + np.diag(belief.hidden)
    entries = [(j, k) for j in range(n_arms) for k in range(j + 1)]
    score, information = np.zeros(10), np.zeros((10, 10))
    for seen, value in zip(
        belief.evidence.precision.astype(float), belief.evidence.value, strict=True
    ):
        weight = np.linalg.inv(now + np.diag(1 / seen))
        pull = weight @ (value / seen - belief.means)
        for a, (j, k) in enumerate(entries):
            score[a] += pull[j] * pull[k] - weight[j, k]
            for c, (p, q) in enumerate(entries):
                information[a, c] += weight[j, p] * weight[k, q] + weight[j, q] * weight[k, p]
    twice = np.diag([2.0 if j == k else 1.0 for j, k in entries])
    step = twice @ np.linalg.solve(information, score)
    spread = np.diag(twice @ np.linalg.inv(information) @ twice)
    for a, (j, k) in enumerate(entries):
        assert covariance[j, k] == covariance[k, j] == pytest.approx(now[j, k] + step[a], rel=1e-3)
        assert errors[j, k] == errors[k, j] == pytest.approx(spread[a], rel=1e-3)


def test_information_of_some_users_stands_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    belief = random_evidence(np.random.default_rng(9), 4000, 4)
    full = estimate(belief, np.arange(4000))
    few = POPULATION._replace(max_terms=100 * 1000)
    monkeypatch.setattr(prior_module, "POPULATION", few)
    some = estimate(belief, np.arange(4000))
    assert not np.array_equal(some[1], full[1])
    np.testing.assert_allclose(some[1], full[1], rtol=0.15)
    np.testing.assert_allclose(some[0], full[0], atol=0.02)


def test_spike_is_shrunk_by_the_wigner_formula() -> None:
    n_arms = 9
    errors = np.ones((n_arms, n_arms)) + np.eye(n_arms)
    direction = np.full(n_arms, 1 / 3)
    spike, alone = np.outer(direction, direction), np.ones(n_arms)
    for size, kept in ((5.9, 0.0), (7.5, 4.5), (10.0, 8.0)):  # sqrt(y² - 36)
        factors = find_factors(size * spike, errors, np.full(n_arms, 1e6), alone)
        assert (factors**2).sum() == pytest.approx(kept)
    # p = K · plausible = 3 halves a spike, as p² = K.
    factors = find_factors(10 * spike, errors, np.full(n_arms, 1 / 3), alone)
    assert (factors**2).sum() == pytest.approx(4.0)


@pytest.mark.parametrize("rank", [1, 3])
def test_tastes_are_recovered(rank: int) -> None:
    # 4,000 users seen with noise as large as their tastes: entries of Sigma have a standard error
    # of about 0.02 · 2 / sqrt(4,000) = 0.0006, a thirtieth of an arm's variance.
    rng = np.random.default_rng(rank)
    n_users, n_arms = 4000, 8
    means = rng.uniform(0.3, 0.7, n_arms)
    factors = rng.normal(0.0, np.sqrt(0.02 / rank), (n_arms, rank))
    truth = factors @ factors.T
    belief = PopulationBelief(n_users, n_arms, 10)
    belief.means = means
    give_evidence(belief, means + rng.normal(size=(n_users, rank)) @ factors.T, 50.0, rng)
    for _ in range(6):
        learn_prior(belief, np.arange(n_users), 10)
    learnt = belief.factors @ belief.factors.T
    assert rank <= belief.factors.shape[1] <= rank + 1
    assert np.linalg.norm(learnt - truth) < 0.15 * np.linalg.norm(truth)
    assert belief.hidden.max() < 0.1 * beta_variance(means).max()


def test_no_structure_gives_rank_0() -> None:
    # Noise alone passes the edge in about one of six draws (Tracy-Widom); that more than half of
    # 40 do has a probability below 1e-6.
    rng = np.random.default_rng(3)
    means = np.full(10, 0.3)
    empty = 0
    for _ in range(40):
        belief = PopulationBelief(1000, 10, 10)
        belief.means = means
        give_evidence(belief, np.tile(means, (1000, 1)), 20.0, rng)
        learn_prior(belief, np.arange(1000), 10)
        empty += belief.factors.shape[1] == 0
        assert (belief.factors**2).sum(axis=1).max() < 0.01
    assert empty >= 20


@pytest.mark.slow
def test_users_of_a_group_share_its_error() -> None:
    # 2,000 users who all agree, seen once each in groups of 10: their variance is found within its
    # error, which counts groups and not users. Of 200 draws, squares of normal errors average to 1
    # within 0.5 but for 1 in 10^6; counting users they would be 10.
    rng = np.random.default_rng(8)
    n_users, n_arms, size = 2000, 2, 10
    groups = (np.arange(n_users) // size).astype(np.int32)
    arms = (groups % n_arms).astype(np.int32)
    scores: list[float] = []
    for _ in range(200):
        belief = PopulationBelief(n_users, n_arms, size)
        belief.means[:], belief.mean_variances[:] = 0.5, 1e-9
        belief.squares[:] = 1e9  # the noise is known
        totals = rng.binomial(size, 0.5, n_users // size).astype(float)
        predicted, variances = np.full(n_users, 0.5, np.float32), np.zeros(n_users, np.float32)
        absorb(belief, arms, groups, totals, np.ones(n_users, np.int64), predicted, variances)
        belief.hidden[:] = 0.0
        covariance, errors = estimate(belief, np.arange(n_users))
        inflation = shared_errors(belief, np.arange(n_users), size)
        scores.extend(np.diag(covariance) / np.sqrt(np.diag(errors) * inflation))
    assert 0.5 < np.mean(np.square(scores)) < 1.5


def test_nothing_seen_teaches_nothing() -> None:
    belief = PopulationBelief(50, 4, 5)
    learn_prior(belief, np.arange(50), 5)
    assert belief.factors.shape == (4, 0)
    np.testing.assert_allclose(belief.hidden, beta_variance(belief.means), rtol=1e-2)


@pytest.mark.slow
def test_population_is_learnt_from_totals() -> None:
    # 300 rounds of 600 users in two clusters, everyone on random arms. The tolerances are
    # one and a half times the largest errors over 20 seeds, or more.
    rng = np.random.default_rng(4)
    n_users, n_arms, size = 600, 4, 10
    clusters = np.array([[0.7, 0.2, 0.3, 0.1], [0.2, 0.6, 0.3, 0.4]])
    tastes = clusters[rng.integers(2, size=n_users)]
    everyone = np.arange(n_users)
    belief = PopulationBelief(n_users, n_arms, size)
    posterior = workspace(n_arms, 0)
    for rounds in range(1, 301):
        groups = np.empty(n_users, np.int32)
        groups[rng.permutation(n_users)] = everyone // size
        arms = (groups % n_arms).astype(np.int32)
        rewards = rng.random(n_users) < tastes[everyone, arms]
        totals = np.bincount(groups, weights=rewards).astype(float)
        predicted, variances = np.zeros((2, n_users), np.float32)
        for user in range(n_users):
            infer(belief.prior(), belief.evidence, user, posterior)
            predicted[user] = posterior.means[arms[user]]
            variances[user] = posterior.variances[arms[user]]
        reported = np.ones(n_users, np.int64)
        absorb(belief, arms, groups, totals, reported, predicted, variances)
        if rounds < 10 or rounds % 20 == 0:
            learn_prior(belief, everyone, size)
            posterior = workspace(n_arms, belief.factors.shape[1])
    truth = np.cov(tastes.T)
    learnt = belief.factors @ belief.factors.T
    np.testing.assert_allclose(belief.means, tastes.mean(axis=0), atol=0.03)
    assert np.linalg.norm(learnt - truth) < 0.3 * np.linalg.norm(truth)
    # Who is known has less noise than a crowd's r(1 - r): a coin drawn twice is one coin.
    noise = (tastes * (1 - tastes)).mean(axis=0)
    crowd = tastes.mean(axis=0) * (1 - tastes.mean(axis=0))
    assert (belief.overdispersion > noise / crowd - 0.05).all()
    assert (belief.overdispersion < 1.05).all()


@pytest.mark.parametrize("size", [1, 2, 10])
def test_one_round_of_rare_rewards_tells_no_tastes(size: int) -> None:
    # What differs between users after a round is chance alone: one draw each.
    rng = np.random.default_rng(size)
    n_users, n_arms = 3000, 5
    belief = PopulationBelief(n_users, n_arms, size)
    groups = (np.arange(n_users) // size).astype(np.int32)
    arms = (groups % n_arms).astype(np.int32)
    totals = np.bincount(groups, weights=rng.random(n_users) < 0.02).astype(float)
    predicted = belief.means[arms].astype(np.float32)
    variances = np.full(n_users, (belief.hidden + belief.mean_variances)[0], np.float32)
    absorb(belief, arms, groups, totals, np.ones(n_users, np.int64), predicted, variances)
    learn_prior(belief, np.arange(n_users), size)
    assert belief.factors.shape == (n_arms, 0)
    np.testing.assert_allclose(belief.means, 0.02, atol=4 * (0.02 * 0.98 * n_arms / n_users) ** 0.5)
