"""``shoal simulate``: one policy, once; of very many users, shard by shard."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from shoal.cli import console, options
from shoal.errors import InvalidInputError

if TYPE_CHECKING:
    from shoal.engines import Engine
    from shoal.experiments import Run


@click.command(name="simulate")
@click.argument("policy", default="shoal")
@click.option("--instance", default="uniform", help="Class of the instance.")
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
@options.as_json
def command(
    policy: str,
    means_file: str | None,
    n_shards: int | None,
    engine: Engine,
    as_json: bool,
    **experiment: Any,
) -> None:
    """Run POLICY once and show its regret over time.

    POLICY is a name from "shoal policies", by default "shoal", or module:Class for one of your own;
    its options are those that "shoal tune" chose, unless --untuned is given, and -o NAME=VALUE
    overrides them. With --shards, users are drawn and played shard by shard, on this machine or on
    a Ray cluster.
    """
    from shoal.experiments import simulate, simulate_shards
    from shoal.instances import load_means

    values = click.get_current_context().params
    if n_shards is None and (values["engine"] != "local" or values["n_workers"] is not None):
        raise InvalidInputError("--engine and --workers need --shards; got none.")
    if n_shards is not None and means_file:
        raise InvalidInputError(
            f"--means must be left out beside --shards, which draws users; got {means_file!r}."
        )
    experiment["n_checkpoints"] = 10
    with console.progress(policy) as progress:
        tick = console.counter(progress, (n_shards or 1) * experiment["horizon"])
        if n_shards is not None:
            run = simulate_shards(
                policy, n_shards=n_shards, engine=engine, progress=tick, **experiment
            )
        elif means_file:
            del experiment["instance"]
            run = simulate(policy, load_means(means_file), progress=tick, **experiment)
        else:
            run = simulate(policy, progress=tick, **experiment)
    if as_json:
        answer = {
            "policy": policy,
            "regret": run.regret,
            "rounds": run.rounds.tolist(),
            "cumulative_regret": run.cumulative_regret.tolist(),
            "smallest_group": run.smallest_group,
            "withheld": run.withheld,
            "seconds": run.seconds,
        }
        click.echo(json.dumps(answer))
    else:
        _show(run)


def _show(run: Run) -> None:
    from shoal.experiments.setting import spell

    problem = run.problem
    shards = f" in {problem.n_shards:,} shards" if problem.n_shards > 1 else ""
    console.table(
        f"{run.policy}: {problem.n_users:,} users{shards}, {problem.n_arms} arms, "
        f"groups of at least {problem.min_group_size}",
        ["round", "regret so far", "per user and round"],
        [
            (int(t), float(regret), float(regret) / (problem.n_users * int(t)))
            for t, regret in zip(run.rounds, run.cumulative_regret, strict=True)
        ],
    )
    if run.options:
        click.echo(f"options: {spell(run.options)}")
    click.echo(
        f"smallest group seen: {run.smallest_group}; totals withheld: {run.withheld:,}; "
        f"{problem.n_users * int(run.rounds[-1]) / run.seconds / 1e6:.1f} million user-rounds/s"
        f"{' and worker' if shards else ''}"
    )
