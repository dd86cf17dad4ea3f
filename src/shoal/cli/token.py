"""``shoal token``: an admin's work with tokens, over HTTP."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from shoal.cli.choices import CHOICES, NameChoice
from shoal.cli.remote import RemoteGroup, RemoteOptions, connect, remote, show
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.extras import need


@click.group(name="token", cls=RemoteGroup)
@remote
def command() -> None:
    """Create, list, rotate and revoke tokens of a running service.

    SHOAL_TOKEN, or the first start's file of tokens, has an admin's token.
    """


@command.command()
@click.argument("name")
@click.argument("role", type=NameChoice("role"))
@click.option("--campaign", "campaigns", multiple=True, help="A campaign it is for; * for all.")
@click.option("--days", type=click.FloatRange(0, min_open=True), help="Days until it ends.")
@click.option("--succeeds", help="The app token whose reporting it takes over.")
@click.pass_obj
def create(
    options: RemoteOptions,
    name: str,
    role: str,
    campaigns: tuple[str, ...],
    days: float | None,
    succeeds: str | None,
) -> None:
    """Create a token NAME for ROLE, in place of any of that name, and print it once."""
    need("service")
    from shoal.client.calls import Call, encode, path_of, read_as
    from shoal.wire import BOUND, IssuedToken, TokenRequest

    if role not in CHOICES["role"]:
        raise UnknownNameError("role", role, CHOICES["role"])
    if role in BOUND and not campaigns:
        raise InvalidInputError(
            f"--campaign must name a campaign of a token of role {role}, or * for all; got none."
        )
    body = encode(TokenRequest(role, list(campaigns) or None, days, succeeds))
    with connect(options, "admin") as client:
        issued = client.run(Call("PUT", path_of("tokens", name), read_as(IssuedToken), body))
    show(options, {"name": name, "token": issued.token}, issued.token)
    for campaign in issued.unknown_campaigns:
        text = f"there is no campaign {campaign} yet; the token is for it once it is created."
        click.echo(text, err=True)


@command.command(name="list")
@click.pass_obj
def list_tokens(options: RemoteOptions) -> None:
    """List the tokens: role, campaigns, end and day of last use; never a secret."""
    with connect(options, "admin") as client:
        tokens = client.tokens()
    if options["as_json"]:
        from msgspec import to_builtins

        show(options, to_builtins(tokens), "")
        return
    from shoal.cli import console

    rows = [
        (name, token.role, ", ".join(token.campaigns), _day(token.expires_at, "never"),
         _day(token.last_used, "not yet"))
        for name, token in tokens.items()
    ]  # fmt: skip
    console.table("Tokens", ["name", "role", "campaigns", "ends", "last used"], rows)


def _day(milliseconds: int | None, missing: str) -> str:
    if milliseconds is None:
        return missing
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d}"


@command.command()
@click.argument("name")
@click.option("--hours", default=24.0, type=click.FloatRange(0), help="The former one works on.")
@click.pass_obj
def rotate(options: RemoteOptions, name: str, hours: float) -> None:
    """Give the token NAME a new secret, and print it once."""
    with connect(options, "admin") as client:
        token = client.rotate(name, grace_hours=hours)
    show(options, {"name": name, "token": token}, token)


@command.command()
@click.argument("name")
@click.pass_obj
def revoke(options: RemoteOptions, name: str) -> None:
    """Revoke the token NAME, at once."""
    with connect(options, "admin") as client:
        client.revoke(name)
    show(options, {"revoked": name}, f"{name} is revoked")
