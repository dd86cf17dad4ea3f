"""Threat 31: low rates make totals homogeneous, which is said before and while a campaign runs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.live import serve
from tests.support.service import close, even, report, start, users
from tests.support.stores import Stores
from tests.support.visits import Visitor

from shoal.service.aggregator import Aggregator
from shoal.service.homogeneity import advice, homogeneous_share, least_users


@pytest.mark.parametrize("least", [5, 20, 50])
def test_threat_31_low_rates_make_totals_homogeneous(least: int) -> None:
    """3 % ones: the share that is shown is the one that draws have.

    A false alarm has probability below 1e-6: five standard errors of 100,000 totals.
    """
    rng = np.random.default_rng(31)
    ones = rng.binomial(least, 0.03, size=100_000)
    drawn = np.mean((ones == 0) | (ones == least))
    share = homogeneous_share(0.03, least)
    assert abs(drawn - share) < 5 * np.sqrt(share * (1 - share) / 100_000)
    assert share == pytest.approx({5: 0.8587, 20: 0.5438, 50: 0.2181}[least], abs=1e-4)
    assert "Take C = 76 or noise" in advice(0.03, least, noise=False)


def test_the_least_c_is_the_least() -> None:
    assert least_users(0.03) == 76
    assert homogeneous_share(0.03, 76) <= 0.1 < homogeneous_share(0.03, 75)
    assert "noise hides it" in advice(0.03, 20, noise=True)
    assert "Take" not in advice(0.5, 20, noise=False)
    assert "a larger C" in advice(0.0, 20, noise=False)
    assert "Take noise: C = 76 is more than the 50 seats" in advice(0.03, 5, noise=False, seats=50)


def test_threat_31_the_share_is_shown_before_a_campaign_starts(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live, Visitor(live, "operator") as operator:
        page = operator.http.get("/new-campaign").text
        assert "With C = 20" in page
        assert "54% where 3% are" in page
        again = operator.send("/new-campaign", min_group_size="50", colluders="0").text
        assert "With C = 50" in again
        assert "22% where 3% are" in again


@pytest.mark.parametrize("reward", [0.0, 0.5])
def test_threat_31_the_page_alarms_while_a_campaign_runs(
    sqlite_stores: Stores, reward: float
) -> None:
    with serve(sqlite_stores) as live:
        aggregator: Aggregator = live.aggregator
        start(aggregator, even(12, size=4), least=4)
        report(aggregator, dict.fromkeys(users(12), reward))
        close(aggregator)
        with Visitor(live, "analyst") as analyst:
            page = analyst.http.get("/campaigns/news/anonymity").text
        assert ("More than a tenth of the totals are homogeneous" in page) == (reward == 0.0)
