"""``shoal restore``: fill an empty store from a backup."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Literal

import click

from shoal.cli.serve import config_option, data_option, read_settings


@click.command(name="restore")
@click.argument("role", type=click.Choice(["aggregator", "learner"]))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@config_option
@data_option
def command(
    role: Literal["aggregator", "learner"], file: Path, config: Path | None, data: Path | None
) -> None:
    """Fill the empty store of ROLE from FILE, a backup.

    Rounds that the backup does not know are never opened again: the other role remembers them.
    """
    settings = read_settings(config, data)
    from shoal.service.store import Database
    from shoal.service.store.backup import restore

    url = settings.aggregator_database if role == "aggregator" else settings.learner_database
    with closing(Database(url)) as database:
        rows = restore(database, role, file)
    click.echo(f"{rows:,} rows are in the {role}'s store")
