"""The operator's form for a new campaign, checked while one types and again when it is sent."""

from __future__ import annotations

import json

from fastapi import APIRouter, Response
from starlette.datastructures import FormData

from shoal.service.dashboard import campaign_form
from shoal.service.dashboard.auth import OperatorForm, OperatorPage, field
from shoal.service.dashboard.rendering import PageRequest, PageRoute, compressed, redirect
from shoal.service.problems import ProblemError

router = APIRouter(prefix="/new-campaign", route_class=PageRoute, include_in_schema=False)


@router.get("")
def show_form(page: OperatorPage) -> Response:
    """Show the form."""
    floor = page.aggregator.directory.floor
    return _form(page, campaign_form.DEFAULTS | {"min_group_size": str(max(20, floor))}, {})


@router.post("/check")
def check_form(form: OperatorForm, page: OperatorPage) -> Response:
    """Return what is wrong so far, by field."""
    errors = campaign_form.check_policy(_read(form, page), quick=True)
    return compressed(page.request, json.dumps(errors).encode(), "application/json")


@router.post("")
def create_campaign(form: OperatorForm, page: OperatorPage) -> Response:
    """Create the campaign; it can't be changed later."""
    draft = _read(form, page)
    errors = campaign_form.check_policy(draft)
    if not errors and not field(form, "sure"):
        errors = {"sure": "must be ticked: nothing in a campaign can be changed later"}
    if errors or draft.campaign is None:
        return _form(page, draft.values, errors)
    try:
        page.aggregator.directory.create(draft.values["name"], draft.campaign)
    except ProblemError as error:
        return _form(page, draft.values, {"": error.kind.title})
    page.aggregator.notifier.notify()
    return redirect(f"/campaigns/{draft.values['name']}?done=created")


def _read(form: FormData, page: PageRequest) -> campaign_form.Draft:
    directory = page.aggregator.directory
    values = {name: field(form, name) for name in campaign_form.DEFAULTS}
    return campaign_form.read(values, floor=directory.floor, names=directory.names())


def _form(page: PageRequest, values: dict[str, str], errors: campaign_form.Errors) -> Response:
    return page.render(
        "new_campaign.html", status=422 if errors else 200, values=values, errors=errors,
        policies=campaign_form.POLICY_CHOICES, advanced=campaign_form.ADVANCED,
        floor=page.aggregator.directory.floor,
    )  # fmt: skip
