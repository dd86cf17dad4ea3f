"""What the commands that call a running service share: its address, a token, and a client."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoal.cli import console
from shoal.cli.options import combined
from shoal.errors import InvalidInputError, ShoalError
from shoal.extras import need

if TYPE_CHECKING:
    from shoal.client import Client

RemoteOptions = dict[str, Any]
PATIENCE = 10.0  # seconds that a service may take to answer once it can be reached
REACHABLE = 3.0  # seconds in which an address must accept a connection


address_options = combined(
    click.option(
        "--url", default="http://127.0.0.1:8000", envvar="SHOAL_URL", help="The service's address."
    ),
    click.option(
        "--tokens",
        type=click.Path(path_type=Path, dir_okay=False),
        help="The file with tokens that the first start wrote; it wins over SHOAL_TOKEN.",
    ),
)


JSON_HELP = "Print the answer as JSON."


class RemoteGroup(click.Group):
    """A group whose commands take --json as well, so that it may stand at the end."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with the option."""
        flag = click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_print_json, help=JSON_HELP
        )
        cmd.params.append(flag)
        super().add_command(cmd, name)


def _print_json(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        ctx.obj["as_json"] = True


def remote(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options --url, --tokens and --json to a group, whose commands share them."""

    @address_options
    @click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
    @click.pass_context
    @wraps(command)
    def run(ctx: click.Context, /, **options: Any) -> None:
        ctx.obj = options

    return run


@contextmanager
def connect(options: RemoteOptions, role: str) -> Iterator[Client]:
    """Open a client with the token that the environment or the file has for a role."""
    need("service")
    from shoal.client import Client, ServiceError

    token, source = find_token(options["tokens"], role)
    with Client(options["url"], token, patience=PATIENCE) as client:
        check_reachable(options["url"])
        try:
            yield client
        except ServiceError as error:
            if error.status not in (401, 403):
                raise
            text = f"{error} The token is that of {source}."
            if error.status == 401:
                text += " After a restore or new tokens, read the service's tokens.env again."
            raise ServiceError(error.name, error.status, text) from None


def check_reachable(url: str) -> None:
    """Refuse an address at which nothing answers, within seconds and by its name."""
    import httpx

    deadline = time.monotonic() + REACHABLE
    with console.waiting(f"connecting to {url}"):
        while True:
            try:
                httpx.get(f"{url}/health", timeout=max(0.5, deadline - time.monotonic()))
            except httpx.ReadTimeout:
                return  # it is there, and busy
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
                if time.monotonic() + 0.25 >= deadline:
                    raise ShoalError(
                        f"no service answers at {url} ({reason}): start it with shoal serve, or "
                        "say where it is with --url."
                    ) from None
                time.sleep(0.2)
            else:
                return


def find_token(file: Path | None, role: str) -> tuple[str, str]:
    """Return a token and where it is from.

    It is SHOAL_TOKEN, the role's own variable, or the role's line of a file of tokens.
    """
    name = f"SHOAL_{role.upper()}_TOKEN"
    if file is not None:
        return _read_token(file, name), f"the line {name} in {file}"
    for variable in ("SHOAL_TOKEN", name):
        if token := os.environ.get(variable):
            return token, f"the environment variable {variable}"
    file = Path(os.environ.get("SHOAL_DATA") or "shoal-data") / "tokens.env"
    try:
        return _read_token(file, name), f"the line {name} in {file}"
    except InvalidInputError:
        raise InvalidInputError(
            f"SHOAL_TOKEN must be the token of role {role}; neither it nor {name} is set, and "
            f"{file} does not have it."
        ) from None


def _read_token(file: Path, name: str) -> str:
    """Return a token of a file of tokens, or refuse the file."""
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InvalidInputError(f"tokens must be a file of tokens; {file}: {reason}.") from None
    tokens = dict(line.split("=", 1) for line in lines if "=" in line)
    if name not in tokens:
        raise InvalidInputError(f"tokens must be a file with a line {name}=...; {file} has none.")
    return tokens[name]


def show(options: RemoteOptions, value: Any, text: str) -> None:
    """Print an answer, for people or as JSON."""
    click.echo(json.dumps(value) if options["as_json"] else text)
