"""``shoal research explore-beta``: search for the graph that is hardest to decompose."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shoal.cli import console, options

if TYPE_CHECKING:
    from shoal.decompositions.beta.search import HardestGraph


@click.command(name="explore-beta")
@click.option("--arms", "n_arms", default=3, help="Arms K, 2 to 5.")
@click.option("--min-group-size", default=1, help="Least group C.")
@click.option("--cluster-size", default=2, help="U, at least C+1.")
@click.option("--seconds", default=10.0, help="Time to search for.")
@click.option("--seed", default=0, help="For the local search.")
@options.out("file", "A new JSON file for the hardest graph, its beta and the certificate.")
@options.as_json
def command(
    n_arms: int,
    min_group_size: int,
    cluster_size: int,
    seconds: float,
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Search for the U-batched graph with the smallest beta, the paper's open problem.

    Every decomposition of a graph needs at least 1/beta assignments per unit of demand. The paper
    guarantees beta ≥ 1/ceil(K(C+1)/U) and asks how small it can be. It is proved that K/(2K-1) is
    the smallest for U = C+1, and a bound for larger U. Tiny cases are searched exhaustively, up to
    renaming arms and users, then by local search until the time is over.
    """
    with console.loading():
        import numpy as np

        from shoal.decompositions.beta.search import SearchProgress, hardest_graph
        from shoal.model.numbers import positive_number

    positive_number("seconds", seconds)
    sizes = {"n_arms": n_arms, "min_group_size": min_group_size, "cluster_size": cluster_size}
    rng = np.random.default_rng(seed)
    with console.progress("searching") as progress:

        def show(at: SearchProgress) -> None:
            label = f"{at.phase}: {at.n_tried:,} graphs, beta {at.beta:.4f}"
            progress("", round(1000 * min(at.seconds, seconds)), round(1000 * seconds), label)

        hardest = hardest_graph(*sizes.values(), seconds=seconds, rng=rng, on_progress=show)
    proof = hardest.proof
    text = json.dumps({**sizes, **_as_dict(hardest)}, indent=2)
    if out:
        out.write_text(text + "\n", encoding="utf-8")
    if as_json:
        click.echo(text)
        return
    console.table(
        f"Hardest graph found: K = {n_arms}, C = {min_group_size}, U = {cluster_size}",
        ["beta", "as a number", "the paper guarantees", "proved", "users", "tried", "proof"],
        [
            (
                str(proof.lower),
                float(proof.lower),
                str(hardest.guarantee),
                str(hardest.proved),
                len(hardest.active),
                hardest.n_tried,
                "exact" if proof.tight else f"at most {proof.upper}",
            )
        ],
    )


def _as_dict(hardest: HardestGraph) -> dict[str, Any]:
    import numpy as np

    proof = hardest.proof
    return {
        "beta": str(proof.lower),
        "upper": str(proof.upper),
        "exact": proof.tight,
        "guarantee": str(hardest.guarantee),
        "proved": str(hardest.proved),
        "exhaustive": hardest.exhausted,
        "tried": hardest.n_tried,
        "active": [np.flatnonzero(row).tolist() for row in hardest.active],
        "certificate": {
            "open_sets": [np.flatnonzero(row).tolist() for row in proof.open_sets],
            "set_weights": proof.set_weights.astype(str).tolist(),
            "plays": proof.plays.astype(str).tolist(),
            "prices": proof.prices.astype(str).tolist(),
            "crowd_prices": proof.crowd_prices.astype(str).tolist(),
        },
    }
