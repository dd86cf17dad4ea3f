"""``shoal simulate``: one policy, once; of very many users, shard by shard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoal.cli import console, options
from shoal.cli.choices import NameChoice
from shoal.errors import InvalidInputError
from shoal.extras import missing

if TYPE_CHECKING:
    from shoal.engines import Engine
    from shoal.experiments import Run

ROUNDS_SHOWN = 10
ROUNDS_DRAWN = 200
"""Rounds at which a run is shown in the table, and in the figure."""


@click.command(name="simulate")
@click.argument("policy", type=NameChoice("policy"), default="shoal")
@click.option(
    "--instance", type=NameChoice("instance"), default="uniform", help="Class of the instance."
)
@options.problem
@options.rewards
@options.means
@options.of_policy
@click.option(
    "--shards",
    "n_shards",
    type=int,
    help="Play the users in so many parts that learn alone, a few in memory at a time.",
)
@options.engine
@options.out("folder", "A new folder for the run (JSON) and its figure (PNG, SVG).", figures=True)
@options.as_json
def command(
    policy: str,
    means_file: str | None,
    n_shards: int | None,
    engine: Engine,
    out: Path | None,
    as_json: bool,
    **experiment: Any,
) -> None:
    """Run POLICY once and show its regret over time.

    POLICY is a name from "shoal policies", by default "shoal", or module:Class for one of your own;
    its options are those that "shoal tune" chose, unless --untuned is given, and -o NAME=VALUE
    overrides them. With --shards, users are drawn and played shard by shard, on this machine or on
    a Ray cluster.
    """
    with console.loading():
        from shoal.experiments import simulate, simulate_shards
        from shoal.instances import load_means

    values = click.get_current_context().params
    if n_shards is None and (values["engine"] != "local" or values["n_workers"] is not None):
        raise InvalidInputError("--engine and --workers need --shards; got none.")
    if n_shards is not None and means_file:
        raise InvalidInputError(
            f"--means must be left out beside --shards, which draws users; got {means_file!r}."
        )
    experiment["n_checkpoints"] = ROUNDS_DRAWN if out else ROUNDS_SHOWN
    with console.progress(policy) as progress:
        tick = console.counter(progress, (n_shards or 1) * experiment["horizon"])
        if n_shards is not None:
            run = simulate_shards(
                policy, n_shards=n_shards, engine=engine, progress=tick, **experiment
            )
        elif means_file:
            experiment = options.beside_means(experiment)
            if "instance" in experiment:
                raise InvalidInputError(
                    f"--instance must be left out beside --means; got {experiment['instance']!r}."
                )
            run = simulate(policy, load_means(means_file), progress=tick, **experiment)
        else:
            run = simulate(policy, progress=tick, **experiment)
    if as_json:
        click.echo(json.dumps(_as_dict(run, *_points(run, ROUNDS_SHOWN))))
    else:
        _show(run)
    if out:
        _write(run, out)
        if not as_json:
            contents = "Run" if missing("figures") else "Run and figure"
            click.echo(f"{contents}: {out}")


def _points(run: Run, n_points: int) -> tuple[list[int], list[float]]:
    """Return at most so many of a run's rounds, evenly spread, with the regret up to each."""
    import numpy as np

    from shoal.experiments.run import spread_checkpoints

    rounds = spread_checkpoints(int(run.rounds[-1]), n_points)
    at = np.searchsorted(run.rounds, rounds)
    return run.rounds[at].tolist(), run.cumulative_regret[at].tolist()


def _as_dict(run: Run, rounds: list[int], regret: list[float]) -> dict[str, Any]:
    return {
        "policy": run.policy,
        "regret": run.regret,
        "rounds": rounds,
        "cumulative_regret": regret,
        "smallest_group": run.smallest_group,
        "withheld": run.withheld,
        "seconds": run.seconds,
    }


def _write(run: Run, out: Path) -> None:
    """Write a folder with the run as JSON and the figure of its regret over time."""
    from shoal.experiments.comparison import new_folder

    rounds, regret = _points(run, ROUNDS_DRAWN)
    with new_folder(out) as folder, console.waiting("writing"):
        text = json.dumps(_as_dict(run, rounds, regret))
        (folder / "run.json").write_text(text + "\n", encoding="utf-8")
        if not missing("figures"):
            import polars as pl

            from shoal.figures import regret_figure, save

            band = {"mean": regret, "low": regret, "high": regret}
            curve = pl.DataFrame({"policy": run.policy, "round": rounds, **band})
            save(regret_figure(curve, title=_title(run)), folder / "regret")


def _title(run: Run) -> str:
    problem = run.problem
    shards = f" in {problem.n_shards:,} shards" if problem.n_shards > 1 else ""
    return (
        f"{run.policy}: {problem.n_users:,} users{shards}, {problem.n_arms} arms, "
        f"groups of at least {problem.min_group_size}"
    )


def _show(run: Run) -> None:
    from shoal.experiments.setting import spell

    problem = run.problem
    console.table(
        _title(run),
        ["round", "regret so far", "per user and round"],
        [
            (t, regret, regret / (problem.n_users * t))
            for t, regret in zip(*_points(run, ROUNDS_SHOWN), strict=True)
        ],
    )
    if run.options:
        click.echo(f"options: {spell(run.options)}")
    smallest = run.smallest_group
    group = f"smallest group seen: {smallest}" if smallest else "no group was seen"
    click.echo(
        f"{group}; totals withheld: {run.withheld:,}; "
        f"{problem.n_users * int(run.rounds[-1]) / run.seconds:,.0f} user-rounds/s"
        f"{' and worker' if problem.n_shards > 1 else ''}"
    )
