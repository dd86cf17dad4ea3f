"""The pages that an analyst sees, and an operator too: campaigns, curves, anonymity."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from shoal.service.aggregator import Aggregator
from shoal.service.audit import THREATS
from shoal.service.dashboard import charts, checks, view, words
from shoal.service.dashboard.doors import Viewer
from shoal.service.dashboard.pages import PageRoute, page
from shoal.service.web.access import Name, Service

router = APIRouter(route_class=PageRoute, include_in_schema=False)

DONE = {
    "created": "The campaign is made. Enrol its users, then open the first round.",
    "opened": "The round was asked for. It opens as soon as the learner has planned it.",
    "closed": "The round is closed and released.",
    "checked": "Every rule has been checked.",
    "added": "The arm is added. It can be played from the next round on.",
    "retired": "The arm is retired. Nobody is given it from the next round on.",
    "revoked": "The token is revoked.",
}
ELSEWHERE = (
    ((8,), "Over many rounds the learner learns each user's mean reward. That is its purpose; the "
     "promise is per round."),
    ((10,), "Only an operator enrols users. C counts accounts, not people."),
    ((12, 18, 20, 21), "Strict input, silent logs, hashed tokens and rounds that tell nothing "
     "before they close are properties of the program, shown by its tests."),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A campaign in the list."""

    name: str
    users: int
    arms: int
    least: int
    state: str
    now: str


@router.get("/")
def list_campaigns(request: Request, session: Viewer, aggregator: Service) -> Response:
    """List the campaigns."""
    rows = [_row(aggregator, name) for name in aggregator.directory.names()]
    return page(request, "campaigns.html", session, rows=rows)


@router.get("/campaigns/{name}")
def show_campaign(
    name: Name, request: Request, session: Viewer, aggregator: Service, done: str = ""
) -> Response:
    """Show a campaign's curves."""
    campaign, found = aggregator.directory.campaign(name), view.read(aggregator, name)
    return page(
        request,
        "campaign.html",
        session,
        name=name,
        campaign=campaign,
        view=found,
        done=DONE.get(done, ""),
        over=_over(aggregator, name),
        lines=charts.LINES,
        data={
            "view": found.model_dump(),
            "specs": charts.specs(
                found.arms, least=campaign.least, noise=campaign.noise is not None
            ),
            "themes": charts.THEMES,
            "lines": charts.LINES,
        },
    )


@router.get("/campaigns/{name}/anonymity")
def show_anonymity(
    name: Name, request: Request, session: Viewer, aggregator: Service, done: str = ""
) -> Response:
    """Show what was released, and whether every rule holds."""
    campaign = aggregator.directory.campaign(name)
    heard, found = view.released(aggregator, name)
    released = {
        "Rounds released": words.count(found.last),
        "Totals released": words.count(found.count("totals")),
        "Smallest total ever, in reporters": words.whole(found.smallest("smallest_total")),
        "Smallest group ever, by plan": words.whole(found.smallest("smallest_group")),
        "Totals over merged groups": words.count(found.count("merged")),
        "Groups withheld for ever": words.count(found.count("withheld")),
        "Homogeneous totals, all 0 or all 1": view.homogeneous(found, campaign),
    }
    if not heard:  # what is not known is not zero
        released = dict.fromkeys(released, words.NONE)
    if campaign.noise:
        epsilon, n_rounds = campaign.noise.epsilon, found.last
        released |= {
            "Epsilon of the noise, each round": f"{epsilon:g}",
            "Epsilon of all rounds together": f"{n_rounds * epsilon:g}" if heard else words.NONE,
        }
    return page(
        request,
        "anonymity.html",
        session,
        name=name,
        campaign=campaign,
        heard=heard,
        released=released,
        checked=checks.latest(aggregator, name),
        elsewhere=ELSEWHERE,
        threats=THREATS,
        done=DONE.get(done, ""),
    )


def _row(aggregator: Aggregator, name: str) -> Row:
    campaign, last = aggregator.directory.campaign(name), aggregator.rounds.latest(name)
    return Row(
        name,
        sum(aggregator.directory.roster(name).active),
        sum(arm.until is None for arm in aggregator.directory.arms(name)),
        campaign.least,
        last.state if last else "new",
        f"Round {words.count(last.number)}" if last else "No round yet",
    )


def _over(aggregator: Aggregator, name: str) -> bool:
    """Return whether all rounds have been played."""
    campaign, last = aggregator.directory.campaign(name), aggregator.rounds.latest(name)
    return last is not None and campaign.horizon is not None and last.number >= campaign.horizon
