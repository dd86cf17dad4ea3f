"""The page of tokens: operators read it, an admin makes, rotates and revokes them."""

import re
from collections.abc import Mapping

from fastapi import APIRouter, Response

from shoal.service.aggregator.tokens import ROLES
from shoal.service.campaign import NAME
from shoal.service.dashboard.auth import AdminForm, AdminPage, StaffPage, field
from shoal.service.dashboard.rendering import PageRequest, PageRoute, redirect
from shoal.service.problems import ProblemError
from shoal.service.store import DAY, HOUR
from shoal.wire import BOUND, EVERY_CAMPAIGN, UNBOUND

router = APIRouter(prefix="/tokens", route_class=PageRoute, include_in_schema=False)

GRACE_HOURS = 24  # that a former secret works after a rotation on this page
MAX_DAYS = 36_500
EMPTY = {"name": "", "role": "analyst", "campaigns": "", "days": "", "succeeds": ""}
"""The form of a new token."""


@router.get("")
def show_tokens(page: StaffPage) -> Response:
    """List the tokens: who may do what, where, and until when."""
    return _tokens(page)


@router.post("")
def create_token(form: AdminForm, page: AdminPage) -> Response:
    """Create a token and show it once."""
    access = page.aggregator.access
    values = {key: field(form, key) for key in EMPTY}
    name, role, days, succeeds = (values[key] for key in ("name", "role", "days", "succeeds"))
    if role not in ROLES:
        return _tokens(page, values, error="The role must be one of those in the list.")
    if error := _error(values):
        return _tokens(page, values, error=error)
    scope = _scope(values)
    present_role = access.roles().get(name)
    if present_role and not field(form, "sure"):
        return page.confirm(
            title=f"Replace the token {name}?",
            warning="There is a token of that name. It stops working at once, wherever it is in "
            f"use.{_consequence(present_role)}",
            button="Replace it", back="/tokens", **values,
        )  # fmt: skip
    try:
        token = access.issue(
            name, role, campaigns=scope or [EVERY_CAMPAIGN], succeeds=succeeds or None,
            expires_at=page.aggregator.clock() + int(days) * DAY if days else None,
        )  # fmt: skip
    except ProblemError as problem:
        return _tokens(page, values, error=str(problem))
    return _tokens(page, token=token)


def _scope(values: dict[str, str]) -> list[str]:
    return values["campaigns"].replace(",", " ").split()


def _error(values: dict[str, str]) -> str:
    """Return which rule a form breaks, if any."""
    scope, days, role = _scope(values), values["days"], values["role"]
    names = [values["name"], *filter(None, [values["succeeds"]])]
    if not all(re.fullmatch(NAME, name) for name in names):
        return "The name must be 1 to 64 ASCII letters, digits, dots, hyphens or underscores."
    if not scope and role in BOUND:
        return f"Name the campaigns of the {role} token, or * for all."
    if scope not in ([], [EVERY_CAMPAIGN]) and role in UNBOUND:
        return f"The {role} token is for all campaigns: name none."
    if not all(part == EVERY_CAMPAIGN or re.fullmatch(NAME, part) for part in scope):
        return "Campaigns must be names, or * for all of them."
    if days and not (days.isascii() and days.isdecimal() and 1 <= int(days[:9]) <= MAX_DAYS):
        return f"Days must be a whole number from 1 to {MAX_DAYS}; or empty."
    return ""


@router.post("/rotate")
def rotate_token(form: AdminForm, page: AdminPage) -> Response:
    """Give a token a new secret and show it once."""
    name = field(form, "name")
    if not field(form, "sure"):
        return page.confirm(
            title=f"Rotate the token {name}?",
            warning=f"It gets a new secret. The present one works for {GRACE_HOURS} more hours.",
            button="Rotate it", back="/tokens", name=name,
        )  # fmt: skip
    _, token = page.aggregator.access.rotate(name, grace=GRACE_HOURS * HOUR)
    return _tokens(page, token=token)


@router.post("/revoke")
def revoke_token(form: AdminForm, page: AdminPage) -> Response:
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
    try:
        access.revoke(name)
    except ProblemError as error:
        return _tokens(page, error=str(error))
    return redirect("/tokens?done=revoked")


def _consequence(role: str | None) -> str:
    """Return what else stops with a token of a role."""
    if role == "learner":
        return " Without it the learner plans no rounds and learns nothing in its campaigns."
    if role == "app":
        return " Reports then need a token of the same name, or one that is named its successor."
    return ""


def _tokens(
    page: PageRequest,
    values: Mapping[str, str] = EMPTY,
    *,
    token: str = "",
    error: str = "",
) -> Response:
    """Show the page, with the form as it was sent where something in it is wrong."""
    tokens = page.aggregator.access.records(page.session.holder.campaigns)
    return page.render("tokens.html", error=error, tokens=tokens, token=token, values=values)
