"""``shoal research decompose``: meet a demand for feedback by assignments, and verify them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from shoal.cli import console, options
from shoal.cli.choices import NameChoice
from shoal.errors import InvalidInputError
from shoal.extras import missing

if TYPE_CHECKING:
    from shoal.decompositions import Decomposition


@click.command(name="decompose")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--demand", type=int, help="Samples that each user wants; may stand in FILE.")
@click.option(
    "--min-crowd",
    default=5,
    help="Users on an arm that make an assignment informative: C+1, or 2C for pooled estimates.",
)
@click.option(
    "--method", type=NameChoice("method"), default="euler", help="How assignments are found."
)
@click.option("--seed", default=0, help="For the methods that draw.")
@options.out(
    "folder",
    "A new folder for the assignments (Parquet) and the picture of loads (PNG, SVG).",
    figures=True,
)
@options.as_json
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
    with console.loading():
        import numpy as np

        from shoal.decompositions import decompose, is_decomposition
        from shoal.decompositions.files import read_active, write_assignments
        from shoal.experiments.comparison import new_folder

    active, file_demand = read_active(file)
    demand = file_demand if demand is None else demand
    if demand is None:
        raise InvalidInputError("demand must be given, by --demand or in FILE; got none.")
    n_users, n_arms = active.shape
    with console.waiting(f"{method} for {n_users:,} users"):
        rng = np.random.default_rng(seed)
        decomposition = decompose(active, demand, min_crowd=min_crowd, method=method, rng=rng)
        certificate = is_decomposition(active, demand, decomposition, min_crowd=min_crowd)
    if out:
        with new_folder(out) as folder:
            write_assignments(decomposition, folder / "assignments.parquet")
            if not missing("figures"):
                _draw(decomposition, folder, n_arms, min_crowd, f"Crowds, {method}")
    summary = {
        "method": method,
        "users": n_users,
        "arms": n_arms,
        "demand": demand,
        "assignments": decomposition.total,
        "different": len(decomposition.repeats),
        "ratio": certificate.ratio,
        "smallest_crowd": certificate.smallest_crowd,
        "certified": bool(certificate),
        "reason": certificate.reason,
    }
    if as_json:
        click.echo(json.dumps(summary))
        return
    shown = ("assignments", "ratio", "different", "smallest_crowd")
    console.table(
        f"{method}: {n_users:,} users, {n_arms} arms",
        ["demand D", "assignments R", "R/D", "different", "smallest crowd", "certificate"],
        [(str(demand), *(summary[name] for name in shown), certificate.reason or "holds")],
    )
    if out:
        contents = "Assignments" if missing("figures") else "Assignments and picture"
        click.echo(f"{contents}: {out}")


def _draw(
    decomposition: Decomposition, folder: Path, n_arms: int, min_crowd: int, title: str
) -> None:
    """Draw how many users each assignment puts on each arm."""
    import numpy as np

    from shoal.figures import loads_figure, save

    loads = [np.bincount(row, minlength=n_arms) for row in decomposition.assignments]
    save(loads_figure(np.array(loads), min_crowd=min_crowd, title=title), folder / "loads")
