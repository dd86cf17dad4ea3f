"""``shoal campaign``: an operator's work with campaigns, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from shoal.cli import console
from shoal.cli.remote import RemoteOptions, connect, remote, show
from shoal.errors import InvalidInputError

if TYPE_CHECKING:
    from shoal.client import Client

number_argument = click.argument("number", type=click.IntRange(1, 2**31 - 1), required=False)
sure_option = click.option("--yes", is_flag=True, help="Do it: it can't be undone.")


@click.group(name="campaign")
@remote
def command() -> None:
    """Create, open, close, show, archive and delete campaigns of a running service.

    SHOAL_TOKEN, or the first start's file of tokens, has an operator's token.
    """


@command.command()
@click.argument("name")
@click.argument("file", type=click.File("rb"))
@click.option("--rate", type=click.FloatRange(0, 1), help="The share of ones that you expect.")
@click.pass_obj
def create(options: RemoteOptions, name: str, file: IO[bytes], rate: float | None) -> None:
    """Create the campaign NAME from FILE, its definition as JSON; - is standard input."""
    definition = _definition(file.read())
    with connect(options, "operator") as client:
        campaign = client.create_campaign(name, **definition)
    created = campaign["definition"]
    show(options, campaign, f"{name}: {created['seats']:,} seats, C = {created['min_group_size']}")
    if rate is not None:
        from shoal.service.homogeneity import advice

        least = created["min_group_size"] + created["colluders"]
        click.echo(advice(rate, least, noise=created["noise"] is not None), err=True)


def _definition(content: bytes) -> dict[str, Any]:
    try:
        definition = json.loads(content)
    except ValueError as error:
        raise InvalidInputError(f"file must be a campaign's definition as JSON; {error}.") from None
    if not isinstance(definition, dict):
        raise InvalidInputError("file must be a campaign's definition as a JSON object.")
    return definition


@command.command()
@click.argument("name")
@number_argument
@click.option("--wait", default=60.0, type=click.FloatRange(0, 60), help="Seconds for the plan.")
@click.pass_obj
def open(options: RemoteOptions, name: str, number: int | None, wait: float) -> None:  # noqa: A001
    """Open the round NUMBER of NAME, by default the next one, and wait for its plan."""
    with connect(options, "operator") as client:
        if number is None:
            campaign = client.campaign(name)
            number = campaign["round"] + (campaign["state"] != "wanted")
        with console.waiting(f"waiting for the plan; on a new machine: {console.COMPILING}"):
            opened = client.open_round(name, number, wait=wait)
    state = {"round": opened.round, "state": opened.state}
    show(options, state, f"round {opened.round} of {name} is {opened.state}")


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


@command.command(name="show")
@click.argument("name", required=False)
@click.pass_obj
def show_campaign(options: RemoteOptions, name: str | None) -> None:
    """Show the campaign NAME, or list all of them."""
    with connect(options, "operator") as client:
        if name is None:
            names = client.campaigns()
            show(options, names, "\n".join(names))
            return
        campaign = client.campaign(name)
    arms = ", ".join(arm["name"] for arm in campaign["arms"] if arm["until"] is None)
    text = (
        f"{name}: round {campaign['round']}, {campaign['state']}; {campaign['users']:,} users of "
        f"{campaign['definition']['seats']:,} seats; arms {arms}"
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
        raise InvalidInputError(f"to {verb} {name} can't be undone: say --yes.")
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
