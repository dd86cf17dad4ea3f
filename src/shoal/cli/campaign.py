"""``shoal campaign``: an operator's work with campaigns, over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from shoal.cli import console
from shoal.cli.remote import RemoteGroup, RemoteOptions, connect, remote, show
from shoal.errors import InvalidInputError

if TYPE_CHECKING:
    from shoal.client import Client

POLL, LONG_POLL = 2.0, 10.0  # seconds before a command says what it waits for, and after that

number_argument = click.argument("number", type=click.IntRange(1, 2**31 - 1), required=False)
sure_option = click.option("--yes", is_flag=True, help="Do it: it can't be undone.")


@click.group(name="campaign", cls=RemoteGroup)
@remote
def command() -> None:
    """Create, open, close, abandon, show, archive and delete campaigns of a running service.

    SHOAL_TOKEN, or the first start's file of tokens, has an operator's token.
    """


@command.command()
@click.argument("name")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--rate", type=click.FloatRange(0, 1), help="The share of rewards of 1 that you expect."
)
@click.option("--yes", is_flag=True, help="Create it whatever --rate says.")
@click.pass_obj
def create(
    options: RemoteOptions, name: str, file: IO[bytes], rate: float | None, yes: bool
) -> None:
    """Create the campaign NAME from FILE, its definition as JSON; - is standard input."""
    definition = _definition(file.read())
    with connect(options, "operator") as client:
        if rate is not None:
            _check_rate(definition, rate, yes=yes)
        campaign = client.create_campaign(name, **definition)
    created = campaign["definition"]
    show(options, campaign, f"{name}: {created['seats']:,} seats, C = {created['min_group_size']}")


def _check_rate(definition: dict[str, Any], rate: float, *, yes: bool) -> None:
    """Say how many totals will show everyone's reward; refuse many, unless they are wanted."""
    from pydantic import ValidationError

    from shoal.service.campaign import Campaign
    from shoal.service.homogeneity import advice, is_alarming

    try:
        campaign = Campaign.model_validate(definition)
    except ValidationError:
        return  # the service refuses it, and says why
    min_size, noise = campaign.min_reporters, campaign.noise is not None
    text = advice(rate, min_size, noise=noise, seats=campaign.seats)
    if is_alarming(rate, min_size, noise=noise) and not yes:
        raise InvalidInputError(f"{text} Nothing was created: change it, or say --yes.")
    click.echo(text, err=True)


def _definition(content: bytes) -> dict[str, Any]:
    try:
        definition = json.loads(content, object_pairs_hook=_each_name_once)
    except ValueError as error:
        raise InvalidInputError(f"file must be a campaign's definition as JSON; {error}.") from None
    if not isinstance(definition, dict):
        raise InvalidInputError("file must be a campaign's definition as a JSON object.")
    if "name" in definition:
        raise InvalidInputError("file must not have the campaign's name: it is the argument NAME.")
    return definition


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; refuse a name that stands twice in it, as the service does."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        twice = next(name for name, _ in pairs if [other for other, _ in pairs].count(name) > 1)
        raise ValueError(f"{twice!r} stands twice in one object")
    return fields


@command.command()
@click.argument("name")
@number_argument
@click.option("--wait", default=120.0, type=click.FloatRange(0, 3600), help="Seconds for the plan.")
@click.option("--yes", is_flag=True, help="Open it with fewer users than C too.")
@click.pass_obj
def open(  # noqa: A001
    options: RemoteOptions, name: str, number: int | None, wait: float, yes: bool
) -> None:
    """Open the round NUMBER of NAME, by default the next one, and wait for its plan."""
    with connect(options, "operator") as client:
        campaign = client.campaign(name)
        if number is None:
            number = campaign["round"] + (campaign["state"] not in ("wanted", "open"))
        yes = yes or campaign["state"] == "archived"  # which the service refuses by name
        if number > campaign["round"] and campaign["learner"] == "ahead":
            raise click.ClickException(_not_open(number, campaign))  # and nothing was asked for
        if number > campaign["round"] and not yes:
            _check_users(campaign, number)
        state = _open(client, name, number, wait)
        why = ""
        if state == "wanted":
            why = _not_open(number, client.campaign(name))
        elif state != "open":
            why = f"round {number} of {name} is {state}: it can't be opened again"
    if not why:
        show(options, {"round": number, "state": state}, f"round {number} of {name} is {state}")
        return
    if options["as_json"]:
        show(options, {"round": number, "state": state}, "")
    raise click.ClickException(why)


def _check_users(campaign: dict[str, Any], number: int) -> None:
    """Refuse to open a round of which nothing can be released."""
    n_users, definition = campaign["users"], campaign["definition"]
    min_users = definition["min_group_size"] + definition["colluders"]
    if n_users < min_users:
        raise InvalidInputError(
            f"round {number} of {campaign['name']} must have at least C = {min_users} users, else "
            f"nothing of it is released; got {n_users:,}. Let users join first, or say --yes."
        )


