"""``shoal restore``: fill an empty store from a backup."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli.serve import with_settings

if TYPE_CHECKING:
    from shoal.service.settings import Settings
    from shoal.service.store.migrate import StoreRole


@click.command(name="restore")
@click.argument("role", type=click.Choice(["aggregator", "learner"]))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@with_settings
def command(settings: Settings, role: StoreRole, file: Path) -> None:
    """Fill the empty store of ROLE from FILE, a backup.

    Rounds that the backup does not contain are never opened again: the other role remembers them.
    """
    from shoal.service.store import Database
    from shoal.service.store.backup import restore

    with closing(Database(settings.database(role))) as database:
        rows = restore(database, role, file)
    click.echo(f"{rows:,} rows are in the {role}'s store")
