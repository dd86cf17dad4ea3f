"""``shoal status``: how far a sweep is."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import click

from shoal.cli.options import json_option

MOST_SHOWN = 20


@click.command(name="status")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def command(folder: Path, as_json: bool) -> None:
    """Show what a sweep in FOLDER has done, what runs, what failed and the time left.

    It may be asked while the sweep runs, after it was stopped or killed, and when it is complete.
    """
    from shoal.cli import console
    from shoal.experiments.sweep import status

    found = status(folder)
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    if found.at_work:
        left = found.seconds_left
        ahead = "soon known" if left is None else str(timedelta(seconds=round(left)))
    else:
        ahead = "none" if found.done == found.total else "not running"
    console.table(
        f"{folder}: {found.total:,} cells",
        ["done", "running", "failed", "waiting", "time left"],
        [(found.done, found.running, found.failed, found.waiting, ahead)],
    )
    if found.failures:
        shown = list(found.failures.items())[:MOST_SHOWN]
        console.table(
            "Failed; the next run tries them again",
            ["cell", "what", "why"],
            [(name, why["cell"], why["reason"]) for name, why in shown],
        )
    if len(found.failures) > MOST_SHOWN:
        console.out.print(f"and {len(found.failures) - MOST_SHOWN} more; --json shows them all.")
