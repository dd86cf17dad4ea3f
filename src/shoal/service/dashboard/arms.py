"""The operator's page of arms: add one to a free slot, retire one for good."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request, Response

from shoal.service.aggregator import Aggregator
from shoal.service.campaign import WORD
from shoal.service.dashboard.acting import ask
from shoal.service.dashboard.doors import Operator, Order, text
from shoal.service.dashboard.pages import PageRoute, go, page
from shoal.service.dashboard.sessions import Session
from shoal.service.dashboard.watching import DONE
from shoal.service.problems import ProblemError
from shoal.service.web.access import Name, Service

router = APIRouter(prefix="/campaigns/{name}/arms", route_class=PageRoute, include_in_schema=False)


@router.get("")
def show_arms(
    name: Name, request: Request, session: Operator, aggregator: Service, done: str = ""
) -> Response:
    """List the arms that the campaign has ever had."""
    return _arms(name, request, session, aggregator, done=DONE.get(done, ""))


@router.post("")
def add_arm(
    name: Name, form: Order, request: Request, session: Operator, aggregator: Service
) -> Response:
    """Offer a new arm from the next round on."""
    arm = text(form, "arm")
    if not re.fullmatch(WORD, arm):
        error = "An arm's name must be 1 to 64 characters in one line."
        return _arms(name, request, session, aggregator, error=error)
    if not text(form, "sure"):
        return ask(
            request, session,
            title=f"Add the arm {arm} to {name}?",
            warning="It takes one of the campaign's slots for good; its name can't be changed.",
            button="Add it", back=f"/campaigns/{name}/arms", fields={"arm": arm},
        )  # fmt: skip
    try:
        added = aggregator.add_arm(name, arm)
    except ProblemError as error:
        return _arms(name, request, session, aggregator, error=error.kind.title)
    if not added:
        return _arms(name, request, session, aggregator, error=f"There is an arm {arm} already.")
    return go(f"/campaigns/{name}/arms?done=added")


@router.post("/retire")
def retire_arm(
    name: Name, form: Order, request: Request, session: Operator, aggregator: Service
) -> Response:
    """Play an arm no more from the next round on."""
    arm = text(form, "arm")
    if not text(form, "sure"):
        return ask(
            request, session,
            title=f"Retire the arm {arm} of {name}?",
            warning="From the next round on nobody is given it. It can't be brought back.",
            button="Retire it", back=f"/campaigns/{name}/arms", fields={"arm": arm},
        )  # fmt: skip
    try:
        aggregator.retire_arm(name, arm)
    except ProblemError as error:
        return _arms(name, request, session, aggregator, error=error.kind.title)
    return go(f"/campaigns/{name}/arms?done=retired")


def _arms(
    name: str, request: Request, session: Session, aggregator: Aggregator, *, error: str = "",
    done: str = "",
) -> Response:  # fmt: skip
    campaign = aggregator.directory.campaign(name)
    arms = aggregator.directory.arms(name)
    return page(
        request, "arms.html", session, status=422 if error else 200, name=name, arms=arms,
        free=campaign.n_arms - len(arms), error=error, done=done,
    )  # fmt: skip
