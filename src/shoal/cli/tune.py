"""``shoal tune``: choose hyperparameters on separate validation instances."""

from __future__ import annotations

import json
from pathlib import Path

import click

from shoal.cli.options import engine_options, json_option, names, problem_options


@click.command(name="tune")
@click.option(
    "--instances", default="uniform,linear", show_default=True, help="Classes of instances."
)
@click.option("--policies", help="Policies by name; by default all that have a grid.")
@problem_options
@click.option("--runs", "n_runs", default=20, show_default=True, help="Validation runs per point.")
@engine_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A new JSON file for the choices, the grid and the seeds.",
)
@json_option
def command(
    instances: str,
    policies: str | None,
    n_users: int,
    n_arms: int,
    min_group_size: int,
    horizon: int,
    seed: int,
    n_runs: int,
    engine: str,
    address: str | None,
    n_workers: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Choose hyperparameters on separate validation instances.

    Every point of each policy's grid is run on instances that no comparison uses. The file that
    ships with Shoal was put together from two runs of this command with its defaults, one for the
    paper's policies and one for the others.
    """
    from shoal.cli import console
    from shoal.engines import make_engine
    from shoal.experiments.records import check_new
    from shoal.experiments.tune import GRID, tune

    if out:
        check_new(out, "file")
    with console.progress("tuning") as progress:
        found = tune(
            instances=names(instances),
            policies=names(policies) if policies else tuple(GRID),
            n_users=n_users,
            n_arms=n_arms,
            min_group_size=min_group_size,
            horizon=horizon,
            n_runs=n_runs,
            seed=seed,
            engine=make_engine(engine, n_workers=n_workers, address=address),
            progress=lambda finished, done, total: progress("", done, total),
        )
    text = json.dumps(found, indent=2, sort_keys=True)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text + "\n", encoding="utf-8")
    if as_json:
        click.echo(text)
        return
    console.table(
        f"Chosen on {n_runs} validation runs",
        ["instances", "policy", "options", "regret"],
        [
            (instance, policy, _spell(choice["options"]), choice["regret"])
            for instance, chosen in found["chosen"].items()
            for policy, choice in chosen.items()
        ],
    )


def _spell(options: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())
