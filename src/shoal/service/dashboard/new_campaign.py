"""The operator's form for a new campaign, checked while one types and again when it is sent.

It is read as the HTTP interface reads a campaign, with an error for each field.
"""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Response
from pydantic import ValidationError
from starlette.datastructures import FormData

from shoal.errors import ShoalError
from shoal.policies import POLICIES
from shoal.service.aggregator.releases import need_noise
from shoal.service.campaign import MAX_SEATS, NAME, Campaign
from shoal.service.dashboard.auth import OperatorForm, OperatorPage, field
from shoal.service.dashboard.rendering import PageRequest, PageRoute, compressed, redirect
from shoal.service.homogeneity import ALARMING, TYPICAL_RATES, homogeneous_share
from shoal.service.problems import ProblemError

router = APIRouter(prefix="/new-campaign", route_class=PageRoute, include_in_schema=False)

SCHEDULE = ("open_every_hours", "close_after_hours", "close_when_all_reported")
NUMBERS = (
    "arm_slots",
    "min_group_size",
    "seats",
    "colluders",
    "reward_steps",
    "horizon",
    "seed",
    "holdout",
)
POLICY_CHOICES = sorted(
    (name for name, entry in POLICIES.items() if entry.anonymous and not entry.hindsight),
    key=lambda name: (name != "shoal", name),
)
DEFAULTS: dict[str, str] = {
    "name": "", "arms": "", "arm_slots": "", "min_group_size": "20", "seats": "", "epsilon": "",
    "colluders": "0", "reward_steps": "1000", "horizon": "", "policy": "shoal", "options": "",
    "seed": "0", "open_every_hours": "", "close_after_hours": "", "close_when_all_reported": "",
    "holdout": "",
}  # fmt: skip

QUICK_SEATS = 10_000  # that a policy is tried with while one types

EXPECTED = "expected"  # no field, but the line about C in the answer to a check

Errors = dict[str, str]  # by field; "" for the whole form

