"""``shoal research decompose``: meet a demand for feedback by assignments, and verify them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli.options import json_option, out_option

if TYPE_CHECKING:
    from shoal.arrays import BoolArray
    from shoal.decompositions import Certificate, Decomposition


@click.command(name="decompose")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--demand", type=int, help="Samples that each user wants; may stand in FILE.")
@click.option(
    "--min-crowd",
    default=5,
    help="Users on an arm that make an assignment informative: C+1, or 2C for pooled estimates.",
)
@click.option("--method", default="euler", help="euler, optimal, lp, blocks, greedy or random.")
@click.option("--seed", default=0, help="For the methods that draw.")
@out_option(
    "folder", "A new folder for the assignments (Parquet) and the picture of loads (PNG, SVG)."
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
    from shoal.experiments.comparison import new_folder

    active, file_demand = read_active(file)
    demand = file_demand if demand is None else demand
    if demand is None:
        raise InvalidInputError("demand must be given, by --demand or in FILE; got none.")
    with console.waiting(f"{method} for {len(active):,} users"):
        rng = np.random.default_rng(seed)
        decomposition = decompose(active, demand, min_crowd=min_crowd, method=method, rng=rng)
        certificate = is_decomposition(active, demand, decomposition, min_crowd=min_crowd)
    if out:
        with new_folder(out) as folder:
            write_assignments(decomposition, folder / "assignments.parquet")
            _draw_loads(decomposition, active.shape[1], min_crowd, method, folder / "loads")
    if as_json:
        click.echo(json.dumps(_summary(active, demand, method, decomposition, certificate)))
        return
    console.table(
        f"{method}: {active.shape[0]:,} users, {active.shape[1]} arms",
        ["demand D", "assignments R", "R/D", "different", "smallest crowd", "certificate"],
        [
            (
                str(demand),
                decomposition.total,
                certificate.ratio,
                len(decomposition.repeats),
                certificate.smallest_crowd,
                "holds" if certificate else certificate.reason,
            )
        ],
    )
    if out:
        console.out.print(f"Assignments and picture: {out}", highlight=False)


def _summary(
    active: BoolArray,
    demand: int,
    method: str,
    decomposition: Decomposition,
    certificate: Certificate,
) -> dict[str, object]:
    return {
        "method": method,
        "users": active.shape[0],
        "arms": active.shape[1],
        "demand": demand,
        "assignments": decomposition.total,
        "different": len(decomposition.repeats),
        "ratio": certificate.ratio,
        "smallest_crowd": certificate.smallest_crowd,
        "certified": bool(certificate),
        "reason": certificate.reason,
    }


def _draw_loads(
    decomposition: Decomposition, n_arms: int, min_crowd: int, method: str, path: Path
) -> None:
    import numpy as np

    from shoal.figures import loads_figure, save

    rows = decomposition.assignments
    loads = np.array([np.bincount(row, minlength=n_arms) for row in rows])
    save(loads_figure(loads, min_crowd=min_crowd, title=f"Crowds, {method}"), path)
