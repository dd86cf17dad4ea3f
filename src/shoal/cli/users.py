"""``shoal users``: let users join and leave a campaign, over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from shoal.cli.campaign import read_users_file
from shoal.cli.remote import connect, remote, show

file_argument = click.argument("file", type=click.Path(path_type=Path, dir_okay=False))


@click.group(name="users")
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
        left = client.withdraw(campaign, users, erase=erase)
    show(options, {"left": left}, f"{left:,} of {len(users):,} users left {campaign}")
