"""Campaigns and users: the operator's routes."""

from typing import Annotated

from fastapi import APIRouter, Body, Path, Response
from pydantic import Field, StringConstraints

from shoal import wire
from shoal.errors import ShoalError
from shoal.service.aggregator.releases import need_noise
from shoal.service.aggregator.rounds import RoundRecord
from shoal.service.aggregator.tokens import Holder
from shoal.service.api.schemas import Checked
from shoal.service.campaign import USER, WORD, Campaign, Frozen
from shoal.service.problems import INVALID, ProblemError
from shoal.service.web.access import Name, Service, TokenFirst, allow
from shoal.wire import ArmState, CampaignNames, CapabilityKey, Moved

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


AbandonBody = Annotated[
    wire.Abandonment,
    Body(),
    Checked(through=Annotated[int, Field(ge=1, le=2**31 - 2)]),
]


class CampaignState(Frozen):
    """A campaign and how far it is; its definition names every arm that it has ever had.

    The learner is silent, in touch, ahead (it knows of a later round) or quarantined (it can't
    read its state).
    """

    name: str
    definition: Campaign
    arms: list[ArmState]
    users: int
    round: int
    state: str
    learner: str
    ahead: int | None
    abandoned: int


@router.get("")
def list_campaigns(
    aggregator: Service, holder: Annotated[Holder, allow("operator", "analyst")]
) -> CampaignNames:
    """List the campaigns that the token is bound to."""
    return CampaignNames([name for name in aggregator.directory.names() if holder.covers(name)])


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
        campaign.check_new()
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


@router.post("/{name}/archive", dependencies=[allow("operator")])
def archive_campaign(name: Name, aggregator: Service) -> CampaignState:
    """End a campaign for good: its totals stay, its people are forgotten; it may be repeated."""
    aggregator.endings.archive(name)
    return _state(aggregator, name)


@router.delete("/{name}", dependencies=[allow("operator")], status_code=204)
def delete_campaign(name: Name, aggregator: Service) -> None:
    """Delete an archived campaign with all that is stored of it; its name stays taken."""
    aggregator.endings.delete(name)
    aggregator.notifier.notify()


@router.post("/{name}/users", dependencies=[allow("operator")])
def move_users(name: Name, movement: MovementBody, aggregator: Service) -> Moved:
    """Enrol and withdraw users in bulk, all or nobody; repeating it changes nothing."""
    return aggregator.directory.move(
        name, list(movement.join), list(movement.leave), erase=movement.erase
    )


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


@router.post("/{name}/abandon", dependencies=[allow("operator")])
def abandon_rounds(name: Name, request: AbandonBody, aggregator: Service) -> CampaignState:
    """Give up the last round, or those that the learner alone knows of; nothing is released."""
    aggregator.epochs.abandon(name, request.through)
    return _state(aggregator, name)


@router.get("/{name}/capability-key", dependencies=[allow("admin")])
def read_capability_key(name: Name, aggregator: Service) -> CapabilityKey:
    """Read the key from which the app's backend makes its users' capabilities to report."""
    return CapabilityKey(aggregator.read_capability_key(name).hex())


def _round_state(last: RoundRecord | None) -> str:
    return last.state if last else "new"


def _state(aggregator: Service, name: str) -> CampaignState:
    campaign, last = aggregator.directory.campaign(name), aggregator.rounds.latest(name)
    return CampaignState(
        name=name,
        definition=campaign,
        arms=aggregator.directory.arms(name),
        users=sum(aggregator.directory.roster(name).active),
        round=last.number if last else 0,
        state="archived" if aggregator.directory.is_archived(name) else _round_state(last),
        learner=aggregator.epochs.learner_state(name),
        ahead=aggregator.epochs.ahead(name),
        abandoned=aggregator.n_abandoned(name),
    )
