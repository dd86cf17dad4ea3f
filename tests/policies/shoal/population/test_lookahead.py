"""Decisions: the lookahead against its formula, the panel, and nobody unseen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shoal.policies.shoal.population.belief import Decision
from shoal.policies.shoal.population.lookahead import (
    NO_ASSIGNMENTS,
    DecisionSchedule,
    Explorers,
    UserRange,
    best_test,
    decide,
    most_gain,
    return_unseen,
)
from shoal.policies.shoal.population.posterior import Evidence, Prior, marginals

SEED = np.uint64(2**63 + 12345)


def test_decision_is_the_best_test_of_the_literal_formula() -> None:
    rng = np.random.default_rng(5)
    n_users, n_arms, left = 300, 5, 100.0
    prior = Prior(
        rng.uniform(0.2, 0.4, n_arms), rng.normal(0, 0.1, (n_arms, 2)), np.full(5, 0.01),
        rng.uniform(0.02, 0.2, n_arms), np.full(5, 0.07),
    )  # fmt: skip
    precision = rng.gamma(0.5, 20.0, (n_users, n_arms)).astype(np.float32)
    value = (precision * rng.uniform(0.1, 0.6, (n_users, n_arms))).astype(np.float32)
    allowed = rng.random((n_users, n_arms)) < 0.8
    allowed[:, 0] = True
    arms = np.full(n_users, -1, np.int32)
    predicted, variances = np.zeros((2, n_users), np.float32)
    explorers = Explorers(np.zeros(n_users, np.float32), 0.0, NO_ASSIGNMENTS, SEED)
    decide(
        prior, Evidence(precision, value), allowed, explorers, np.full(n_arms, 8.0),
        DecisionSchedule(left, 0, 1), Decision(arms, predicted, variances), UserRange(0, n_users),
    )  # fmt: skip
    chances, means, _ = marginals(prior, Evidence(precision, value))
    mixed = (chances * means).sum(axis=0)
    before = np.linalg.inv(prior.factors @ prior.factors.T + np.diag(prior.specific))
    surprising = 0
    for user in range(n_users):
        s = np.linalg.inv(before + np.diag(precision[user]))
        m, core, outsider = mixed[user], *means[:, user]
        able: list[int] = np.flatnonzero(allowed[user]).tolist()
        best = able[int(m[able].argmax())]
        values = {best: 0.0}
        for arm in able:
            noise = 8.0 * prior.means[arm] * (1 - prior.means[arm])
            p = chances[1, user, arm]
            tests = [(0.0, 1.0)]
            for other in able:
                if other != best:
                    gap = m[best] - (core[arm] if other == arm else m[other])
                    moved = (s[other, arm] - s[best, arm]) ** 2 / s[arm, arm]
                    tests.append(literal_test(gap, moved, noise / s[arm, arm], left, 0.3))
            kinds = [(1 - p, *max(tests)), (p, 0.0, 1.0)]
            if arm != best:
                spread = 1 / (1 / 0.07 + precision[user, arm])
                gap = m[best] - outsider[arm]
                kinds[1] = (p, *literal_test(gap, spread, noise / spread, left, 0.02))
            loss = m[best] - m[arm]
            if sum(chance * gain / length for chance, gain, length in kinds) > loss:
                values[arm] = sum(c * (g - n * loss) for c, g, n in kinds if g > 0)
        assert values.get(int(arms[user]), -1.0) >= max(values.values()) - 1e-4
        assert predicted[user] == pytest.approx(m[arms[user]], rel=1e-5)
        surprising += arms[user] != best
    assert surprising > 30  # or nothing but favourites was tested


def literal_test(
    gap: float, variance: float, halving: float, left: float, early_end: float
) -> tuple[float, float]:
    """Return the gain and the expected length of the best test of one arm by one kind of user."""
    z = gap / math.sqrt(variance) if gap >= 0 else 1.0
    n = max(1.0, halving / 4 * (z**2 - 1 + math.sqrt(1 + 6 * z**2 + z**4)))
    deviation = math.sqrt(variance * n / (n + halving))
    if n > left / 2 or z > 8 or gap > 8 * deviation:
        return 0.0, 1.0
    u = gap / deviation
    gain = (left - n) * deviation * (stats.norm.pdf(u) - u * stats.norm.sf(u))
    better = min(1.0, 2 * stats.norm.sf(gap / math.sqrt(variance)))
    return gain, n * (better + (1 - better) * early_end)


@given(
    gap=st.floats(-0.5, 1.0), variance=st.floats(1e-13, 0.25), halving=st.floats(0.01, 1e4),
    left=st.floats(1.0, 1e6),
)  # fmt: skip
def test_no_test_gains_more_than_its_bound(
    gap: float, variance: float, halving: float, left: float
) -> None:
    assert best_test(gap, variance, halving, left).gain <= left * most_gain(gap, variance)


def plain_prior(means: list[float], specific: list[float]) -> Prior:
    """Return a prior without factors, and with 5 % of outsiders."""
    n_arms = len(means)
    return Prior(
        np.array(means), np.zeros((n_arms, 0)), np.array(specific), np.full(n_arms, 0.05),
        np.full(n_arms, 0.07),
    )  # fmt: skip


def test_panel_plays_every_arm_alike() -> None:
    # 90,000 draws over three arms: six standard errors are 850.
    n_users = 90_000
    prior = plain_prior([0.1, 0.5, 0.9], [0.01, 0.01, 0.01])
    nothing = np.zeros((n_users, 3), np.float32)
    ranks = np.zeros(n_users, np.float32)
    arms = np.full(n_users, -1, np.int32)
    predicted, variances = np.zeros((2, n_users), np.float32)
    decide(
        prior, Evidence(nothing, nothing), np.ones((n_users, 3), bool),
        Explorers(ranks, 0.5, NO_ASSIGNMENTS, SEED), np.ones(3), DecisionSchedule(10.0, 0, 1),
        Decision(arms, predicted, variances), UserRange(0, n_users),
    )  # fmt: skip
    assert np.abs(np.bincount(arms) - 30_000).max() < 850


@pytest.mark.parametrize(
    ("left", "share", "tried"),
    [(1000.0, 0.05, False), (20_000.0, 0.05, True), (20_000.0, 1e-6, False)],
)
def test_what_few_like_is_tried_where_there_is_time(left: float, share: float, tried: bool) -> None:
    # Arm 1 is ten deviations behind for a core user, and one and a half for an outsider.
    prior = plain_prior([0.5, 0.1], [1e-4, 0.04**2])
    prior.shares[:] = share
    precision, value = np.zeros((2, 10, 2), np.float32)
    arms = np.full(10, -1, np.int32)
    predicted, variances, ranks = np.zeros((3, 10), np.float32)
    decide(
        prior, Evidence(precision, value), np.ones((10, 2), np.bool_),
        Explorers(ranks, 0.0, NO_ASSIGNMENTS, SEED), np.full(2, 8.0), DecisionSchedule(left, 0, 1),
        Decision(arms, predicted, variances), UserRange(0, 10),
    )  # fmt: skip
    assert (arms == int(tried)).all()


def test_only_explorers_are_sent_back_and_only_from_small_crowds() -> None:
    prior = plain_prior([0.5, 0.4, 0.3], [0.01, 0.01, 0.01])
    evidence = Evidence(*np.zeros((2, 12, 3), np.float32))
    evidence.precision[11, 2], evidence.value[11, 2] = 1e4, 9e3  # likes the last arm
    allowed = np.ones((12, 3), np.bool_)
    allowed[10] = [False, True, False]
    arms = np.array([0] * 6 + [1] * 2 + [2] * 2 + [1, 2], np.int32)
    decision = Decision(arms, *np.zeros((2, 12), np.float32))
    return_unseen(prior, evidence, allowed, 4, decision)
    assert arms.tolist() == [0] * 10 + [1, 2]
    np.testing.assert_allclose(decision.predicted[6:10], 0.5)
    # One in twenty would be an outsider, of variance 0.07.
    np.testing.assert_allclose(decision.variances[6:10], 0.95 * 0.01 + 0.05 * 0.07, rtol=1e-5)
    arms = np.array([0] * 4 + [1] * 4 + [2] * 4, np.int32)
    allowed[:] = True
    return_unseen(prior, evidence, allowed, 4, decision._replace(arms=arms))
    assert np.bincount(arms).tolist() == [4, 4, 4]
