"""``shoal sweep``: a grid of simulations that continues where it was stopped."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli import console, options
from shoal.cli.main import Stopped
from shoal.outputs import check_folder

if TYPE_CHECKING:
    from shoal.engines import Engine


@click.command(name="sweep")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="The sweep's folder: a new one, or one to continue.",
)
@click.option(
    "--new",
    type=click.Path(path_type=Path),
    help="Another folder, where FILE has changed since --out was begun; cells of both are copied.",
)
@options.engine
@options.as_json
def command(file: Path, out: Path, new: Path | None, engine: Engine, as_json: bool) -> None:
    """Play every combination of the values in FILE, a TOML file, and keep the records in a folder.

    Each finished cell is written at once. However a sweep ends, the same command plays the cells
    that are missing; "shoal status" shows its progress, "shoal report" its results.
    """
    with console.loading():
        from shoal.experiments.sweep import read_configuration, sweep

    check_folder(new or out)
    configuration = read_configuration(file)
    try:
        with console.progress("sweeping") as progress:
            summary = sweep(
                configuration,
                out,
                new=new,
                engine=engine,
                progress=lambda finished, done, total: progress("", done, total),
            )
    except KeyboardInterrupt:
        raise Stopped("Stopped; the same command goes on with what is missing.") from None
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        console.table(
            f"{new or out}",
            ["cells", "done before", "copied", "done now", "failed"],
            [(summary.total, summary.before, summary.taken, summary.done, summary.failed)],
        )
    if summary.failed:
        click.echo(
            f"{summary.failed} of {summary.total} cells failed: "
            f'"shoal status {new or out}" says why, and the same command tries them again.',
            err=True,
        )
        raise SystemExit(1)
