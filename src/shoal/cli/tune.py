"""``shoal tune``: choose hyperparameters on separate validation instances."""

import json
from pathlib import Path
from typing import Any

import click

from shoal.cli import console, options


@click.command(name="tune")
@options.experiment("all that have a grid", "Validation runs per point.")
@options.engine
@options.out("file", "A new JSON file for the choices, the grid and the seeds.")
@options.as_json
def command(
    policies: list[str] | None, n_runs: int, out: Path | None, as_json: bool, **experiment: Any
) -> None:
    """Choose hyperparameters on separate validation instances.

    Every point of each policy's grid is run on instances that no comparison uses. The file that
    ships with Shoal was put together from two runs of this command with its defaults, one for the
    paper's policies and one for the others.
    """
    with console.loading():
        from shoal.experiments.setting import spell
        from shoal.experiments.tune import GRID, tune

    with console.progress("tuning") as progress:
        choices = tune(
            policies=policies or tuple(GRID),
            n_runs=n_runs,
            progress=lambda finished, done, total: progress("", done, total),
            **experiment,
        )
    text = json.dumps(choices, indent=2, sort_keys=True)
    if out:
        out.write_text(text + "\n", encoding="utf-8")
    if as_json:
        click.echo(text)
        return
    console.table(
        f"Chosen on {n_runs} validation runs",
        ["instances", "policy", "options", "regret"],
        [
            (instance, policy, spell(choice["options"]), choice["regret"])
            for instance, chosen in choices["chosen"].items()
            for policy, choice in chosen.items()
        ],
    )
