"""The operator's page of tokens: create them, shown once, and revoke them."""

import re

from fastapi import APIRouter, Response

from shoal.service.aggregator.tokens import ROLES
from shoal.service.campaign import NAME
from shoal.service.dashboard.auth import OperatorForm, OperatorPage, field
from shoal.service.dashboard.rendering import PageRequest, PageRoute, redirect

router = APIRouter(prefix="/tokens", route_class=PageRoute, include_in_schema=False)


@router.get("")
def show_tokens(page: OperatorPage) -> Response:
    """List the tokens by name and role."""
    return _tokens(page)


@router.post("")
def create_token(form: OperatorForm, page: OperatorPage) -> Response:
    """Create a token and show it once."""
    access, name, role = page.aggregator.access, field(form, "name"), field(form, "role")
    if not re.fullmatch(NAME, name):
        error = "The name must be 1 to 64 letters, digits, dots, hyphens or underscores."
        return _tokens(page, error=error)
    if role not in ROLES:
        return _tokens(page, error="The role must be one of those in the list.")
    present_role = access.roles().get(name)
    if present_role and not field(form, "sure"):
        return page.confirm(
            title=f"Replace the token {name}?",
            warning="There is a token of that name. It stops working at once, wherever it is in "
            f"use.{_consequence(present_role)}",
            button="Replace it", back="/tokens", name=name, role=role,
        )  # fmt: skip
    return _tokens(page, token=access.issue(name, role))


@router.post("/revoke")
def revoke_token(form: OperatorForm, page: OperatorPage) -> Response:
    """Revoke a token."""
    access, name = page.aggregator.access, field(form, "name")
    if not field(form, "sure"):
        consequence = _consequence(access.roles().get(name))
        if name == page.session.token:
            consequence += " It is the one that you are logged in with."
        return page.confirm(
            title=f"Revoke the token {name}?",
            warning=f"It stops working at once, and can't be brought back.{consequence}",
            button="Revoke it", back="/tokens", name=name,
        )  # fmt: skip
    access.revoke(name)
    return redirect("/tokens?done=revoked")


def _consequence(role: str | None) -> str:
    """Return what else stops with a token of a role."""
    if role == "learner":
        return " Without it the learner plans no rounds and learns nothing, in any campaign."
    return ""


def _tokens(page: PageRequest, *, token: str = "", error: str = "") -> Response:
    tokens = sorted(page.aggregator.access.roles().items())
    return page.render("tokens.html", error=error, tokens=tokens, token=token)
