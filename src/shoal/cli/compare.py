"""``shoal compare``: several policies on the same instances, with a table, figures and records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli.options import (
    engine_options,
    json_option,
    means_option,
    names,
    play_options,
    policy_options,
    problem_options,
    settings,
)

if TYPE_CHECKING:
    from shoal.experiments import Comparison


@click.command(name="compare")
@click.option(
    "--instances", default="uniform,linear", show_default=True, help="Classes of instances."
)
@click.option("--policies", help="Policies by name; by default the paper's five.")
@problem_options
@click.option("--runs", "n_runs", default=20, show_default=True, help="Runs of each policy.")
@play_options
@means_option
@policy_options
@click.option("--untuned", is_flag=True, help="Use each policy's default options.")
@engine_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="A new folder for records (Parquet), figures (PNG, SVG) and the configuration.",
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
    rewards: str,
    participation: float,
    means_file: str | None,
    options: tuple[str, ...],
    untuned: bool,
    engine: str,
    address: str | None,
    n_workers: int | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run several policies on the same instances; by default the paper's experiment.

    Every run draws a new instance, the same for every policy, and the table shows the mean total
    regret with its 95 % interval. Options that "shoal tune" chose on separate instances are used
    unless --untuned is given; -o POLICY.NAME=VALUE overrides them.
    """
    from shoal.cli import console
    from shoal.engines import make_engine
    from shoal.errors import InvalidInputError
    from shoal.experiments.comparison import PAPER, compare
    from shoal.experiments.records import check_new, new_folder
    from shoal.instances import load_means

    if out:
        check_new(out, "folder")
    chosen: dict[str, dict[str, object]] = {}
    for name, value in settings(options).items():
        policy, _, option = name.rpartition(".")
        if not policy:
            raise InvalidInputError(f"option must be POLICY.NAME=VALUE here; got {name!r}.")
        chosen.setdefault(policy, {})[option] = value
    with console.progress("comparing") as progress:
        result = compare(
            instances=names(instances),
            policies=names(policies) if policies else PAPER,
            n_users=n_users,
            n_arms=n_arms,
            min_group_size=min_group_size,
            horizon=horizon,
            n_runs=n_runs,
            seed=seed,
            rewards=rewards,
            participation=participation,
            means=load_means(means_file) if means_file else None,
            options=chosen,
            tuned=not untuned,
            engine=make_engine(engine, n_workers=n_workers, address=address),
            progress=progress,
        )
    if means_file:
        result = replace(result, config={**result.config, "means_file": means_file})
    if as_json:
        summary = result.summary().to_dicts()
        click.echo(json.dumps({"config": result.config, "summary": summary}))
    else:
        _show(result)
    if out:
        from shoal.figures import regret_figures, save

        with new_folder(out) as folder:
            result.fill(folder)
            for name, figure in regret_figures(result.curves()).items():
                save(figure, folder / f"regret-{name}")
        if not as_json:
            console.out.print(f"Records, figures and configuration: {out}", highlight=False)


def _show(result: Comparison) -> None:
    from shoal.cli import console

    config, summary = result.config, result.summary()
    for (instance,), rows in summary.group_by("instance", maintain_order=True):
        console.table(
            f"{instance}: total regret of {config['n_users']} users over "
            f"{config['horizon']:,} rounds, {config['n_runs']} runs",
            ["policy", "regret", "± 95 %", "smallest group", "user-rounds/s"],
            [
                (
                    row["policy"],
                    row["mean"],
                    "" if row["high"] is None else row["high"] - row["mean"],
                    row["smallest_group"],
                    f"{row['user_rounds'] / row['seconds'] / 1e6:,.1f} M",
                )
                for row in rows.sort("mean").to_dicts()
            ],
        )
