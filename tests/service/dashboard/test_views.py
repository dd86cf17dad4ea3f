from __future__ import annotations

from types import SimpleNamespace

import pytest
from tests.support.live import Live, learning, serve
from tests.support.stores import Stores
from tests.support.visits import ARMS, CAMPAIGN, FORM, Visitor, create, play, wait

from shoal.service.audit import RULES
from shoal.service.campaign import Campaign
from shoal.service.dashboard.formatting import _reference
from shoal.service.dashboard.lift import Lift
from shoal.service.dashboard.progress import campaign_view


def test_the_anonymity_page_of_noisy_totals_says_so(live: Live, operator: Visitor) -> None:
    operator.send("/new-campaign", **FORM | {"name": "noisy", "epsilon": "0.25"})
    operator.send("/campaigns/noisy/check")
    page = operator.http.get("/campaigns/noisy/anonymity").text
    assert "Epsilon of the noise, each round</dt><dd>0.25</dd>" in page
    assert "not counted: noise hides them" in page
    assert page.count(">not checked<") == 2
    assert page.count(">nothing released yet<") == len(RULES) - 2
    assert ">holds<" not in page
    assert "No round has been released yet; checked last on" in page
    assert "rules hold" not in page
    assert "2: duplicate report" in page


def test_the_page_says_whose_estimates_it_has_from_the_first_release_on(
    sqlite_stores: Stores,
) -> None:
    with serve(sqlite_stores) as live, learning(live):
        create(live)
        play(live, 1)
        view = campaign_view(live.aggregator, CAMPAIGN)
        assert not view.estimates.by_learner  # they come with a plan
        caption = view.words["caption_estimates"]
        assert "where its policy gives one, comes with the next plan" in caption
        assert "gives no estimate of its own" not in caption
        assert "estimated from released averages" in view.words["lift_note"]
        live.client("operator").open_round(CAMPAIGN, 2)
        wait(lambda: campaign_view(live.aggregator, CAMPAIGN).estimates.by_learner)
        view = campaign_view(live.aggregator, CAMPAIGN)
        best = view.estimates.mean[ARMS.index("sport")]
        assert f"by the learner's estimate: {best:.3f}." in view.words["caption_reward"]
        assert view.words["lift_note"].endswith("(95 %), estimated: there is no holdout")


def test_the_page_says_where_to_read_for_whom_an_arm_is_the_best(played: Live) -> None:
    caption = campaign_view(played.aggregator, CAMPAIGN).words["caption_estimates"]
    assert "The table and the CSV file also say for which share of users" in caption
    assert "Beside it" not in caption


def test_a_round_released_over_nobody_is_not_denied(live: Live, operator: Visitor) -> None:
    client = live.client("operator")
    client.create_campaign("empty", arms=["a", "b"], min_group_size=5, seats=20, policy="random")
    client.open_round("empty", 1, wait=0)
    live.work()
    client.close_round("empty", 1)
    live.work()
    page = operator.http.get("/campaigns/empty").text
    assert '<dd data-words="rounds">1</dd>' in page
    assert "No curves yet" in page
    assert "Nothing has been released" not in page


@pytest.mark.parametrize(("mean", "text"), [(-0.053, "−0.053"), (0.053, "+0.053")])
def test_a_lift_of_either_sign_is_a_difference(mean: float, text: str) -> None:
    lift = Lift(mean, 0.02, 0.4, 12, 30, by_blocks=True)
    campaign = Campaign(arms=["a", "b"], min_group_size=5, seats=40, holdout=0.5)
    caption = _reference(SimpleNamespace(lift=lift), campaign)  # type: ignore[arg-type]
    assert f"Others differ from that by {text}, with 95 % confidence" in caption
    assert " more" not in caption
