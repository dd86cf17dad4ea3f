"""Campaigns and users: the operator's routes."""

from typing import Annotated

from fastapi import APIRouter, Body, Path, Response
from pydantic import Field, StringConstraints

from shoal import wire
from shoal.errors import ShoalError
from shoal.service.aggregator.releases import need_noise
from shoal.service.api.schemas import Checked
from shoal.service.campaign import USER, WORD, Campaign, Frozen
from shoal.service.problems import INVALID, ProblemError
from shoal.service.web.access import Name, Service, TokenFirst, allow
from shoal.wire import ArmState, CampaignNames, Moved

router = APIRouter(prefix="/v1/campaigns", tags=["campaigns"], route_class=TokenFirst)

ArmName = Annotated[
    str, Path(pattern=WORD, description="Any text of 1 to 64 characters but . and ..")
]
Users = Annotated[list[Annotated[str, StringConstraints(pattern=USER)]], Field(max_length=200_000)]
MovementBody = Annotated[
    wire.Movement,
    Body(),
    Checked(
        join=Users,
        leave=Users,
        erase=Annotated[bool, Field(description="Forget the names of those who leave.")],
    ),
]


class CampaignState(Frozen):
    """A campaign and how far it is; its definition names every arm that it has ever had."""

    name: str
    definition: Campaign
    arms: list[ArmState]
    users: int
    round: int
    state: str


@router.get("", dependencies=[allow("operator", "analyst")])
def list_campaigns(aggregator: Service) -> CampaignNames:
    """List the campaigns."""
    return CampaignNames(aggregator.directory.names())


@router.put(
    "/{name}",
    dependencies=[allow("operator")],
    status_code=201,
    responses={200: {"model": CampaignState, "description": "It was there already."}},
)
def create_campaign(
    name: Name, campaign: Campaign, aggregator: Service, response: Response
) -> CampaignState:
    """Create a campaign under a name that you choose; the same again changes nothing (200)."""
    try:
        campaign.make_policy()
        if campaign.noise is not None:
            need_noise()
    except ShoalError as error:
        raise ProblemError(INVALID, str(error)) from error
    if not aggregator.directory.create(name, campaign):
        response.status_code = 200
    aggregator.notifier.notify()
    return _state(aggregator, name)


@router.get("/{name}", dependencies=[allow("operator", "app", "analyst", "learner")])
def read_campaign(name: Name, aggregator: Service) -> CampaignState:
    """Read a campaign: its definition, its users' number, its last round."""
    return _state(aggregator, name)


@router.post("/{name}/users", dependencies=[allow("operator")])
def move_users(name: Name, movement: MovementBody, aggregator: Service) -> Moved:
    """Enrol and withdraw users in bulk, all or nobody; repeating it changes nothing."""
    joined, left = aggregator.directory.move(
        name, list(movement.join), list(movement.leave), erase=movement.erase
    )
    return Moved(joined, left)


@router.put(
    "/{name}/arms/{arm:path}",
    dependencies=[allow("operator")],
    status_code=201,
    responses={200: {"model": CampaignState, "description": "It was there already."}},
)
def add_arm(name: Name, arm: ArmName, aggregator: Service, response: Response) -> CampaignState:
    """Offer a new arm from the next round on; the same again changes nothing (200)."""
    if not aggregator.add_arm(name, arm):
        response.status_code = 200
    return _state(aggregator, name)


@router.delete("/{name}/arms/{arm:path}", dependencies=[allow("operator")], status_code=204)
def retire_arm(name: Name, arm: ArmName, aggregator: Service) -> None:
    """Play an arm no more from the next round on, for good; a repeat changes nothing."""
    aggregator.retire_arm(name, arm)


def _state(aggregator: Service, name: str) -> CampaignState:
    campaign, last = aggregator.directory.campaign(name), aggregator.rounds.latest(name)
    return CampaignState(
        name=name,
        definition=campaign,
        arms=aggregator.directory.arms(name),
        users=sum(aggregator.directory.roster(name).active),
        round=last.number if last else 0,
        state=last.state if last else "new",
    )