def _open(client: Client, name: str, number: int, seconds: float) -> str:
    """Ask for a round until it is open or the time is over; say why it takes long."""
    deadline, text = time.monotonic() + seconds, ""
    with console.waiting("waiting for the plan"):
        while True:
            left = max(0.0, deadline - time.monotonic())
            pause = LONG_POLL if text else POLL
            state = client.open_round(name, number, wait=min(left, pause)).state
            if state != "wanted" or time.monotonic() >= deadline:
                return state
            campaign = client.campaign(name)
            if campaign["learner"] == "ahead":  # an operator is needed, not time
                return state
            before, text = text, _obstacle(campaign)
            if text != before:
                click.echo(f"waiting for round {number} of {name}: {text}", err=True)


def _not_open(number: int, campaign: dict[str, Any]) -> str:
    return f"round {number} of {campaign['name']} is not open yet: {_obstacle(campaign)}"


def _obstacle(campaign: dict[str, Any]) -> str:
    """Return why a round that was asked for is not open."""
    name = campaign["name"]
    if campaign["learner"] == "silent":
        return "the learner has not been in touch since the service started. Is it running?"
    if campaign["learner"] == "ahead":
        return (
            f"the learner is ahead: it knows of round {campaign['ahead']}. Abandon the rounds up "
            f"to that one, on the campaign's page or by shoal campaign abandon {name} --yes."
        )
    if campaign["learner"] == "quarantined":
        return f"the learner can't read its state. Learn it again: shoal relearn {name}."
    if campaign["round"] > 1:  # it has planned before
        return "the learner is planning."
    return f"the learner is planning (its first plan on a machine is {console.COMPILING})."


@command.command()
@click.argument("name")
@number_argument
@click.pass_obj
def close(options: RemoteOptions, name: str, number: int | None) -> None:
    """Close and release the round NUMBER of NAME, by default the last one."""
    with connect(options, "operator") as client:
        closed = client.close_round(name, number or max(1, client.campaign(name)["round"]))
    state = {"round": closed.round, "state": closed.state}
    show(options, state, f"round {closed.round} of {name} is {closed.state}")


@command.command()
@click.argument("name")
@number_argument
@sure_option
@click.pass_obj
def abandon(options: RemoteOptions, name: str, number: int | None, yes: bool) -> None:
    """Give up the rounds of NAME up to NUMBER: nothing of them is ever released.

    By default those that the learner alone knows of, or else the last round if it is not over.
    """
    if not yes:
        raise InvalidInputError(f"abandoning rounds of {name} can't be undone: say --yes.")
    with connect(options, "operator") as client:
        before = client.campaign(name)
        if number is None:
            number = before["ahead"] or before["round"]
            if before["ahead"] is None and before["state"] not in ("wanted", "open"):
                raise InvalidInputError(
                    f"{name} must have a round under way, or a learner that is ahead; got round "
                    f"{before['round']}, {before['state']}, learner {before['learner']}."
                )
        after = client.abandon(name, through=number)
    n_rounds = after["abandoned"] - before["abandoned"]
    text = (
        f"{n_rounds:,} round{'' if n_rounds == 1 else 's'} of {name} abandoned, up to round "
        f"{number}; the next is {after['round'] + 1}"
    )
    show(options, {"through": number, "rounds": n_rounds}, text)


@command.command(name="show")
@click.argument("name", required=False)
@click.pass_obj
def show_campaign(options: RemoteOptions, name: str | None) -> None:
    """Show the campaign NAME, or list all of them."""
    with connect(options, "operator") as client:
        if name is None:
            names = client.campaigns()
            show(options, names, "\n".join(names) or "there are no campaigns")
            return
        campaign = client.campaign(name)
    arms = ", ".join(arm["name"] for arm in campaign["arms"] if arm["until"] is None)
    text = (
        f"{name}: round {campaign['round']}, {campaign['state']}; {campaign['users']:,} users of "
        f"{campaign['definition']['seats']:,} seats; arms {arms}; learner {campaign['learner']}"
    )
    show(options, campaign, text)


@command.command()
@click.argument("name")
@sure_option
@click.pass_obj
def archive(options: RemoteOptions, name: str, yes: bool) -> None:
    """End NAME for good: its totals stay, users' names and who reported are forgotten."""
    _end(options, name, "archive", lambda client: client.archive_campaign(name), yes=yes)


@command.command()
@click.argument("name")
@sure_option
@click.pass_obj
def delete(options: RemoteOptions, name: str, yes: bool) -> None:
    """Delete an archived campaign with everything that is stored of it; its name stays taken."""
    _end(options, name, "delete", lambda client: client.delete_campaign(name), yes=yes)


def _end(
    options: RemoteOptions, name: str, verb: str, act: Callable[[Client], object], *, yes: bool
) -> None:
    if not yes:
        raise InvalidInputError(f"{verb[:-1]}ing {name} can't be undone: say --yes.")
    with connect(options, "operator") as client:
        act(client)
    show(options, {f"{verb}d": name}, f"{name} is {verb}d")


def read_users_file(file: Path) -> list[str]:
    """Return the users of a CSV file with a column user."""
    from shoal.service.user_file import read_users

    try:
        return read_users(file.read_bytes())
    except OSError as error:
        raise InvalidInputError(f"file must be readable; {file}: {error.strerror}.") from None
