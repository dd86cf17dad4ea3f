"""``shoal serve``: the service, both roles or one of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from shoal.cli.extras import need_service

if TYPE_CHECKING:
    from shoal.service.settings import Settings

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


class Given(NamedTuple):
    """What was given to ``serve`` before a role."""

    config: Path | None
    data: Path | None
    new_tokens: bool
    abandon_open_rounds: bool


def read_settings(config: Path | None, data: Path | None) -> Settings:
    """Read the settings that the command line and the environment give."""
    need_service()
    from shoal.service.settings import load_settings

    environment = dict(os.environ)
    if data is not None:
        environment["SHOAL_DATA"] = str(data)
    return load_settings(environment, file=config)


@click.group(name="serve", invoke_without_command=True)
@config_option
@data_option
@click.option("--new-tokens", is_flag=True, help="Revoke all tokens; make and print new ones.")
@click.option(
    "--abandon-open-rounds",
    is_flag=True,
    help="Where the key is lost: give up the open rounds, whose sums can't be read.",
)
@click.pass_context
def command(
    ctx: click.Context,
    config: Path | None,
    data: Path | None,
    new_tokens: bool,
    abandon_open_rounds: bool,
) -> None:
    """Run the service until it is told to stop.

    Without a role, one process tree runs both on this machine. The first start prints a token
    for each role, once.
    """
    ctx.obj = Given(config, data, new_tokens, abandon_open_rounds)
    if ctx.invoked_subcommand is None:
        settings = read_settings(config, data)
        from shoal.service.supervisor import run_both

        options = ["--new-tokens"] * new_tokens
        options += ["--abandon-open-rounds"] * abandon_open_rounds
        raise SystemExit(run_both(settings, options=options))


@command.command()
@click.pass_obj
def aggregator(given: Given) -> None:
    """Run the aggregator alone."""
    settings = read_settings(given.config, given.data)
    from shoal.service.process import run_aggregator

    run_aggregator(
        settings,
        announce=click.echo,
        new_tokens=given.new_tokens,
        abandon_open_rounds=given.abandon_open_rounds,
    )


@command.command()
@click.pass_obj
def learner(given: Given) -> None:
    """Run the learner alone; SHOAL_LEARNER_TOKEN is its token."""
    settings = read_settings(given.config, given.data)
    from shoal.service.process import run_learner

    run_learner(settings)
