"""``shoal compare``: several policies on the same instances, with a table, figures and records."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoal.cli import console, options
from shoal.errors import InvalidInputError
from shoal.extras import missing

if TYPE_CHECKING:
    from shoal.experiments import Comparison


@click.command(name="compare")
@options.experiment("the paper's five", "Runs of each policy.")
@options.rewards
@options.means
@options.of_policy
@options.engine
@options.out(
    "folder",
    "A new folder for records (Parquet), figures (PNG, SVG) and the configuration.",
    figures=True,
)
@options.as_json
def command(
    policies: list[str] | None,
    means_file: str | None,
    out: Path | None,
    as_json: bool,
    **experiment: Any,
) -> None:
    """Run several policies on the same instances; by default the paper's experiment.

    Every run draws a new instance, the same for every policy, and the table shows the mean total
    regret with its 95 % interval. Options that "shoal tune" chose on separate instances are used
    unless --untuned is given; -o POLICY.NAME=VALUE overrides them. A policy of your own is
    module:Class, of an installed module or one in the working folder.
    """
    with console.loading():
        from shoal.experiments.comparison import PAPER_POLICIES, compare
        from shoal.instances import load_means

    if means_file:
        experiment = options.beside_means(experiment)
    with console.progress("comparing") as progress:
        result = compare(
            policies=policies or PAPER_POLICIES,
            means=load_means(means_file) if means_file else None,
            progress=progress,
            **experiment | {"options": _by_policy(experiment["options"])},
        )
    if means_file:
        result = replace(result, config={**result.config, "means_file": means_file})
    if as_json:
        summary = result.summary().to_dicts()
        click.echo(json.dumps({"config": result.config, "summary": summary}))
    else:
        _show(result)
    if out:
        with console.waiting("writing"):
            result.write(out)  # first: what was played is not lost with a figure
            if not missing("figures"):
                from shoal.figures import regret_figures, save

                figures = regret_figures(result.curves(), records=result.records)
                for name, figure in figures.items():
                    save(figure, out / f"regret-{name}")
        if not as_json:
            contents = "Records" if missing("figures") else "Records, figures"
            click.echo(f"{contents} and configuration: {out}")


def _by_policy(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort options whose names are POLICY.NAME."""
    by_policy: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        policy, _, option = name.rpartition(".")
        if not policy:
            raise InvalidInputError(f"option must be POLICY.NAME=VALUE here; got {name!r}.")
        by_policy.setdefault(policy, {})[option] = value
    return by_policy


def _show(result: Comparison) -> None:
    from shoal.model.plurals import count

    config = result.config
    for (instance,), rows in result.summary().group_by("instance", maintain_order=True):
        console.table(
            f"{instance}: total regret of {config['n_users']} users over "
            f"{config['horizon']:,} rounds, {count(config['n_runs'], 'run')}",
            ["policy", "regret", "± 95 %", "smallest group", "user-rounds/s"],
            [
                (
                    row["policy"],
                    row["mean"],
                    "" if row["high"] is None else row["high"] - row["mean"],
                    row["smallest_group"] or "none",
                    _millions(row["user_rounds"] / row["seconds"]),
                )
                for row in rows.sort("mean").to_dicts()
            ],
        )


def _millions(speed: float) -> str:
    """Return a speed in millions, with a digit that is not 0."""
    return f"{speed / 1e6:,.1f} M" if speed >= 1e5 else f"{speed / 1e6:.4f} M"
