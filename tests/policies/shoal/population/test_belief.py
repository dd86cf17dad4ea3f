"""Evidence of users, and their posterior from it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.population import absorb, random_evidence

from shoal.policies.shoal.joint.prior import SHARES
from shoal.policies.shoal.population.belief import (
    OBSERVED,
    PopulationBelief,
    beta_variance,
)
from shoal.policies.shoal.population.posterior import (
    Evidence,
    Prior,
    infer,
    workspace,
)


@pytest.mark.slow
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
        core, spread = posterior.core[0], posterior.core_variances[0]
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
