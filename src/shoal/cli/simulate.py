"""``shoal simulate``: one policy, once."""

from __future__ import annotations

import json

import click

from shoal.cli.options import (
    json_option,
    means_option,
    play_options,
    policy_options,
    problem_options,
    settings,
)


@click.command(name="simulate")
@click.argument("policy", default="shoal")
@click.option("--instance", default="uniform", show_default=True, help="Class of the instance.")
@problem_options
@play_options
@means_option
@policy_options
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
    as_json: bool,
) -> None:
    """Run POLICY once and show its regret over time.

    POLICY is a name from "shoal policies", by default "shoal"; its options are set with
    -o NAME=VALUE.
    """
    from shoal.cli import console
    from shoal.instances import instance as draw
    from shoal.instances import load_means
    from shoal.simulation import simulate
    from shoal.simulation.seeds import stream

    if means_file:
        means = load_means(means_file)
    else:
        rng = stream(seed, "comparison", instance, 0)
        means = draw(instance, n_users, n_arms, rng=rng)
    with console.progress(policy) as progress:
        done = 0

        def tick(rounds: int) -> None:
            nonlocal done
            done += rounds
            progress("", done, horizon)

        run = simulate(
            policy,
            means,
            min_group_size=min_group_size,
            horizon=horizon,
            rewards=rewards,
            participation=participation,
            seed=seed,
            options=settings(options),
            n_checkpoints=10,
            progress=tick,
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
    n_users, n_arms = means.shape
    console.table(
        f"{policy}: {n_users} users, {n_arms} arms, "
        f"groups of at least {run.problem.min_group_size}",
        ["round", "regret so far", "per user and round"],
        [
            (int(t), float(regret), float(regret) / (n_users * int(t)))
            for t, regret in zip(run.rounds, run.cumulative_regret, strict=True)
        ],
    )
    console.out.print(
        f"smallest group seen: {run.smallest_group}; totals withheld: {run.withheld:,}; "
        f"{n_users * horizon / run.seconds / 1e6:.1f} million user-rounds/s",
        highlight=False,
    )
