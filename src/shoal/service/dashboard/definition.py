"""A campaign's settings, as its page lists them."""

from shoal.service.campaign import Campaign
from shoal.service.dashboard.formatting import number, utc_time

_DRAWN_BY = {
    "aggregator": "the aggregator, at random",
    "learner": "the learner",
    None: "the learner",
}
_MEASURED = {"all": "all users, where they can be", "planned": "users whom the learner plans"}


def settings(campaign: Campaign, created_at: int) -> list[tuple[str, str]]:
    """Return what was decided when the campaign was created, with names as people read them."""
    options = ", ".join(f"{key} = {value}" for key, value in campaign.options.items())
    return [
        ("Created", utc_time(created_at)),
        ("Minimum group size, C", number(campaign.min_group_size)),
        ("Colluders, added to C", number(campaign.colluders)),
        ("Seats", number(campaign.seats)),
        ("Arms, and slots for them", f"{len(campaign.arms)} of {campaign.n_arms}"),
        ("Rounds", number(campaign.horizon, missing="no end set")),
        ("Policy", campaign.policy + (f" ({options})" if options else "")),
        ("Holdout", _holdout(campaign)),
        ("Schedule", _schedule(campaign)),
        ("Reward steps", number(campaign.reward_steps)),
        ("Noise", f"epsilon {campaign.noise.epsilon:g} a round" if campaign.noise else "none"),
        ("Groups are drawn by", _DRAWN_BY[campaign.grouping]),
        ("Who is in a group", _MEASURED[campaign.measure or "planned"]),
        ("Near repeats of a group", number(campaign.near_repeats, missing="no limit")),
        ("Contested reports", _CONTESTED[campaign.contested]),
        ("Reports carry capabilities", "yes" if campaign.capabilities else "no"),
        ("Seed", str(campaign.seed)),
    ]


_CONTESTED = {
    "count": "are refused and their number is shown",
    "refuse": "are refused and the round is withheld",
}


def _holdout(campaign: Campaign) -> str:
    if not campaign.holdout:
        return "none"
    return f"{campaign.holdout:.3g} of the seats, {number(campaign.n_held_out)}"


def _schedule(campaign: Campaign) -> str:
    schedule = campaign.schedule
    if schedule is None:
        return "by hand"
    early = ", or when all have reported" if schedule.close_when_all_reported else ""
    return (
        f"every {schedule.open_every_hours:g} hours, closed after "
        f"{schedule.close_after_hours:g}{early}"
    )
