"""The operator's form for a new campaign, checked as one types and again when it is sent."""

from __future__ import annotations

import json

from fastapi import APIRouter, Request, Response
from starlette.datastructures import FormData

from shoal.service.aggregator import Aggregator
from shoal.service.dashboard import forms
from shoal.service.dashboard.doors import Operator, Order, text
from shoal.service.dashboard.pages import PageRoute, go, packed, page
from shoal.service.problems import ProblemError
from shoal.service.web.access import Service

router = APIRouter(prefix="/new-campaign", route_class=PageRoute, include_in_schema=False)


@router.get("")
def show_form(request: Request, session: Operator, aggregator: Service) -> Response:
    """Show the form."""
    given = forms.DEFAULTS | {"min_group_size": str(max(20, aggregator.directory.floor))}
    return _form(request, session, aggregator, given, {})


@router.post("/check")
def check_form(request: Request, form: Order, aggregator: Service) -> Response:
    """Say what is wrong so far, by field."""
    errors = forms.try_policy(_read(form, aggregator), quick=True)
    return packed(request, json.dumps(errors).encode(), "application/json")


@router.post("")
def create_campaign(
    request: Request, form: Order, session: Operator, aggregator: Service
) -> Response:
    """Make the campaign, for good."""
    draft = _read(form, aggregator)
    errors = forms.try_policy(draft)
    if not errors and not text(form, "sure"):
        errors = {"sure": "must be ticked: nothing in a campaign can be changed later"}
    if errors or draft.campaign is None:
        return _form(request, session, aggregator, draft.given, errors)
    try:
        aggregator.directory.create(draft.given["name"], draft.campaign)
    except ProblemError as error:
        return _form(request, session, aggregator, draft.given, {"": error.kind.title})
    aggregator.notifier.notify()
    return go(f"/campaigns/{draft.given['name']}?done=created")


def _read(form: FormData, aggregator: Aggregator) -> forms.Draft:
    names = set(aggregator.directory.names())
    return forms.read(
        lambda field: text(form, field),
        floor=aggregator.directory.floor,
        taken=names.__contains__,
    )


def _form(
    request: Request, session: Operator, aggregator: Aggregator, given: dict[str, str],
    errors: forms.Errors,
) -> Response:  # fmt: skip
    return page(
        request, "new_campaign.html", session, status=422 if errors else 200, given=given,
        errors=errors, policies=forms.CHOICES, more=forms.MORE, floor=aggregator.directory.floor,
    )  # fmt: skip
