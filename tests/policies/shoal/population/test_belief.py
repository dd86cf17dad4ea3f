"""Evidence of users, their posterior, and the prior that is learnt from everyone's."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.arrays import CountArray, FloatArray, IntArray, SmallFloatArray
from shoal.environments import make_environment
from shoal.grouping import RoundTotals
from shoal.model import Problem
from shoal.policies.shoal.constants import POPULATION
from shoal.policies.shoal.joint.prior import SHARES
from shoal.policies.shoal.population import prior as prior_module
from shoal.policies.shoal.population.belief import (
    OBSERVED,
    Decision,
    PopulationBelief,
    beta_variance,
)
from shoal.policies.shoal.population.policy import PopulationPolicy
from shoal.policies.shoal.population.posterior import (
    Evidence,
    Prior,
    core_variance,
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


def random_evidence(rng: np.random.Generator, n_users: int, n_arms: int) -> PopulationBelief:
    """Return a belief with evidence, some of it missing, and two factors."""
    belief = PopulationBelief(n_users, n_arms, 5)
    belief.means = rng.uniform(0.2, 0.8, n_arms)
    belief.factors = rng.normal(0.0, 0.2, (n_arms, 2))
    precision = rng.gamma(1.0, 5.0, (n_users, n_arms)) * (rng.random((n_users, n_arms)) < 0.8)
    belief.evidence.precision[:] = precision
    belief.evidence.value[:] = belief.evidence.precision * rng.normal(0.5, 0.4, (n_users, n_arms))
    return belief


def absorb(
    belief: PopulationBelief,
    arms: IntArray,
    groups: IntArray,
    totals: FloatArray,
    reported: CountArray,
    predicted: SmallFloatArray,
    variances: SmallFloatArray,
) -> None:
    released = np.bincount(groups[groups >= 0], reported[groups >= 0]) > 0
    played = RoundTotals(arms, groups, totals, released, reported)
    belief.absorb(played, Decision(arms, predicted, variances))


def give_evidence(
    belief: PopulationBelief, tastes: FloatArray, precision: float, rng: np.random.Generator
) -> None:
    """Let every user see its means with noise of this precision."""
    seen = tastes + rng.normal(0.0, precision**-0.5, tastes.shape)
    belief.evidence.precision[:] = precision
    belief.evidence.value[:] = precision * seen


def test_posterior_is_that_of_the_dense_normal_model() -> None:
    rng = np.random.default_rng(0)
    belief = random_evidence(rng, 20, 6)
    own = rng.uniform(0.01, 0.1, 6)
    prior = Prior(belief.means, belief.factors, own, np.full(6, 0.1), np.full(6, 0.08))
    posterior = workspace(6, 2)
    for user in range(20):
        infer(prior, belief.evidence, user, posterior)
        before = np.linalg.inv(belief.factors @ belief.factors.T + np.diag(own))
        covariance = np.linalg.inv(before + np.diag(belief.evidence.precision[user]))
        means = covariance @ (before @ belief.means + belief.evidence.value[user])
        np.testing.assert_allclose(posterior.core, means, rtol=1e-6)
        np.testing.assert_allclose(
            posterior.loadings @ posterior.loadings.T + np.diag(posterior.specific),
            covariance,
            atol=1e-8,
        )


def test_a_user_of_unknown_kind_is_bayes_rule() -> None:
    # On the arms that do not count, a user can only be core. On arm 0 the posterior follows from
    # the prior of either kind, given what the other arms tell of a core user.
    rng = np.random.default_rng(7)
    belief = random_evidence(rng, 30, 4)
    own, shares = rng.uniform(0.01, 0.05, 4), np.array([0.1, 1e-12, 1e-12, 1e-12])
    prior = Prior(belief.means, belief.factors, own, shares, np.full(4, 0.3))
    nothing = belief.evidence.precision[:, 0].copy()
    posterior = workspace(4, 2)
    found = 0
    for user in range(30):
        others = Evidence(belief.evidence.precision.copy(), belief.evidence.value.copy())
        others.precision[user, 0] = others.value[user, 0] = 0.0
        infer(prior, others, user, posterior)
        core, spread = posterior.core[0], core_variance(posterior, 0)
        grid = np.linspace(-4.0, 5.0, 20_001)
        near = np.exp(-((grid - core) ** 2) / (2 * spread)) / np.sqrt(spread)
        far = np.exp(-((grid - belief.means[0]) ** 2) / 0.6) / np.sqrt(0.3)
        weight, value = nothing[user], belief.evidence.value[user, 0]
        seen = np.exp(value * grid - weight * grid**2 / 2 - value * value / max(2 * weight, 1e-9))
        near, far = 0.9 * near * seen, 0.1 * far * seen
        both = near + far
        mean = (both * grid).sum() / both.sum()
        infer(prior, belief.evidence, user, posterior)
        assert posterior.chances[0] == pytest.approx(far.sum() / both.sum(), rel=1e-4)
        assert posterior.means[0] == pytest.approx(mean, rel=1e-4)
        variance = (both * (grid - mean) ** 2).sum() / both.sum()
        assert posterior.variances[0] == pytest.approx(variance, rel=1e-3)
        found += posterior.chances[0] > 0.2
    assert found > 0  # or nobody's kind was in doubt


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


def test_a_state_without_outsiders_is_taken_over() -> None:
    belief = random_evidence(np.random.default_rng(12), 10, 3)
    state = belief.state()
    del state["shares"]
    other = PopulationBelief(10, 3, 5)
    other.restore(state)
    assert np.array_equal(other.means, belief.means)
    assert (other.shares == SHARES.mean()).all()


@pytest.mark.parametrize(
    ("variance", "parts"), [(0.1, 4), (0.05, 1)]
)  # an arm's first crowd, a later
def test_evidence_is_the_literal_formula(variance: float, parts: int) -> None:
    # Two groups on arm 0, one of them with a member who did not report; a withheld one on arm 1.
    belief = PopulationBelief(9, 2, 2)
    belief.mean_variances[:] = variance
    belief.squares[OBSERVED] = 6.0
    arms = np.array([0, 0, 0, 0, 0, 1, 1, 0, -1], np.int32)
    groups = np.array([0, 0, 0, 1, 1, 2, 2, -1, -1], np.int32)
    reported = np.array([1, 1, 0, 1, 1, 0, 0, 0, 0])
    totals = np.array([2.0, 0.0, 0.0])
    predicted = np.array([0.3, 0.4, 0.5, 0.2, 0.35, 0.1, 0.1, 0.3, 0.0], np.float32)
    variances = np.full(9, 0.02, np.float32)
    variances[4] = 0.9  # more than means can vary
    absorb(belief, arms, groups, totals, reported, predicted, variances)

    e = (2.0 - 0.7 - 0.55) / 4
    spread = (3 * 0.02 + 0.9) / parts
    gain = variance / (variance + (1.5 * 0.3 * 0.7 + spread) / 4)  # overdispersion 6 / 4, b = 0.3
    shift = max(gain, 1 - 1 / 2) * e
    assert belief.means == pytest.approx([0.3 + gain * e, 0.3])
    assert belief.mean_variances == pytest.approx([variance * (1 - gain), variance])
    moved = predicted.astype(float) + shift
    r = (0.7 + 0.55) / 4 + gain * e
    noise = 2 * r * (1 - r)
    gaps = [2.0 - moved[0] - moved[1], 0.0 - moved[3] - moved[4]]
    observed = 6.0 + 2 * (gaps[0] ** 2 + gaps[1] ** 2)
    expected = 4.0 + 2 * noise
    assert belief.squares[:, 0] == pytest.approx([observed, expected])
    assert belief.squares[:, 1] == pytest.approx([6.0, 4.0])
    most = beta_variance(np.array([r]))[0]
    own = 1 - max(gain, 1 - 1 / 2) / 2
    precision, value = np.zeros((9, 2)), np.zeros((9, 2))
    for user, group in ((0, 0), (1, 0), (3, 1), (4, 1)):
        q = observed / expected * noise
        weight = 1 / (q - (most if user == 4 else 0.02))
        precision[user, 0] = own * weight
        value[user, 0] = weight * (gaps[group] + own * moved[user])
    np.testing.assert_allclose(belief.evidence.precision, precision, rtol=1e-5)
    np.testing.assert_allclose(belief.evidence.value, value, rtol=1e-5)


def test_drift_adds_its_variance_to_what_was_seen() -> None:
    belief = random_evidence(np.random.default_rng(1), 30, 4)
    precision, value = belief.evidence.precision.astype(float), belief.evidence.value.astype(float)
    belief.add_drift(0.01)
    seen = precision > 0
    np.testing.assert_allclose(
        1 / belief.evidence.precision[seen], 1 / precision[seen] + 0.01, rtol=1e-5
    )
    np.testing.assert_allclose(
        belief.evidence.value[seen] / belief.evidence.precision[seen],
        value[seen] / precision[seen],
        rtol=1e-5,
    )
    assert (belief.evidence.precision[~seen] == 0).all()


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


@pytest.mark.parametrize("n_groups", [2, 3, 8])
def test_few_groups_of_an_arm_do_not_hide_tastes(n_groups: int) -> None:
    # What groups have in common says nothing of their members; what is left says the less of them
    # the fewer groups there are, and its mean square is what its precision says. Squares of 4,000
    # draws of (n - 1) / n normals each average to 1 within 0.12 but for 1 in 10^6.
    rng = np.random.default_rng(n_groups)
    size, n_draws = 10, 4000
    n_users = size * n_groups
    groups = (np.arange(n_users) // size).astype(np.int32)
    squares = []
    for _ in range(n_draws):
        belief = PopulationBelief(n_users, 1, size)
        belief.means[:], belief.mean_variances[:] = 0.5, 1e3  # nothing is known of the crowd
        belief.squares[:] = 1e9
        totals = rng.binomial(size, 0.5, n_groups).astype(float)
        predicted, variances = np.full(n_users, 0.5, np.float32), np.zeros(n_users, np.float32)
        reported = np.ones(n_users, np.int64)
        absorb(belief, np.zeros(n_users, np.int32), groups, totals, reported, predicted, variances)
        precision, value = (array[0, 0] for array in belief.evidence)
        crowd = totals.sum() / n_users
        noise = crowd * (1 - crowd) / 0.25
        squares.append((value / precision - crowd) ** 2 * precision * noise)
    assert np.mean(squares) == pytest.approx(1.0, abs=0.12)


def test_nothing_seen_teaches_nothing() -> None:
    belief = PopulationBelief(50, 4, 5)
    learn_prior(belief, np.arange(50), 5)
    assert belief.factors.shape == (4, 0)
    np.testing.assert_allclose(belief.hidden, beta_variance(belief.means), rtol=1e-2)


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


def test_rewards_and_their_lack_weigh_the_same() -> None:
    # Alone in its group, a user learns its own frequency of rewards, whatever their order.
    belief = PopulationBelief(2, 1, 1)
    rewards = np.array([[1, 0], [1, 0], [0, 0], [0, 1], [0, 1]], float)
    groups = np.arange(2, dtype=np.int32)
    arms, reported = np.zeros(2, np.int32), np.ones(2, np.int64)
    posterior = workspace(1, 0)
    for totals in rewards:
        predicted, variances = np.zeros((2, 2), np.float32)
        for user in range(2):
            infer(belief.prior(), belief.evidence, user, posterior)
            predicted[user], variances[user] = posterior.means[0], posterior.variances[0]
        absorb(belief, arms, groups, totals, reported, predicted, variances)
    assert belief.evidence.precision[0, 0] == pytest.approx(
        belief.evidence.precision[1, 0], rel=0.25
    )


def test_intervals_hold_what_they_say_where_users_have_nothing_in_common() -> None:
    # Uniform means, the most that users can differ: four draws' mean share of true means in the
    # 90 % intervals has a standard deviation of 0.01 (40 draws), and means of 0.88 to 0.92.
    inside = []
    for seed in range(4):
        rng = np.random.default_rng([41, seed])
        means = rng.random((400, 5))
        problem = Problem(400, 5, 8, horizon=1000)
        environment = make_environment("bernoulli", problem, means, rng=rng)
        policy = PopulationPolicy(problem, rng=rng)
        for moment in (15, 30, 60, 120):
            while policy.rounds < moment:
                policy.tell(environment.play(policy.ask()))
            beliefs = policy.beliefs()
            inside.append((np.abs(means - beliefs.means) < 1.645 * beliefs.deviations).mean())
    shares = np.reshape(inside, (4, 4)).mean(axis=0)
    assert (shares > 0.84).all()
    assert (shares < 0.96).all()
