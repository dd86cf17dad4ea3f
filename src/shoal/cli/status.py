"""``shoal status``: how far a sweep is."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from shoal.cli import console, options

MAX_SHOWN = 20


@click.command(name="status")
@click.argument("folder", type=click.Path(path_type=Path))
@options.as_json
def command(folder: Path, as_json: bool) -> None:
    """Show what a sweep in FOLDER has done, what runs, what failed and the time left.

    It may be asked while the sweep runs, after it was stopped or killed, and when it is complete.
    """
    from shoal.experiments.sweep import status
    from shoal.model.plurals import count

    state = status(folder)
    if as_json:
        click.echo(json.dumps(asdict(state)))
        return
    if state.at_work:
        left = state.seconds_left
        time_left = "soon known" if left is None else f"about {console.duration(left)}"
    else:
        time_left = "none" if state.done == state.total else "not running"
    console.table(
        f"{folder}: {count(state.total, 'cell')}",
        ["done", "running", "failed", "waiting", "time left"],
        [(state.done, state.running, state.failed, state.waiting, time_left)],
    )
    if state.failures:
        first = list(state.failures.items())[:MAX_SHOWN]
        console.table(
            "Failed; the next run tries them again",
            ["cell", "what", "why"],
            [(name, why["cell"], why["reason"]) for name, why in first],
        )
    if len(state.failures) > MAX_SHOWN:
        click.echo(f"and {len(state.failures) - MAX_SHOWN} more; --json shows them all.")
