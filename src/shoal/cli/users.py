"""``shoal users``: let users join and leave a campaign, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoal.cli.campaign import read_users_file
from shoal.cli.remote import RemoteGroup, connect, remote, show

if TYPE_CHECKING:
    from shoal.client import Client
    from shoal.wire import Moved

SHOWN = 10  # unknown names, for people
file_argument = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.group(name="users", cls=RemoteGroup)
@remote
def command() -> None:
    """Let users join and leave a campaign of a running service.

    SHOAL_TOKEN, or the first start's file of tokens, has an operator's token.
    """


@command.command()
@click.argument("campaign")
@file_argument
@click.pass_obj
def join(options: dict[str, Any], campaign: str, file: Path) -> None:
    """Let the users in FILE join CAMPAIGN: a CSV file with a column user."""
    users = read_users_file(file)
    with connect(options, "operator") as client:
        joined = client.enrol(campaign, users)
    show(options, {"joined": joined}, f"{joined:,} of {len(users):,} users joined {campaign}")


@command.command()
@click.argument("campaign")
@file_argument
@click.option("--erase", is_flag=True, help="Forget their names for good.")
@click.pass_obj
def withdraw(options: dict[str, Any], campaign: str, file: Path, erase: bool) -> None:
    """Let the users in FILE leave CAMPAIGN from the next round on."""
    users = read_users_file(file)
    with connect(options, "operator") as client:
        parts = list(_leave(client, campaign, users, erase=erase))
    left, erased = sum(part.left for part in parts), sum(part.erased for part in parts)
    unknown = [user for part in parts for user in part.unknown]
    text = f"{left:,} of {len(users):,} users left {campaign}"
    if erase:
        text += f"; {erased:,} name{'' if erased == 1 else 's'} erased"
    show(options, {"left": left, "erased": erased, "unknown": unknown}, text)
    if unknown:
        more = f" and {len(unknown) - SHOWN:,} more" if len(unknown) > SHOWN else ""
        click.echo(f"not in {campaign}: {', '.join(unknown[:SHOWN])}{more}", err=True)


def _leave(client: Client, campaign: str, users: list[str], *, erase: bool) -> Iterator[Moved]:
    from shoal.client.calls import Call, encode, path_of, read_as
    from shoal.client.operations import MAX_USERS
    from shoal.wire import Moved, Movement

    for start in range(0, len(users), MAX_USERS):
        body = encode(Movement(leave=users[start : start + MAX_USERS], erase=erase))
        yield client.run(
            Call("POST", path_of("campaigns", campaign, "users"), read_as(Moved), body)
        )
