"""Noise on totals: what it is drawn from, that it is drawn, and that the learner copes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from tests.support.live import serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import ServiceError
from shoal.service.aggregator.releases import add_noise
from shoal.service.campaign import Campaign, Noise


def campaign(epsilon: float, *, reward_steps: int) -> Campaign:
    return Campaign(
        arms=["a"], min_group_size=5, seats=20, policy="random", reward_steps=reward_steps,
        noise=Noise(epsilon=epsilon),
    )  # fmt: skip


def test_noise_is_discrete_laplace_with_the_scale_that_epsilon_asks_for() -> None:
    """P(x) = (1 - r) / (1 + r) r^|x| with r = exp(-epsilon / reward_steps); false alarms 1e-6."""
    n, ratio = 40_000, math.exp(-0.5 / 2)
    drawn = np.array(add_noise([7] * n, campaign(0.5, reward_steps=2))) - 7
    edge = 14
    chances = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-edge, edge + 1))
    tail = (1 - chances.sum()) / 2
    found = np.bincount(np.clip(drawn, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    expected = n * np.concatenate([[tail], chances, [tail]])
    assert expected.min() > 50
    assert stats.chisquare(found, expected).pvalue > 1e-6


def test_totals_of_any_size_get_noise_and_stay_whole() -> None:
    largest = 10_000_000 * 100_000_000
    noisy = add_noise([0, largest], campaign(1.0, reward_steps=100_000_000))
    assert all(isinstance(total, int) for total in noisy)
    # Beyond 40 scales lies less than 1e-17 of the noise.
    assert 0 < abs(noisy[1] - largest) < 40 * 100_000_000


def test_without_noise_totals_are_exact() -> None:
    plain = Campaign(arms=["a"], min_group_size=5, seats=20, policy="random")
    assert add_noise([1, 2, 3], plain) == [1, 2, 3]


@pytest.mark.parametrize("policy", ["shoal", "explore-then-commit"])
def test_a_learner_copes_with_totals_that_no_rewards_could_give(
    sqlite_stores: Stores, policy: str
) -> None:
    with serve(sqlite_stores) as live:
        operator, app, analyst = (live.client(role) for role in ("operator", "app", "analyst"))
        operator.create_campaign(
            "news", arms=["a", "b"], min_group_size=4, seats=12, horizon=50, policy=policy,
            noise={"epsilon": 0.01},
        )  # fmt: skip
        operator.enrol("news", users(12))
        totals = []
        for number in range(1, 6):
            operator.open_round("news", number, wait=0)
            live.work()
            app.report("news", number, dict.fromkeys(users(12), 0.5))
            operator.close_round("news", number)
            live.work()
            release = analyst.release("news", number)
            assert release.noise is not None
            assert release.noise.epsilon == 0.01
            totals += release.totals
        # Each lies inside its range with a chance of about 4 / 200.
        assert any(not 0 <= total.total <= 1000 * total.reporters for total in totals)
        assert live.learner.runs["news"].learnt == 5


def test_the_missing_extra_is_named_when_the_campaign_is_made(
    sqlite_stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.service.aggregator.releases.find_spec", lambda name: None)
    given = {"arms": ["a", "b"], "min_group_size": 4, "seats": 12, "policy": "random"}
    with serve(sqlite_stores) as live:
        operator = live.client("operator")
        with pytest.raises(ServiceError, match=r"pip install 'shoal\[service,dp\]'") as caught:
            operator.create_campaign("news", **given, noise={"epsilon": 1})
        assert caught.value.name == "invalid-input"
        operator.create_campaign("news", **given)
        for epsilon in (0, -1, 1e9, None):
            with pytest.raises(ServiceError, match="epsilon"):
                operator.create_campaign("other", **given, noise={"epsilon": epsilon})
