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

QUICK = 10_000  # seats that a policy is tried with while one types

Errors = dict[str, str]  # by field; "" for the whole

_TOGETHER = {
    "arms must have different names": ("arms", "must be different"),
    "arm_slots must be at least the number of arms": (
        "arm_slots", "must be at least as many as there are arms",
    ),
    "min_group_size + colluders must be at most seats": (
        "min_group_size", "and the colluders together must be at most the seats",
    ),
    "close_after_hours must be at most open_every_hours": (
        "close_after_hours", "must be at most the time from one opening to the next",
    ),
}  # fmt: skip
"""Rules over several fields, as the campaign has them: the field to mark, and the words."""


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
            rule = _rule(item)
            field, words = _TOGETHER.get(rule, (_field(item["loc"]), rule))
            errors.setdefault(field, words)
    least = _number(given["min_group_size"])
    if isinstance(least, int) and least < floor:
        errors["min_group_size"] = f"must be at least {floor}, the floor in the settings"
    return Draft(given, campaign, errors)


def try_policy(draft: Draft, *, quick: bool = False) -> Errors:
    """Return what policy and noise need beyond a campaign that is right by itself.

    If ``quick``, the policy is tried with fewer seats: sizes that it refuses come out when the form
    is sent.
    """
    campaign = draft.campaign
    if draft.errors or campaign is None:
        return draft.errors
    if quick:
        seats = min(campaign.seats, max(QUICK, campaign.least))
        campaign = campaign.model_copy(update={"seats": seats})
    try:
        if campaign.noise:
            need_noise()
    except ShoalError as error:
        return {"epsilon": str(error)}
    try:
        campaign.make_policy()
    except ShoalError as error:
        return _refused(campaign, str(error))
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


def _refused(campaign: Campaign, said: str) -> Errors:
    """Return what a policy refuses, at the field that is behind it."""
    word = said.split()[0]
    if campaign.horizon is None and "needs a horizon" in said:
        return {"policy": "needs to know how many rounds will be played"}
    if word in ("option", "options", *campaign.options):
        return {"options": said}
    return {word: said.removeprefix(f"{word} ")} if word in DEFAULTS else {"policy": said}


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
