"""``shoal backup``: one consistent copy of a store, while the service runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli.serve import with_settings
from shoal.errors import InvalidInputError

if TYPE_CHECKING:
    from shoal.service.settings import Settings
    from shoal.service.store.migrate import StoreRole


@click.command(name="backup")
@click.argument("role", type=click.Choice(["aggregator", "learner"]))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@with_settings
def command(settings: Settings, role: StoreRole, file: Path) -> None:
    """Copy the store of ROLE to a new FILE while the service runs.

    A backup holds no individual reward. The key that blinds sums is not part of it: keep the key
    file yourself, in another place.
    """
    from shoal.service.store.backup import back_up
    from shoal.service.store.database import opened

    if file.exists():
        raise InvalidInputError(f"file must be a new file; {file} exists.")
    if not file.parent.is_dir():
        raise InvalidInputError(f"file must be in a folder that exists; {file.parent} does not.")
    with opened(settings.database(role), role) as database:
        rows = back_up(database, role, file)
    click.echo(f"{rows:,} rows of the {role}'s store are in {file}")
