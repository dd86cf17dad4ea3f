"""``shoal simulate``: one policy, once; of very many users, shard by shard."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from shoal.arrays import FloatArray
from shoal.cli.options import (
    engine_options,
    json_option,
    means_option,
    play_options,
    policy_options,
    problem_options,
    settings,
)
from shoal.errors import InvalidInputError

if TYPE_CHECKING:
    from shoal.cli.console import Update
    from shoal.experiments import Run


@click.command(name="simulate")
@click.argument("policy", default="shoal")
@click.option("--instance", default="uniform", show_default=True, help="Class of the instance.")
@problem_options
@play_options
@means_option
@policy_options
@click.option(
    "--shards",
    "n_shards",
    type=int,
    help="Play the users in so many parts that learn alone, a few in memory at a time.",
)
@engine_options
@json_option
def command(
    policy: str,
    instance: str,
    n_users: int,
    n_arms: int,
    min_group_size: int,
    horizon: int,
    seed: int,
    rewards: str,
    participation: float,
    means_file: str | None,
    options: tuple[str, ...],
    n_shards: int | None,
    engine: str,
    address: str | None,
    n_workers: int | None,
    as_json: bool,
) -> None:
    """Run POLICY once and show its regret over time.

    POLICY is a name from "shoal policies", by default "shoal"; its options are set with
    -o NAME=VALUE. With --shards, users are drawn and played shard by shard, on this machine or on
    a Ray cluster.
    """
    from shoal.cli import console
    from shoal.engines import make_engine
    from shoal.experiments import simulate, simulate_shards

    given: dict[str, Any] = {
        "min_group_size": min_group_size,
        "horizon": horizon,
        "rewards": rewards,
        "participation": participation,
        "seed": seed,
        "options": settings(options),
        "n_checkpoints": 10,
    }
    runner = make_engine(engine, n_workers=n_workers, address=address)
    if n_shards is None:
        if engine != "local" or n_workers is not None:
            raise InvalidInputError("--engine and --workers need --shards; got none.")
        means = _means(means_file, instance, n_users, n_arms, seed)
        with console.progress(policy) as progress:
            run = simulate(policy, means, **given, progress=_adding(progress, horizon))
    else:
        if means_file:
            raise InvalidInputError(
                f"--means must be left out beside --shards, which draws users; got {means_file!r}."
            )
        with console.progress(policy) as progress:
            run = simulate_shards(
                policy,
                instance=instance,
                n_users=n_users,
                n_arms=n_arms,
                n_shards=n_shards,
                engine=runner,
                progress=_adding(progress, n_shards * horizon),
                **given,
            )
    if as_json:
        click.echo(
            json.dumps(
                {
                    "policy": policy,
                    "regret": run.regret,
                    "rounds": run.rounds.tolist(),
                    "cumulative_regret": run.cumulative_regret.tolist(),
                    "smallest_group": run.smallest_group,
                    "withheld": run.withheld,
                    "seconds": run.seconds,
                }
            )
        )
        return
    _show(run)


def _means(
    means_file: str | None, instance: str, n_users: int, n_arms: int, seed: int
) -> FloatArray:
    from shoal.experiments.seeds import stream
    from shoal.instances import instance as draw
    from shoal.instances import load_means

    if means_file:
        return load_means(means_file)
    return draw(instance, n_users, n_arms, rng=stream(seed, "comparison", instance, 0))


def _adding(progress: Update, total: int) -> Callable[[int], None]:
    done = 0

    def tick(rounds: int) -> None:
        nonlocal done
        done += rounds
        progress("", done, total)

    return tick


def _show(run: Run) -> None:
    from shoal.cli import console

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
    console.out.print(
        f"smallest group seen: {run.smallest_group}; totals withheld: {run.withheld:,}; "
        f"{problem.n_users * int(run.rounds[-1]) / run.seconds / 1e6:.1f} million user-rounds/s"
        f"{' and worker' if shards else ''}",
        highlight=False,
    )
