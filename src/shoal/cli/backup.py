"""``shoal backup``: one consistent copy of a store, while the service runs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Literal

import click

from shoal.cli.serve import config_option, data_option, read_settings


@click.command(name="backup")
@click.argument("role", type=click.Choice(["aggregator", "learner"]))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@config_option
@data_option
def command(
    role: Literal["aggregator", "learner"], file: Path, config: Path | None, data: Path | None
) -> None:
    """Copy the store of ROLE to a new FILE while the service runs.

    A backup holds no individual reward. The key that blinds sums is not part of it: keep the key
    file yourself, in another place.
    """
    settings = read_settings(config, data)
    from shoal.errors import InvalidInputError
    from shoal.service.store import Database
    from shoal.service.store.backup import back_up

    if file.exists():
        raise InvalidInputError(f"file must be a new file; {file} exists.")
    url = settings.aggregator_database if role == "aggregator" else settings.learner_database
    with closing(Database(url)) as database:
        rows = back_up(database, role, file)
    click.echo(f"{rows:,} rows of the {role}'s store are in {file}")
