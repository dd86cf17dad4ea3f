"""The operator's page of tokens: make them, shown once, and revoke them."""

from __future__ import annotations

import re
from typing import cast

from fastapi import APIRouter, Request, Response

from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.tokens import ROLES, Role
from shoal.service.campaign import NAME
from shoal.service.dashboard.acting import ask
from shoal.service.dashboard.doors import Operator, Order, text
from shoal.service.dashboard.pages import PageRoute, go, page
from shoal.service.dashboard.sessions import Session
from shoal.service.dashboard.watching import DONE
from shoal.service.web.access import Service

router = APIRouter(prefix="/tokens", route_class=PageRoute, include_in_schema=False)

MEANING = {
    "operator": "makes campaigns, enrols users, opens and closes rounds, makes tokens",
    "app": "reads assignments, reports rewards",
    "analyst": "reads released totals, sees these pages",
    "learner": "plans and learns; for Shoal's own learner",
}


@router.get("")
def show_tokens(
    request: Request, session: Operator, aggregator: Service, done: str = ""
) -> Response:
    """List the tokens by name and role."""
    return _tokens(request, session, aggregator, done=DONE.get(done, ""))


@router.post("")
def make_token(form: Order, request: Request, session: Operator, aggregator: Service) -> Response:
    """Make a token and show it this once."""
    name, role = text(form, "name"), text(form, "role")
    error = ""
    if not re.fullmatch(NAME, name):
        error = "The name must be 1 to 64 letters, digits, dots, hyphens or underscores."
    elif role not in ROLES:
        error = "The role must be one of those in the list."
    if error:
        return _tokens(request, session, aggregator, error=error)
    known = aggregator.access.roles().get(name)
    if known and not text(form, "sure"):
        return ask(
            request, session,
            title=f"Replace the token {name}?",
            warning="There is a token of that name. It stops working at once, wherever it is in "
            f"use.{_stops(known)}",
            button="Replace it", back="/tokens", fields={"name": name, "role": role},
        )  # fmt: skip
    token = aggregator.access.issue(name, cast(Role, role))
    return _tokens(request, session, aggregator, token=token)


@router.post("/revoke")
def revoke_token(form: Order, request: Request, session: Operator, aggregator: Service) -> Response:
    """Revoke a token."""
    name = text(form, "name")
    if not text(form, "sure"):
        known = aggregator.access.roles().get(name)
        own = " It is the one that you are logged in with." if name == session.token else ""
        return ask(
            request, session,
            title=f"Revoke the token {name}?",
            warning=f"It stops working at once, and can't be brought back.{_stops(known)}{own}",
            button="Revoke it", back="/tokens", fields={"name": name},
        )  # fmt: skip
    aggregator.access.revoke(name)
    return go("/tokens?done=revoked")


def _stops(role: str | None) -> str:
    """Return what more ends with a token of a role."""
    if role == "learner":
        return " Without it the learner plans no rounds and learns nothing, in any campaign."
    return ""


def _tokens(
    request: Request, session: Session, aggregator: Aggregator, *, token: str = "",
    error: str = "", done: str = "",
) -> Response:  # fmt: skip
    return page(
        request, "tokens.html", session, status=422 if error else 200, done=done, error=error,
        tokens=sorted(aggregator.access.roles().items()), roles=MEANING, token=token,
    )  # fmt: skip
