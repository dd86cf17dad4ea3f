"""``shoal decompose``: meet a demand for feedback by assignments, and verify them."""

from __future__ import annotations

import json
from pathlib import Path

import click

from shoal.cli.options import json_option


@click.command(name="decompose")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--demand", type=int, help="Samples that each user wants; may stand in FILE.")
@click.option(
    "--min-crowd",
    default=5,
    show_default=True,
    help="Users on an arm that make an assignment informative: C+1, or 2C for pooled estimates.",
)
@click.option(
    "--method",
    default="euler",
    show_default=True,
    help="euler, optimal, lp, blocks, greedy or random.",
)
@click.option("--seed", default=0, show_default=True, help="For the methods that draw.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="A new folder for the assignments (Parquet) and the picture of loads (PNG, SVG).",
)
@json_option
def command(
    file: str,
    demand: int | None,
    min_crowd: int,
    method: str,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Meet a demand for feedback by assignments of users to arms, and verify them.

    FILE holds each user's active arms: JSON ([[0, 2], [1], ...], or an object with "active" and
    "demand"), or CSV or Parquet with the columns user and arm.
    """
    import numpy as np

    from shoal.cli import console
    from shoal.decompositions import decompose, is_decomposition
    from shoal.decompositions.files import read_active, write_assignments
    from shoal.errors import InvalidInputError
    from shoal.experiments.records import check_new, new_folder

    if out:
        check_new(out, "folder")
    active, in_file = read_active(file)
    wanted = demand if demand is not None else in_file
    if wanted is None:
        raise InvalidInputError("demand must be given, by --demand or in FILE; got none.")
    with console.waiting(f"{method} for {len(active):,} users"):
        found = decompose(
            active, wanted, min_crowd=min_crowd, method=method, rng=np.random.default_rng(seed)
        )
        verdict = is_decomposition(active, wanted, found, min_crowd=min_crowd)
    if out:
        from shoal.figures import loads_figure, save

        n_arms = active.shape[1]
        loads = np.array([np.bincount(row, minlength=n_arms) for row in found.assignments])
        figure = loads_figure(loads, min_crowd=min_crowd, title=f"Crowds, {method}")
        with new_folder(out) as folder:
            write_assignments(found, folder / "assignments.parquet")
            save(figure, folder / "loads")
    summary = {
        "method": method,
        "users": active.shape[0],
        "arms": active.shape[1],
        "demand": wanted,
        "assignments": found.total,
        "different": len(found.repeats),
        "ratio": verdict.ratio,
        "smallest_crowd": verdict.smallest_crowd,
        "certified": bool(verdict),
        "reason": verdict.reason,
    }
    if as_json:
        click.echo(json.dumps(summary))
    else:
        console.table(
            f"{method}: {active.shape[0]:,} users, {active.shape[1]} arms",
            ["demand D", "assignments R", "R/D", "different", "smallest crowd", "certificate"],
            [
                (
                    str(wanted),
                    found.total,
                    verdict.ratio,
                    len(found.repeats),
                    verdict.smallest_crowd,
                    "holds" if verdict else verdict.reason,
                )
            ],
        )
        if out:
            console.out.print(f"Assignments and picture: {out}", highlight=False)
