"""The pages that analysts and operators read: campaigns, curves, anonymity."""

from typing import Any

from fastapi import APIRouter, Response

from shoal.service.aggregator import Aggregator, audit_log
from shoal.service.audit import THREATS
from shoal.service.dashboard import checks
from shoal.service.dashboard.auth import ReaderPage, StaffPage, ViewerPage
from shoal.service.dashboard.definition import settings
from shoal.service.dashboard.formatting import homogeneous, is_alarming
from shoal.service.dashboard.progress import campaign_view
from shoal.service.dashboard.rendering import PageRoute, redirect
from shoal.service.dashboard.series import read_released
from shoal.service.web.access import Name

router = APIRouter(route_class=PageRoute, include_in_schema=False)

MAX_ENTRIES = 500  # of the audit log, on its page
TABLE_COLUMNS = {
    "reward": ["round", "released, UTC", "reward", "holdout", "best single arm, estimated",
               "first rounds"],
    "sizes": ["round", "released, UTC", "smallest total", "mean total", "smallest group, by plan",
              "smallest crowd", "C"],
    "groups": ["round", "released, UTC", "whole", "merged", "withheld", "homogeneous"],
    "estimates": ["arm", "mean", "low", "high", "best for", "spread"],
}  # fmt: skip
"""The head of each chart's table; that of ``shares`` names the arms."""


@router.get("/")
def list_campaigns(page: ViewerPage) -> Response:
    """List the campaigns; an admin begins with the tokens."""
    holder = page.session.holder
    if holder.role == "admin":
        return redirect("/tokens")
    names = [name for name in page.aggregator.directory.names() if holder.covers(name)]
    return page.render("campaigns.html", rows=[_row(page.aggregator, name) for name in names])


@router.get("/audit")
def show_audit(page: StaffPage) -> Response:
    """Show the last entries of the audit log."""
    with page.aggregator.database.read() as connection:
        entries = audit_log.read_last(
            connection, limit=MAX_ENTRIES, campaigns=page.session.holder.campaigns
        )
    return page.render("audit.html", entries=entries, limit=MAX_ENTRIES)


@router.get("/campaigns/{name}")
def show_campaign(name: Name, page: ReaderPage) -> Response:
    """Show a campaign's curves."""
    from shoal.service.dashboard import charts  # Altair, which no other request needs

    campaign, view = page.aggregator.directory.campaign(name), campaign_view(page.aggregator, name)
    return page.render(
        "campaign.html",
        name=name,
        campaign=campaign,
        view=view,
        learner=page.aggregator.epochs.learner_state(name),
        ahead=page.aggregator.epochs.ahead(name),
        finished=campaign.horizon is not None and view.now.number >= campaign.horizon,
        archived=page.aggregator.directory.is_archived(name),
        settings=settings(campaign, page.aggregator.directory.created_at(name)),
        columns=TABLE_COLUMNS,
        data={
            "view": view.model_dump(),
            "specs": charts.specs(
                min_size=campaign.min_reporters,
                noise=campaign.noise is not None,
                holdout=campaign.holdout is not None,
            ),
            "themes": charts.THEMES,
            "lines": charts.LINES,
        },
    )


@router.get("/campaigns/{name}/anonymity")
def show_anonymity(name: Name, page: ReaderPage) -> Response:
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
        alarming=is_alarming(series),
        archived=page.aggregator.directory.is_archived(name),
        contested=page.aggregator.releases.n_contested(name),
        abandoned=page.aggregator.n_abandoned(name),
        checked=(checked := checks.latest(page.aggregator, name)),
        verdict=checks.verdict(checked, exact=campaign.noise is None),
        threats=THREATS,
    )


@router.get("/guide")
def show_guide(page: ViewerPage) -> Response:
    """Show what the pages' words and numbers mean."""
    return page.render("guide.html")


def _row(aggregator: Aggregator, name: str) -> dict[str, Any]:
    directory = aggregator.directory
    return {
        "name": name,
        "n_users": sum(directory.roster(name).active),
        "n_arms": sum(arm.until is None for arm in directory.arms(name)),
        "least": directory.campaign(name).min_reporters,
        "last": aggregator.rounds.latest(name),
        "created_at": directory.created_at(name),
        "archived": directory.is_archived(name),
    }
