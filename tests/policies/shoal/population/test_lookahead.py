"""Decisions: the block lookahead against its formula, the panel, and nobody unseen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from shoal.arrays import FloatArray
from shoal.policies.shoal.population.belief import Decision
from shoal.policies.shoal.population.lookahead import (
    BLOCK_HALVINGS,
    BLOCK_SHARES,
    NO_ASSIGNMENTS,
    DecisionSchedule,
    Explorers,
    decide,
    return_unseen,
)
from shoal.policies.shoal.population.posterior import Evidence, Prior

SEED = np.uint64(2**63 + 12345)


def test_decision_is_the_best_block_of_the_literal_formula() -> None:
    rng = np.random.default_rng(5)
    n_users, n_arms, left = 300, 5, 100.0
    prior = Prior(rng.uniform(0.2, 0.4, n_arms), rng.normal(0, 0.1, (n_arms, 2)), np.full(5, 0.01))
    precision = rng.gamma(0.5, 20.0, (n_users, n_arms)).astype(np.float32)
    value = (precision * rng.uniform(0.1, 0.6, (n_users, n_arms))).astype(np.float32)
    allowed = rng.random((n_users, n_arms)) < 0.8
    allowed[:, 0] = True
    arms = np.full(n_users, -1, np.int32)
    predicted, variances = np.zeros((2, n_users), np.float32)
    noise = np.full(n_arms, 8.0)
    explorers = Explorers(np.zeros(n_users, np.float32), 0.0, NO_ASSIGNMENTS)
    decide(
        prior, Evidence(precision, value), allowed, explorers, noise,
        DecisionSchedule(left, 0, 1), SEED, Decision(arms, predicted, variances),
    )  # fmt: skip
    before = np.linalg.inv(prior.factors @ prior.factors.T + np.diag(prior.specific))
    surprising = 0
    for user in range(n_users):
        s = np.linalg.inv(before + np.diag(precision[user]))
        m = s @ (before @ prior.means + value[user])
        able: list[int] = np.flatnonzero(allowed[user]).tolist()
        best = able[int(m[able].argmax())]
        rest = [other for other in able if other != best]
        values: dict[int, float] = {}
        for arm in able:
            b = prior.means[arm]
            for block in np.minimum(
                BLOCK_SHARES * left, BLOCK_HALVINGS * 8.0 * b * (1 - b) / s[arm, arm]
            ):
                deviation = np.abs(s[:, arm] - s[best, arm])
                deviation = deviation / math.sqrt(s[arm, arm] + 8.0 * b * (1 - b) / block)
                gain = excess(m[best] - m[rest], deviation[rest]).max(initial=0.0)
                worth = (left - block) * gain - block * (m[best] - m[arm])
                values[arm] = max(values.get(arm, -math.inf), worth)
        # Interpolating in the table costs a little: near ties may go either way.
        assert values[arms[user]] >= max(values.values()) - 0.01
        assert predicted[user] == pytest.approx(m[arms[user]], rel=1e-5)
        assert variances[user] == pytest.approx(s[arms[user], arms[user]], rel=1e-5)
        surprising += arms[user] != best
    assert surprising > 30  # or nothing but favourites was tested


def excess(gap: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return E[(deviation t - gap)+], t Student's with three degrees of freedom, scaled."""
    scale = np.maximum(deviation, 1e-12) / math.sqrt(3)
    u = gap / scale
    expected = scale * ((3 + u * u) / 2 * stats.t.pdf(u, 3) - u * stats.t.sf(u, 3))
    return np.where(deviation < 1e-12, 0.0, expected)


def test_panel_plays_every_arm_alike() -> None:
    # 90,000 draws over three arms: six standard errors are 850.
    n_users = 90_000
    prior = Prior(np.array([0.1, 0.5, 0.9]), np.zeros((3, 0)), np.full(3, 0.01))
    nothing = np.zeros((n_users, 3), np.float32)
    ranks = np.zeros(n_users, np.float32)
    arms = np.full(n_users, -1, np.int32)
    predicted, variances = np.zeros((2, n_users), np.float32)
    decide(
        prior, Evidence(nothing, nothing), np.ones((n_users, 3), bool),
        Explorers(ranks, 0.5, NO_ASSIGNMENTS), np.ones(3), DecisionSchedule(10.0, 0, 1), SEED,
        Decision(arms, predicted, variances),
    )  # fmt: skip
    assert np.abs(np.bincount(arms) - 30_000).max() < 850


@pytest.mark.parametrize(("left", "tried"), [(300.0, False), (20_000.0, True)])
def test_what_few_like_is_tried_where_there_is_time(left: float, tried: bool) -> None:
    # Arm 1 is three deviations behind, which a normal taste would hardly ever make up for.
    prior = Prior(np.array([0.5, 0.05]), np.zeros((2, 0)), np.array([1e-4, 0.15**2]))
    precision, value = np.zeros((2, 10, 2), np.float32)
    arms = np.full(10, -1, np.int32)
    predicted, variances, ranks = np.zeros((3, 10), np.float32)
    decide(
        prior, Evidence(precision, value), np.ones((10, 2), np.bool_),
        Explorers(ranks, 0.0, NO_ASSIGNMENTS), np.full(2, 8.0), DecisionSchedule(left, 0, 1), SEED,
        Decision(arms, predicted, variances),
    )  # fmt: skip
    assert (arms == int(tried)).all()


def test_only_explorers_are_sent_back_and_only_from_small_crowds() -> None:
    prior = Prior(np.array([0.5, 0.4, 0.3]), np.zeros((3, 0)), np.full(3, 0.01))
    evidence = Evidence(*np.zeros((2, 12, 3), np.float32))
    evidence.precision[11, 2], evidence.value[11, 2] = 1e4, 9e3  # likes the last arm
    allowed = np.ones((12, 3), np.bool_)
    allowed[10] = [False, True, False]
    arms = np.array([0] * 6 + [1] * 2 + [2] * 2 + [1, 2], np.int32)
    decision = Decision(arms, *np.zeros((2, 12), np.float32))
    return_unseen(prior, evidence, allowed, 4, decision)
    assert arms.tolist() == [0] * 10 + [1, 2]
    np.testing.assert_allclose(decision.predicted[6:10], 0.5)
    np.testing.assert_allclose(decision.variances[6:10], 0.01)
    arms = np.array([0] * 4 + [1] * 4 + [2] * 4, np.int32)
    allowed[:] = True
    return_unseen(prior, evidence, allowed, 4, decision._replace(arms=arms))
    assert np.bincount(arms).tolist() == [4, 4, 4]
