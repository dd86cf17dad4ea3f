"""The form of a new campaign: read as the HTTP interface reads it, refused field by field."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from shoal.errors import ShoalError
from shoal.policies import POLICIES
from shoal.service.aggregator.noise import need_noise
from shoal.service.campaign import NAME, Campaign

SCHEDULE = ("open_every_hours", "close_after_hours", "close_when_all_reported")
NUMBERS = ("arm_slots", "min_group_size", "seats", "colluders", "reward_steps", "horizon", "seed")
MORE = ("arm_slots", "epsilon", "colluders", "reward_steps", "seed", "options", *SCHEDULE)
"""Fields that most campaigns leave as they are."""
CHOICES = sorted(
    (name for name, entry in POLICIES.items() if entry.anonymous and not entry.hindsight),
    key=lambda name: (name != "shoal", name),
)
DEFAULTS: dict[str, str] = {
    "name": "", "arms": "", "arm_slots": "", "min_group_size": "20", "seats": "", "epsilon": "",
    "colluders": "0", "reward_steps": "1000", "horizon": "", "policy": "shoal", "options": "",
    "seed": "0", "open_every_hours": "", "close_after_hours": "", "close_when_all_reported": "",
}  # fmt: skip

Errors = dict[str, str]  # by field; "" for the whole


@dataclass(frozen=True)
class Draft:
    """A form as it was filled in, the campaign that it means, and what is wrong with it."""

    given: dict[str, str]
    campaign: Campaign | None
    errors: Errors


def read(form: Callable[[str], str], *, floor: int, taken: Callable[[str], bool]) -> Draft:
    """Read a form; ``floor`` is the least C, ``taken`` tells whether a name is in use."""
    given = {field: form(field) for field in DEFAULTS}
    errors: Errors = {}
    if not re.fullmatch(NAME, given["name"]):
        errors["name"] = (
            "must be 1 to 64 letters, digits, dots, hyphens or underscores, the first one a "
            "letter or digit"
        )
    elif taken(given["name"]):
        errors["name"] = "is the name of another campaign"
    campaign = None
    try:
        campaign = Campaign.model_validate(definition(given))
    except ValidationError as error:
        for item in error.errors():
            field = _field(item["loc"])
            errors.setdefault(field, _rule(item))
    if campaign is not None and campaign.min_group_size < floor:
        errors["min_group_size"] = f"must be at least {floor}, the floor in the settings"
    return Draft(given, campaign, errors)


def try_policy(draft: Draft) -> Errors:
    """Return what policy and noise need beyond a campaign that is right by itself."""
    if draft.errors or draft.campaign is None:
        return draft.errors
    try:
        if draft.campaign.noise:
            need_noise()
        draft.campaign.make_policy()
    except ShoalError as error:
        return {"": str(error)}
    return {}


def definition(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the campaign as JSON would have it; what can't be read stays text, to be refused."""
    made: dict[str, Any] = {
        "arms": [line.strip() for line in given["arms"].splitlines() if line.strip()],
        "policy": given["policy"],
        "options": {},
    }
    made |= {field: _number(given[field]) for field in NUMBERS if given[field]}
    for line in filter(None, map(str.strip, given["options"].splitlines())):
        option, _, value = line.partition("=")
        made["options"][option.strip()] = _number(value.strip())
    if given["epsilon"]:
        made["noise"] = {"epsilon": _number(given["epsilon"])}
    if any(given[field] for field in SCHEDULE):
        made["schedule"] = {field: _number(given[field]) for field in SCHEDULE[:2] if given[field]}
        made["schedule"]["close_when_all_reported"] = bool(given[SCHEDULE[2]])
    return made


def _number(value: str) -> bool | int | float | str:
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            pass
    return value


def _field(place: tuple[int | str, ...]) -> str:
    named = [str(part) for part in place if str(part) in DEFAULTS]
    return named[-1] if named else ""


def _rule(item: Any) -> str:
    limits = item.get("ctx", {})
    match item["type"]:
        case "missing":
            return "is needed"
        case "int_type" | "int_parsing" | "int_from_float":
            return "must be a whole number"
        case "float_type" | "float_parsing":
            return "must be a number"
        case "greater_than_equal":
            return f"must be at least {limits['ge']:,}"
        case "greater_than":
            return f"must be more than {limits['gt']:,}"
        case "less_than_equal":
            return f"must be at most {limits['le']:,}"
        case "too_short":
            return "must have at least one line"
        case "value_error":
            return str(limits["error"])
        case "string_pattern_mismatch":
            return "must be lines of up to 64 characters"
    return str(item["msg"])
