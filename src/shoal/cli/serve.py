"""``shoal serve``: the service, both roles or one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoal.extras import need

if TYPE_CHECKING:
    from shoal.service.settings import Settings

    # What stands before a role: how to read the settings, and the flags.
    ServeOptions = tuple[Callable[[], Settings], dict[str, bool]]

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="SHOAL_CONFIG",
    help="A TOML file with settings; the environment (SHOAL_...) wins over it.",
)
data_option = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="SHOAL_DATA",
    help="Folder for SQLite's files and the key; by default shoal-data.",
)


def read_settings(
    config: Path | None, data: Path | None, *, host: str | None = None, port: int | None = None
) -> Settings:
    """Read the settings from the command line, the file and the environment."""
    need("service")
    from shoal.service.settings import load_settings

    chosen = {"SHOAL_DATA": data, "SHOAL_AGGREGATOR_HOST": host, "SHOAL_AGGREGATOR_PORT": port}
    if port is not None and "SHOAL_LEARNER_PORT" not in os.environ:
        chosen["SHOAL_LEARNER_PORT"] = port and port + 1
    options = {name: str(value) for name, value in chosen.items() if value is not None}
    return load_settings(os.environ | options, file=config)


def prepare(
    config: Path | None, data: Path | None, *, host: str | None = None, port: int | None = None
) -> Settings:
    """Read the settings of a process that will serve, before anything is compiled."""
    settings = read_settings(config, data, host=host, port=port)
    from shoal.service.startup import use_cache

    use_cache(settings.data)
    return settings


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options --config and --data, and pass ``settings`` in their place."""

    @config_option
    @data_option
    @wraps(command)
    def run(config: Path | None, data: Path | None, **options: Any) -> None:
        command(settings=read_settings(config, data), **options)

    return run


@click.group(name="serve", invoke_without_command=True)
@config_option
@data_option
@click.option("--host", help="Address that the aggregator listens on, by default this machine's.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_534),
    help="Port that the aggregator listens on, by default 8000; the learner's is the next one.",
)
@click.option("--new-tokens", is_flag=True, help="Revoke all tokens; write new ones to tokens.env.")
@click.option(
    "--abandon-open-rounds",
    is_flag=True,
    help="Abandon open rounds whose sums can't be read: those whose secret is missing, as after a "
    "restore of the aggregator, or, if the key is lost, all that have reports. Others go on.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    config: Path | None,
    data: Path | None,
    host: str | None,
    port: int | None,
    **flags: bool,
) -> None:
    """Run the service until it is stopped; it keeps the terminal.

    Without a role, one process tree runs both on this machine. The first start writes a token
    for each role to tokens.env in the data folder.
    """
    read = partial(prepare, config, data, host=host, port=port)
    ctx.obj = read, flags
    if ctx.invoked_subcommand is None:
        settings = read()
        from shoal.service.supervisor import run_both

        chosen = [f"--{name.replace('_', '-')}" for name, value in flags.items() if value]
        raise SystemExit(run_both(settings, options=chosen))


@command.command()
@click.pass_obj
def aggregator(options: ServeOptions) -> None:
    """Run the aggregator alone."""
    read, flags = options
    settings = read()
    from shoal.service.process import run_aggregator

    run_aggregator(settings, announce=click.echo, **flags)


@command.command()
@click.pass_obj
def learner(options: ServeOptions) -> None:
    """Run the learner alone; SHOAL_LEARNER_TOKEN is its token."""
    settings = options[0]()
    from shoal.service.process import run_learner

    run_learner(settings)
