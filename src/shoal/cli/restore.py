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

NEXT = {
    "aggregator": "Next: start it beside the store that the learner had. {memory} If "
    "the start says that a round's secret is missing, that round was closed since: shoal serve "
    "--abandon-open-rounds. Repeat at once what was done since the backup: withdraw users who "
    "left, erase again those who asked for it (their names are back), retire arms. Then enrol and "
    "add, in the same order, users and arms that are missing. Where a campaign says that the "
    "learner is ahead, abandon those rounds: shoal campaign abandon NAME --yes.",
    "learner": "Next: start it beside the store that the aggregator had. It learns again what was "
    "released since the backup. If the aggregator's store is restored as well, {memory}",
}
MEMORY = {
    "aggregator": "That one alone remembers the rounds since the backup.",
    "learner": "nobody remembers the rounds since: they would be opened again. Then begin new "
    "campaigns, under new names.",
}
WITNESS_MEMORY = {
    "aggregator": "The witness {file} remembers the rounds since the backup: those that may have "
    "been released are abandoned at the start, and campaigns go on.",
    "learner": "the witness {file} remembers the rounds since: those that may have been released "
    "are abandoned at the start, and campaigns go on.",
}


@click.command(name="restore")
@click.argument("role", type=click.Choice(["aggregator", "learner"]))
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@with_settings
def command(settings: Settings, role: StoreRole, file: Path) -> None:
    """Fill the empty store of ROLE from FILE, a backup.

    Rounds that the backup does not contain are not opened again as long as the other role, which
    remembers them, keeps its store.
    """
    from shoal.service.store.backup import restore
    from shoal.service.store.database import opened

    with opened(settings.database(role), role) as database:
        rows = restore(database, role, file)
    left_out = " (tokens and sessions are left out)" if role == "aggregator" else ""
    click.echo(f"{rows:,} rows are in the {role}'s store{left_out}")
    witness = known_witness(settings)
    memory = WITNESS_MEMORY[role].format(file=witness) if witness else MEMORY[role]
    click.echo(NEXT[role].format(memory=memory))
    if role == "learner" or witness:
        return
    if store := missing_file(settings.database("learner")):
        click.echo(
            f"Warning: there is no learner's store at {store}. Unless it is on another host, put "
            "the one that the learner had there before you start: without it, rounds that were "
            "released after the backup are opened again. If it is lost, begin new campaigns.",
            err=True,
        )


def known_witness(settings: Settings) -> Path | None:
    """Return the witness's file, where it is set and there: a new one remembers nothing."""
    file = Path(settings.aggregator.witness)
    return file if file.is_file() else None


def missing_file(address: str) -> Path | None:
    """Return the file of an SQLite store that is not there."""
    from shoal.service.store import Database

    if not address.startswith("sqlite"):
        return None
    with closing(Database(address)) as database:
        return None if database.exists() else database.file