_CROSS_FIELD_RULES = {
    "holdout must leave at least min_group_size + colluders seats inside and outside": (
        "holdout", "must leave at least C and the colluders of all seats inside and outside",
    ),
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
"""Rules over several fields, as the campaign states them: the field to mark, and its error."""

_RULES = {
    "missing": "is needed",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "greater_than_equal": "must be at least {ge:,}",
    "greater_than": "must be more than {gt:,}",
    "less_than_equal": "must be at most {le:,}",
    "too_short": "must have at least one line",
    "value_error": "{error}",
    "string_pattern_mismatch": "must be lines of up to 64 characters",
}
"""What an error says, by pydantic's type of it."""


@dataclass(frozen=True)
class Draft:
    """A form as it was filled in, the campaign that it describes, and its errors."""

    values: dict[str, str]
    campaign: Campaign | None
    errors: Errors


@router.get("")
def show_form(page: OperatorPage) -> Response:
    """Show the form."""
    floor = page.aggregator.directory.floor
    return _form(page, DEFAULTS | {"min_group_size": str(max(20, floor))}, {})


@router.post("/check")
def check_form(form: OperatorForm, page: OperatorPage) -> Response:
    """Return what is wrong so far, by field, and what to expect of C as it is typed."""
    draft = _read(form, page, quick=True)
    content = draft.errors | {EXPECTED: _expected(draft.values)}
    return compressed(page.request, json.dumps(content).encode(), "application/json")


@router.post("")
def create_campaign(form: OperatorForm, page: OperatorPage) -> Response:
    """Create the campaign; it can't be changed later."""
    draft = _read(form, page)
    errors = draft.errors
    if not errors and not field(form, "sure"):
        errors = {"sure": "must be ticked: nothing in a campaign can be changed later"}
    if errors or draft.campaign is None:
        return _form(page, draft.values, errors)
    try:
        page.aggregator.directory.create(draft.values["name"], draft.campaign)
    except ProblemError as error:
        return _form(page, draft.values, {"": str(error)})
    page.aggregator.notifier.notify()
    return redirect(f"/campaigns/{draft.values['name']}?done=created")


def _form(page: PageRequest, values: dict[str, str], errors: Errors) -> Response:
    return page.render(
        "new_campaign.html", status=422 if errors else 200, values=values, errors=errors,
        policies=POLICY_CHOICES, floor=page.aggregator.directory.floor,
        expected=_expected(values),
    )  # fmt: skip


def _expected(values: dict[str, str]) -> str:
    """Return which share of totals would show everyone's reward, for typical rates."""
    min_size = sum(n for n in map(_number, (values["min_group_size"], values["colluders"]))
                if isinstance(n, int) and 0 <= n <= MAX_SEATS)  # fmt: skip
    if values["epsilon"] or min_size < 1:
        return ""
    shares = [f"{homogeneous_share(r, min_size):.0%} where {r:.0%} are" for r in TYPICAL_RATES]
    shares[0] = shares[0].replace("are", "of rewards are 1")
    return (
        f"With C = {min_size}, this share of totals would show everyone's reward: "
        f"{', '.join(shares)}. "
        f"If it is more than {ALARMING:.0%} of totals, take a larger C or noise."
    )


def _read(form: FormData, page: PageRequest, *, quick: bool = False) -> Draft:
    """Read a form; the policy and the noise are tried if nothing else is wrong.

    If ``quick``, the policy is tried with fewer seats: a size that it refuses is an error only when
    the form is sent.
    """
    directory = page.aggregator.directory
    values = {name: field(form, name) for name in DEFAULTS}
    errors: Errors = {}
    if not re.fullmatch(NAME, values["name"]):
        errors["name"] = (
            "must be 1 to 64 ASCII letters, digits, dots, hyphens or underscores, the first one a "
            "letter or digit"
        )
    elif not page.session.holder.covers(values["name"]):
        errors["name"] = "must be one of the campaigns that your token is bound to"
    elif values["name"] in directory.names():
        errors["name"] = "is the name of another campaign"
    campaign = None
    try:
        campaign = Campaign.model_validate(_definition(values))
    except ValidationError as error:
        for item in error.errors():
            rule = _RULES.get(item["type"], "{msg}").format(msg=item["msg"], **item.get("ctx", {}))
            name, text = _CROSS_FIELD_RULES.get(
                rule.partition("; got ")[0], (_field(item["loc"]), rule)
            )
            errors.setdefault(name, text)
    min_group_size = _number(values["min_group_size"])
    if isinstance(min_group_size, int) and min_group_size < directory.floor:
        errors["min_group_size"] = f"must be at least {directory.floor}, the floor in the settings"
    if campaign and not errors:
        seats = (
            min(campaign.seats, max(QUICK_SEATS, campaign.min_reporters))
            if quick
            else campaign.seats
        )
        errors = _try_policy(campaign.model_copy(update={"seats": seats}))
    return Draft(values, campaign, errors)


def _try_policy(campaign: Campaign) -> Errors:
    try:
        if campaign.noise:
            need_noise()
    except ShoalError as error:
        return {"epsilon": str(error)}
    try:
        campaign.check_new()
        campaign.make_policy()
    except ShoalError as error:
        return _policy_errors(campaign, str(error))
    return {}


def _definition(values: dict[str, str]) -> dict[str, Any]:
    """Return the campaign as JSON would state it; what is no number stays text, to be refused."""
    fields: dict[str, Any] = {
        "arms": [line.strip() for line in values["arms"].splitlines() if line.strip()],
        "policy": values["policy"],
        "options": {},
    }
    fields |= {name: _number(values[name]) for name in NUMBERS if values[name]}
    for line in filter(None, map(str.strip, values["options"].splitlines())):
        option, _, value = line.partition("=")
        fields["options"][option.strip()] = _number(value.strip())
    if values["epsilon"]:
        fields["noise"] = {"epsilon": _number(values["epsilon"])}
    if any(values[name] for name in SCHEDULE):
        fields["schedule"] = {name: _number(values[name]) for name in SCHEDULE[:2] if values[name]}
        fields["schedule"]["close_when_all_reported"] = bool(values[SCHEDULE[2]])
    return fields


def _number(value: str) -> bool | int | float | str:
    if value in ("true", "false"):
        return value == "true"
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    return value


def _field(location: tuple[int | str, ...]) -> str:
    fields = [str(part) for part in location if str(part) in DEFAULTS]
    return fields[-1] if fields else ""


def _policy_errors(campaign: Campaign, message: str) -> Errors:
    """Return what a policy refuses, at the field that is the cause."""
    name = message.split()[0]
    if campaign.horizon is None and "needs a horizon" in message:
        return {"policy": "needs to know how many rounds will be played"}
    if name in ("option", "options", *campaign.options):
        return {"options": message}
    return {name: message.removeprefix(f"{name} ")} if name in DEFAULTS else {"policy": message}
