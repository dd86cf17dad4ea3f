"""The pages that analysts and operators read: campaigns, curves, anonymity."""

from typing import Any

from fastapi import APIRouter, Response

from shoal.service.aggregator import Aggregator
from shoal.service.audit import THREATS
from shoal.service.campaign import Campaign
from shoal.service.dashboard import charts, checks
from shoal.service.dashboard.auth import ViewerPage
from shoal.service.dashboard.formatting import MISSING, homogeneous, number
from shoal.service.dashboard.progress import campaign_view
from shoal.service.dashboard.rendering import PageRoute
from shoal.service.dashboard.series import Series, read_released
from shoal.service.web.access import Name

router = APIRouter(route_class=PageRoute, include_in_schema=False)

NOT_IN_THE_STORE = (
    ((8,), "Over many rounds the learner learns each user's mean reward. That is its purpose; the "
     "promise is per round."),
    ((10,), "Only an operator enrols users. C counts accounts, not people."),
    ((12, 18, 20, 21), "Strict input, logs without data, hashed tokens and rounds that show "
     "nothing before they close are properties of the program, shown by its tests."),
)  # fmt: skip
"""Threats, by number, that no check of the store can show to be answered."""


@router.get("/")
def list_campaigns(page: ViewerPage) -> Response:
    """List the campaigns."""
    rows = [_row(page.aggregator, name) for name in page.aggregator.directory.names()]
    return page.render("campaigns.html", rows=rows)


@router.get("/campaigns/{name}")
def show_campaign(name: Name, page: ViewerPage) -> Response:
    """Show a campaign's curves."""
    campaign, view = page.aggregator.directory.campaign(name), campaign_view(page.aggregator, name)
    specs = charts.specs(view.arms, least=campaign.min_reporters, noise=campaign.noise is not None)
    return page.render(
        "campaign.html",
        name=name,
        campaign=campaign,
        view=view,
        finished=campaign.horizon is not None and view.now.number >= campaign.horizon,
        data={
            "view": view.model_dump(),
            "specs": specs,
            "themes": charts.THEMES,
            "lines": charts.LINES,
        },
    )


@router.get("/campaigns/{name}/anonymity")
def show_anonymity(name: Name, page: ViewerPage) -> Response:
    """Show what was released, and whether every rule holds."""
    campaign = page.aggregator.directory.campaign(name)
    complete, series = read_released(page.aggregator, name)
    return page.render(
        "anonymity.html",
        name=name,
        campaign=campaign,
        complete=complete,
        released=_released(series, campaign, complete=complete),
        checked=checks.latest(page.aggregator, name),
        not_in_the_store=NOT_IN_THE_STORE,
        threats=THREATS,
    )


def _released(series: Series, campaign: Campaign, *, complete: bool) -> dict[str, str]:
    facts = {
        "Rounds released": number(series.last),
        "Totals released": number(series.count("totals")),
        "Smallest total ever, in reporters": number(series.smallest("smallest_total")),
        "Smallest group ever, by plan": number(series.smallest("smallest_group")),
        "Totals over merged groups": number(series.count("merged")),
        "Groups withheld permanently": number(series.count("withheld")),
        "Homogeneous totals, all 0 or all 1": homogeneous(series, campaign),
    }
    if not complete:  # what is not known is not zero
        facts = dict.fromkeys(facts, MISSING)
    if campaign.noise:
        epsilon = campaign.noise.epsilon
        composed = f"{series.last * epsilon:g}" if complete else MISSING
        facts["Epsilon of the noise, each round"] = f"{epsilon:g}"
        facts["Epsilon of all rounds together"] = composed
    return facts


def _row(aggregator: Aggregator, name: str) -> dict[str, Any]:
    directory, last = aggregator.directory, aggregator.rounds.latest(name)
    return {
        "name": name,
        "n_users": sum(directory.roster(name).active),
        "n_arms": sum(arm.until is None for arm in directory.arms(name)),
        "least": directory.campaign(name).min_reporters,
        "state": last.state if last else "new",
        "now": f"Round {number(last.number)}" if last else "No round yet",
    }
