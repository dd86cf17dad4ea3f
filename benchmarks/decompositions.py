"""Decompositions side by side: the paper's, chance, and Euler; growth; the optimum; beta."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array

from benchmarks.report import page, table
from shoal.decompositions import Decomposition, decompose, euler_decomposition, is_decomposition
from shoal.decompositions.beta.max_beta import max_beta
from shoal.decompositions.beta.proof import Proof
from shoal.decompositions.beta.search import hardest_graph
from shoal.decompositions.random import draw

Active = NDArray[np.bool_]
Result = TypeVar("Result")

TEXTBOOK_SECONDS = 60.0
BETA_SECONDS = 5.0


def main() -> None:
    page(
        "decompositions",
        "Decompositions",
        "make bench",
        "Random active sets: each arm is active for each user with probability 1/2, and one more "
        "for certain. Times are the least of at least three runs, without compilation; those of "
        "the textbook LP and of the optimum are single runs.",
        "## The paper's LP against Euler",
        _against_the_paper(),
        "## As cheap as chance",
        _against_chance(),
        "## Growth",
        _growth(),
        "## The optimum",
        _optimum(),
        "## The open problem: how small can beta be?",
        _beta(),
    )


def _graph(n_users: int, n_arms: int, *, seed: int = 0) -> Active:
    rng = np.random.default_rng(seed)
    active = rng.random((n_users, n_arms)) < 0.5
    active[np.arange(n_users), rng.integers(n_arms, size=n_users)] = True
    return active


def _least_seconds(n_runs: int, run: Callable[[], Result]) -> tuple[Result, float]:
    times = []
    for _ in range(n_runs):
        start = perf_counter()
        result = run()
        times.append(perf_counter() - start)
    return result, min(times)


def _against_the_paper() -> str:
    active, demand, min_crowd = _graph(1000, 10), 1000, 5
    euler_decomposition(active, demand, min_crowd=min_crowd)

    def euler(levels: int) -> Callable[[], Decomposition]:
        return lambda: euler_decomposition(active, demand, min_crowd=min_crowd, levels=levels)

    def named(method: str) -> Callable[[], Decomposition]:
        return lambda: decompose(active, demand, min_crowd=min_crowd, method=method)

    runs: list[tuple[str, int, Callable[[], Decomposition]]] = [
        ("Euler, L = 8", 20, euler(8)),
        ("Euler, L = 10", 10, euler(10)),
        ("LP, warm (`lp`)", 3, named("lp")),
        ("`greedy`", 5, named("greedy")),
        ("`random`", 5, named("random")),
    ]
    rows: list[Sequence[object]] = []
    fastest = math.inf
    for name, n_runs, run in runs:
        decomposition, seconds = _least_seconds(n_runs, run)
        fastest = min(fastest, seconds) if name.startswith("Euler") else fastest
        certificate = is_decomposition(active, demand, decomposition, min_crowd=min_crowd)
        rows.append(
            [
                name,
                1000 * seconds,
                seconds / fastest,
                len(decomposition.repeats),
                decomposition.total,
                certificate.smallest_crowd,
                "yes" if certificate else certificate.reason,
            ]
        )
    n_vertices, done, seconds = _textbook(active, min_crowd)
    note = "" if done >= 1 - 1e-6 else f" (stopped at {100 * done:.0f} % of the weight)"
    rows.append(
        [
            f"LP, textbook{note}",
            1000 * seconds,
            seconds / fastest,
            n_vertices,
            "",
            "",
            "unchecked",
        ]
    )
    columns = [
        "method",
        "ms",
        "× Euler",
        "different ones",
        "assignments",
        "smallest crowd",
        "valid",
    ]
    text = (
        "1,000 users, 10 arms, C = 4 (crowds of at least 5), demand 1,000. *Textbook* is Corollary "
        "1 as it is written: a cold LP (HiGHS from SciPy) for any vertex on the face, in "
        "floating point. *Warm* is Shoal's: one HiGHS model that starts where it ended, in "
        "integers; it takes the vertex with the largest shares, which cuts the number of vertices "
        "and so the assignments that rounding up costs: fewer than Euler with L = 8, more than "
        "with L = 10."
    )
    return f"{text}\n\n{table(columns, rows)}"


def _textbook(active: Active, min_crowd: int) -> tuple[int, float, float]:
    """Decompose by cold LPs; return the vertices, the weight reached and the seconds."""
    start = perf_counter()
    left = active / active.sum(axis=1, keepdims=True)
    user, arm = np.nonzero(active)
    pairs = np.arange(len(user))
    n_users, n_arms = active.shape
    rows = np.concatenate([user, n_users + arm])
    sums = csr_array(coo_array((np.ones(len(rows)), (rows, np.tile(pairs, 2)))))
    weight, n_vertices = 1.0, 0
    while weight > 1e-9 and perf_counter() - start < TEXTBOOK_SECONDS:
        tight = left.sum(axis=0) <= min_crowd * weight + 1e-9
        crowds = np.full(n_arms, float(min_crowd))
        answer = milp(
            np.zeros(len(user)),
            constraints=LinearConstraint(
                sums,
                np.concatenate([np.ones(n_users), crowds]),
                np.concatenate([np.ones(n_users), np.where(tight, crowds, np.inf)]),
            ),
            bounds=Bounds(0.0, (left[user, arm] > 1e-12).astype(float)),
        )
        if answer.x is None:
            break
        chosen = answer.x > 0.5
        vertex = np.zeros(active.shape)
        vertex[user[chosen], arm[chosen]] = 1.0
        crowd = vertex.sum(axis=0)
        slack = (left.sum(axis=0) - min_crowd * weight)[crowd > min_crowd]
        step = min(
            left[vertex > 0].min(),
            (slack / (crowd[crowd > min_crowd] - min_crowd)).min(initial=weight),
        )
        left -= step * vertex
        weight -= step
        n_vertices += 1
    return n_vertices, 1 - weight, perf_counter() - start


def _against_chance() -> str:
    rows: list[Sequence[object]] = []
    rng = np.random.default_rng(0)
    for n_users, n_arms in ((100_000, 10), (100_000, 16), (100_000, 20), (1_000_000, 8)):
        active = _graph(n_users, n_arms)
        n_runs = 3 if n_users > 100_000 else 7
        decomposition: Decomposition | None = None
        euler, chance = math.inf, math.inf
        for _ in range(n_runs):
            start = perf_counter()
            decomposition = euler_decomposition(active, 256, min_crowd=5)
            euler = min(euler, perf_counter() - start)
            n_slots = len(decomposition.repeats)
            start = perf_counter()
            draw(active, n_slots, rng=rng)
            chance = min(chance, perf_counter() - start)
        assert decomposition is not None
        n_types = len(np.unique(active, axis=0))
        rows.append(
            [
                f"{n_users:,} × {n_arms}", n_types, len(decomposition.repeats),
                1000 * euler, 1000 * chance, euler / chance,
            ]
        )  # fmt: skip
    columns = ["users × arms", "types", "assignments", "Euler, ms", "chance, ms", "ratio"]
    text = (
        "Demand 256. *Chance* only draws as many assignments, vectorised, and meets no demand. "
        "Euler's are exact: every arm's load is floor or ceiling of its mean in every assignment. "
        "With few types nearly all users go by rotas; with 20 arms nearly every user is its own "
        "type, and all go by Euler tours."
    )
    return f"{text}\n\n{table(columns, rows)}"


def _growth() -> str:
    base = {"users": 20_000, "arms": 20, "slots": 128}
    steps = {
        "users": [5_000, 10_000, 20_000, 40_000, 80_000],
        "arms": [10, 20, 40, 80],
        "slots": [32, 64, 128, 256, 512],
    }
    rows: list[Sequence[object]] = []
    for name, values in steps.items():
        times = []
        for value in values:
            size = base | {name: value}
            active = _graph(size["users"], size["arms"])
            levels = int(math.log2(size["slots"]))
            run = partial(euler_decomposition, active, 1 << levels, min_crowd=5, levels=levels)
            times.append(_least_seconds(3, run)[1])
        exponent = float(np.polyfit(np.log(values), np.log(times), 1)[0])
        shown = ", ".join(f"{1000 * seconds:.0f}" for seconds in times)
        rows.append([name, ", ".join(f"{value:,}" for value in values), shown, exponent])
    columns = ["grows", "from … to", "ms", "fitted exponent"]
    text = (
        f"Euler from {base['users']:,} users, {base['arms']} arms and a demand of "
        f"{base['slots']}, one at a time. Near-linear means an exponent of about 1 in users and "
        "slots."
    )
    return f"{text}\n\n{table(columns, rows)}"


def _optimum() -> str:
    rows: list[Sequence[object]] = []
    for n_users, n_arms, min_crowd in (
        (1_000_000, 8, 5),
        (1_000_000, 8, 150_000),
        (60, 8, 12),
        (40, 6, 8),
    ):
        active = _graph(n_users, n_arms)
        best, seconds = _least_seconds(1, partial(max_beta, active, min_crowd=min_crowd))
        rows.append(
            [
                f"{n_users:,}", n_arms, min_crowd, len(best.graph.counts), best.beta, best.gap,
                len(best.set_weights), seconds,
            ]
        )  # fmt: skip
    columns = ["users", "arms", "least crowd", "types", "beta", "gap", "open sets", "seconds"]
    text = "The largest beta, with its duality gap: 0 means proven up to the solver's tolerance."
    return f"{text}\n\n{table(columns, rows)}"


def _beta() -> str:
    rows: list[Sequence[object]] = []
    for n_arms in range(2, 6):
        for cluster_size in range(2, 2 * n_arms + 1):
            rng = np.random.default_rng(0)
            covering = hardest_graph(n_arms, 1, cluster_size, seconds=BETA_SECONDS, rng=rng)
            worded = hardest_graph(
                n_arms, 1, cluster_size, seconds=BETA_SECONDS, rng=rng, exact=True
            )
            rows.append(
                [
                    n_arms, cluster_size, str(covering.guarantee), _bounds(covering.proof),
                    _bounds(worded.proof), len(covering.active),
                    "all graphs with K·U users" if covering.exhausted else "annealing",
                ]
            )  # fmt: skip
    columns = ["K", "U", "paper's 1/alpha", "beta found", "beta, paper's words", "users", "search"]
    text = (
        "C = 1. The smallest beta found over U-batched graphs, as a proven fraction, in "
        f"{BETA_SECONDS:g} seconds a cell and reading. In the paper's words beta·w must lie in "
        "P_C, which forbids a user more feedback than it wants; a decomposition does not, so the "
        "other column lets a point of P_C cover beta·w. Annealing proves nothing about the graphs "
        "it did not see."
    )
    return f"{text}\n\n{table(columns, rows)}"


def _bounds(proof: Proof) -> str:
    if proof.tight:
        return str(proof.lower)
    return f"{float(proof.lower):.4f} to {float(proof.upper):.4f}"


if __name__ == "__main__":
    main()
