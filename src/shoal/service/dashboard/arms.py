"""The operator's page of arms: add one to a free slot, retire one permanently."""

from __future__ import annotations

import re

from fastapi import APIRouter, Response

from shoal.service.campaign import WORD
from shoal.service.dashboard.auth import OperatorForm, OperatorPage, field
from shoal.service.dashboard.rendering import PageRequest, PageRoute, redirect
from shoal.service.problems import ProblemError
from shoal.service.web.access import Name

router = APIRouter(prefix="/campaigns/{name}/arms", route_class=PageRoute, include_in_schema=False)


@router.get("")
def show_arms(name: Name, page: OperatorPage) -> Response:
    """List all arms of the campaign, retired ones too."""
    return _arms(name, page)


@router.post("")
def add_arm(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Add an arm, from the next round on."""
    arm = field(form, "arm")
    if not re.fullmatch(WORD, arm):
        return _arms(name, page, error="An arm's name must be 1 to 64 characters in one line.")
    if not field(form, "sure"):
        warning = "It takes one of the campaign's slots permanently; its name can't be changed."
        return _confirm(name, page, f"Add the arm {arm} to {name}?", warning, "Add it", arm)
    try:
        if not page.aggregator.add_arm(name, arm):
            return _arms(name, page, error=f"There is an arm {arm} already.")
    except ProblemError as error:
        return _arms(name, page, error=error.kind.title)
    return redirect(f"/campaigns/{name}/arms?done=added")


@router.post("/retire")
def retire_arm(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Retire an arm, from the next round on."""
    arm = field(form, "arm")
    if not field(form, "sure"):
        warning = "From the next round on nobody is assigned to it. It can't be brought back."
        return _confirm(name, page, f"Retire the arm {arm} of {name}?", warning, "Retire it", arm)
    try:
        page.aggregator.retire_arm(name, arm)
    except ProblemError as error:
        return _arms(name, page, error=error.kind.title)
    return redirect(f"/campaigns/{name}/arms?done=retired")


def _confirm(
    name: str, page: PageRequest, title: str, warning: str, button: str, arm: str
) -> Response:
    back = f"/campaigns/{name}/arms"
    return page.confirm(title=title, warning=warning, button=button, back=back, arm=arm)


def _arms(name: str, page: PageRequest, *, error: str = "") -> Response:
    directory = page.aggregator.directory
    arms = directory.arms(name)
    n_free = directory.campaign(name).n_arms - len(arms)
    return page.render("arms.html", error=error, name=name, arms=arms, n_free=n_free)
