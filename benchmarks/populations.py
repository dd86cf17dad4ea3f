"""The flagship on large populations: where rewards are rare, and where its two learners meet.

Seeds are the regret benchmark's: nothing was tuned on them.
"""

from __future__ import annotations

import numpy as np

from benchmarks.regret import SEED, Means
from benchmarks.report import page, table
from shoal.engines import LocalEngine, Tick
from shoal.experiments import simulate
from shoal.experiments.statistics import mean_interval
from shoal.instances import clustered, uniform

N_DRAWS = 4
RATES = (0.015, 0.05, 0.2)
SIZES = (1, 2, 5, 20)
SEAM = [(kind, horizon) for kind in ("uniform", "clustered") for horizon in (2_000, 20_000)]
USERS = (250, 260, 1_000)


def main() -> None:
    tasks = [("gap", rate, size) for rate in RATES for size in SIZES]
    tasks += [(kind, horizon, n) for kind, horizon in SEAM for n in USERS]
    found = {tasks[index]: cell for index, cell in LocalEngine().run(measure, tasks)}
    page(
        "populations",
        "Large populations",
        "python -m benchmarks populations",
        "## Rare rewards and small groups",
        "Clustered populations of 2,000 users and 6 arms for 300 rounds: the share of the gap "
        "between the best single arm (0 %) and full knowledge of everyone (100 %) that `shoal` "
        f"closes over all rounds, the first ones included. {N_DRAWS} draws, mean and 95 % "
        "interval.",
        table(
            ["clicks", *(f"C = {size}" for size in SIZES)],
            [(f"{rate:.1%}", *(found["gap", rate, size] for size in SIZES)) for rate in RATES],
        ),
        "## The seam",
        "Up to 256 users a shard, `shoal` keeps the joint posterior of everyone; beyond, two "
        "numbers for each user and arm. Regret per user, K = 5, C = 4; clustered ones have rewards "
        f"of 20 %. {N_DRAWS} draws.",
        table(
            ["instances", "rounds", *(f"{n:,} users" for n in USERS)],
            [(kind, f"{horizon:,}", *(found[kind, horizon, n] for n in USERS))
             for kind, horizon in SEAM],
        ),
    )  # fmt: skip


def measure(task: tuple[str, float, int], tick: Tick) -> str:
    """Return one cell: the mean over draws with its 95 % interval."""
    kind, quantity, number = task
    if kind == "gap":
        values = [_gap(quantity, number, draw) for draw in range(N_DRAWS)]
    else:
        values = [_regret(kind, int(quantity), number, draw) for draw in range(N_DRAWS)]
    print(f"done: {task}", flush=True)
    interval = mean_interval(np.array(values))
    mean, half = interval.mean, interval.half
    return f"{100 * mean:.0f} ± {100 * half:.0f} %" if kind == "gap" else f"{mean:.0f} ± {half:.0f}"


def _gap(rate: float, size: int, draw: int) -> float:
    means = clustered(2_000, 6, rng=np.random.default_rng([SEED, 300, draw]), rate=rate)
    found = simulate("shoal", means, min_group_size=size, horizon=300, seed=SEED + draw)
    full = means.max(axis=1).sum()
    return 1 - float(found.regret / (300 * (full - means.sum(axis=0).max())))


def _regret(kind: str, horizon: int, n_users: int, draw: int) -> float:
    rng = np.random.default_rng([SEED, 400, draw])
    means: Means = uniform(n_users, 5, rng=rng)
    if kind == "clustered":
        means = clustered(n_users, 5, rng=rng, rate=0.2)
    found = simulate("shoal", means, min_group_size=4, horizon=horizon, seed=SEED + draw)
    return found.regret / n_users
