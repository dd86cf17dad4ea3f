"""An operator's notes at rounds: plain forms on the campaign's page."""

import re

from fastapi import APIRouter, Response

from shoal.service.dashboard.auth import OperatorForm, OperatorPage, field
from shoal.service.dashboard.rendering import PageRoute, redirect
from shoal.service.problems import INVALID, ProblemError
from shoal.service.web.access import Name

router = APIRouter(prefix="/campaigns/{name}/notes", route_class=PageRoute, include_in_schema=False)


@router.post("")
def add_note(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Keep a note."""
    number = _whole(field(form, "number"), "a note must be at a round")
    page.aggregator.notes.add(name, number, field(form, "text"))
    return redirect(f"/campaigns/{name}?done=noted#notes")


@router.post("/remove")
def remove_note(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Remove a note."""
    note_id = _whole(field(form, "note"), "a note must be named by its number")
    page.aggregator.notes.remove(name, note_id)
    return redirect(f"/campaigns/{name}?done=unnoted#notes")


def _whole(text: str, rule: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise ProblemError(INVALID, f"{rule}, a whole number from 1 on; got {text[:20]!r}.")
    return int(text)
