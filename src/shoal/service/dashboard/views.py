"""The pages that analysts and operators read: campaigns, curves, anonymity."""

from typing import Any

from fastapi import APIRouter, Response

from shoal.service.aggregator import Aggregator
from shoal.service.audit import THREATS
from shoal.service.dashboard import charts, checks
from shoal.service.dashboard.auth import ViewerPage
from shoal.service.dashboard.formatting import homogeneous
from shoal.service.dashboard.progress import campaign_view
from shoal.service.dashboard.rendering import PageRoute
from shoal.service.dashboard.series import read_released
from shoal.service.web.access import Name

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/")
def list_campaigns(page: ViewerPage) -> Response:
    """List the campaigns."""
    rows = [_row(page.aggregator, name) for name in page.aggregator.directory.names()]
    return page.render("campaigns.html", rows=rows)


@router.get("/campaigns/{name}")
def show_campaign(name: Name, page: ViewerPage) -> Response:
    """Show a campaign's curves."""
    campaign, view = page.aggregator.directory.campaign(name), campaign_view(page.aggregator, name)
    return page.render(
        "campaign.html",
        name=name,
        campaign=campaign,
        view=view,
        finished=campaign.horizon is not None and view.now.number >= campaign.horizon,
        data={
            "view": view.model_dump(),
            "specs": charts.specs(least=campaign.min_reporters, noise=campaign.noise is not None),
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
        series=series,
        homogeneous=homogeneous(series, campaign),
        checked=checks.latest(page.aggregator, name),
        threats=THREATS,
    )


def _row(aggregator: Aggregator, name: str) -> dict[str, Any]:
    directory = aggregator.directory
    return {
        "name": name,
        "n_users": sum(directory.roster(name).active),
        "n_arms": sum(arm.until is None for arm in directory.arms(name)),
        "least": directory.campaign(name).min_reporters,
        "last": aggregator.rounds.latest(name),
    }
