"""What an operator does in a campaign: rounds, users, arms, checks; each a plain form.

What can't be undone needs a confirmation: the first answer to such a form is a page that says what
will happen, and its form carries ``sure``.
"""

import re
from collections.abc import Callable, Sequence

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile

from shoal.errors import InvalidInputError
from shoal.service.aggregator.rounds import OPEN
from shoal.service.campaign import WORD
from shoal.service.dashboard import checks
from shoal.service.dashboard.auth import OperatorForm, OperatorPage, field
from shoal.service.dashboard.rendering import PageRequest, PageRoute, redirect
from shoal.service.problems import ROUND_ORDER, ProblemError
from shoal.service.user_file import read_users
from shoal.service.web.access import Name

router = APIRouter(prefix="/campaigns/{name}", route_class=PageRoute, include_in_schema=False)

MAX_USERS_A_FORM = 200_000  # in one file
MAX_UNKNOWN_SHOWN = 5  # of users who were to leave


@router.post("/open")
def open_round(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Ask the learner for the next round."""
    directory = page.aggregator.directory
    number, min_reporters = _round_number(form), directory.campaign(name).min_reporters
    n_users = sum(directory.roster(name).active)
    if n_users < min_reporters and not field(form, "sure"):
        return page.confirm(
            title=f"Open round {number} of {name} with {n_users:,} users?",
            warning="Nothing can be released of a round with fewer than C = "
            f"{min_reporters} users. Enrol more users first.",
            button="Open it anyway", back=f"/campaigns/{name}/users", number=str(number),
        )  # fmt: skip
    page.aggregator.request_round(name, number)
    return redirect(f"/campaigns/{name}?done=opened")


@router.post("/close")
def close_round(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Close and release a round."""
    number, address = _round_number(form), f"/campaigns/{name}"
    if not field(form, "sure"):
        return page.confirm(
            title=f"Close round {number} of {name}?",
            warning="Its totals are released at once. Later reports are refused, and groups that "
            "are still short of reporters are merged or withheld.",
            button="Close and release", back=address, number=str(number),
        )  # fmt: skip
    page.aggregator.releases.close_round(name, number)
    return redirect(f"{address}?done=closed")


@router.post("/abandon")
def abandon_rounds(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Give up the last round, or those that the learner alone knows of."""
    number, address = _round_number(form), f"/campaigns/{name}"
    last = page.aggregator.rounds.latest(name)
    if not field(form, "sure"):
        lost = ""
        if last is not None and last.state == OPEN:
            lost = f" Round {last.number:,} is open: what was reported in it is deleted."
        return page.confirm(
            title=f"Abandon the rounds of {name} up to {number:,}?",
            warning="Those that are not released will never be, and the campaign goes on with "
            f"round {number + 1:,}.{lost}",
            button="Abandon them", back=address, number=str(number),
        )  # fmt: skip
    page.aggregator.epochs.abandon(name, number)
    return redirect(f"{address}?done=abandoned")


@router.post("/check")
def check_now(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Check every rule now."""
    checks.run(page.aggregator, name)
    return redirect(f"/campaigns/{name}/anonymity?done=checked")


@router.get("/users")
def show_users(name: Name, page: OperatorPage) -> Response:
    """Show the form for new users."""
    return _users(name, page)


@router.post("/users")
async def enrol_users(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Enrol everyone in a file, or nobody."""

    def enrol(users: list[str]) -> str:
        if len(users) > MAX_USERS_A_FORM:
            raise InvalidInputError(
                f"the file must have at most {MAX_USERS_A_FORM:,} users; got {len(users):,}."
            )
        joined = page.aggregator.directory.enrol(name, users)
        present = len(users) - joined
        new = "1 user was enrolled" if joined == 1 else f"{joined:,} users were enrolled"
        return (
            f"{new}; {present:,} of the file {'was' if present == 1 else 'were'} enrolled before."
        )

    return await _with_file(name, form, page, enrol, refusal="Nobody was enrolled")


@router.post("/users/leave")
async def withdraw_users(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Let everyone in a file leave, or nobody, and forget their names where that is asked for."""
    erase = bool(field(form, "erase"))

    def withdraw(users: list[str]) -> str:
        moved = page.aggregator.directory.move(name, [], users, erase=erase)
        erased = f" Names erased: {moved.erased:,}." if erase else ""
        leaving = "1 user leaves" if moved.left == 1 else f"{moved.left:,} users leave"
        return f"{leaving} from the next round on.{erased}{_not_in_campaign(moved.unknown)}"

    return await _with_file(name, form, page, withdraw, refusal="Nobody left")


def _not_in_campaign(users: Sequence[str]) -> str:
    """Return the first names, and how many more there are; empty for none."""
    if not users:
        return ""
    more = len(users) - MAX_UNKNOWN_SHOWN
    rest = f" and {more:,} more" if more > 0 else ""
    return f" Not in the campaign: {', '.join(users[:MAX_UNKNOWN_SHOWN])}{rest}."


async def _with_file(
    name: str, form: FormData, page: PageRequest, act: Callable[[list[str]], str], *, refusal: str
) -> Response:
    """Do something with the users of a form's file; show what was done, or why nothing was."""
    file = form.get("file")
    data = await file.read() if isinstance(file, UploadFile) else b""
    if not field(form, "sure"):
        return await run_in_threadpool(_users, name, page, error="Tick the box below the file.")

    def answer() -> Response:
        try:
            return _users(name, page, done=act(read_users(data)))
        except (InvalidInputError, ProblemError) as error:
            return _users(name, page, error=f"{refusal}: {error}")

    return await run_in_threadpool(answer)


@router.post("/archive")
def archive_campaign(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """End the campaign and forget its people."""
    if not field(form, "sure"):
        return page.confirm(
            title=f"Archive {name}?",
            warning="It ends for good: no round can be opened, and nobody can join. Its released "
            "totals stay. Its users' names, who played which arm with whom, who was behind a "
            "total, and what the learner has learnt are forgotten.",
            button="Archive it", back=f"/campaigns/{name}",
        )  # fmt: skip
    page.aggregator.endings.archive(name)
    return redirect(f"/campaigns/{name}?done=archived")


@router.post("/delete")
def delete_campaign(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Delete an archived campaign."""
    if not field(form, "sure"):
        return page.confirm(
            title=f"Delete {name}?",
            warning="Everything that is stored of it is deleted, its released totals among it. Its "
            "name can't be used again. Backups that were made before still hold it.",
            button="Delete it", back=f"/campaigns/{name}",
        )  # fmt: skip
    page.aggregator.endings.delete(name)
    page.aggregator.notifier.notify()
    return redirect("/?done=deleted")


def _users(name: str, page: PageRequest, *, error: str = "", done: str = "") -> Response:
    directory = page.aggregator.directory
    roster = directory.roster(name)
    return page.render(
        "users.html", error=error, done=done, name=name, campaign=directory.campaign(name),
        active=sum(roster.active), taken=len(roster.users), archived=directory.is_archived(name),
    )  # fmt: skip


def _round_number(form: FormData) -> int:
    number = field(form, "number")
    if not re.fullmatch(r"[1-9][0-9]{0,8}", number):  # as the HTTP interface's quick way
        raise ProblemError(ROUND_ORDER)
    return int(number)


@router.get("/arms")
def show_arms(name: Name, page: OperatorPage) -> Response:
    """List all arms of the campaign, retired ones too."""
    return _arms(name, page)


@router.post("/arms")
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
        return _arms(name, page, error=str(error))
    return redirect(f"/campaigns/{name}/arms?done=added")


@router.post("/arms/retire")
def retire_arm(name: Name, form: OperatorForm, page: OperatorPage) -> Response:
    """Retire an arm, from the next round on."""
    arm = field(form, "arm")
    if not field(form, "sure"):
        warning = "From the next round on nobody is assigned to it. It can't be brought back."
        return _confirm(name, page, f"Retire the arm {arm} of {name}?", warning, "Retire it", arm)
    try:
        page.aggregator.retire_arm(name, arm)
    except ProblemError as error:
        return _arms(name, page, error=str(error))
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
