"""A population of ten million, shard by shard: time, memory, and how both grow.

Every size runs in a process of its own, which has played one shard before the clock starts. Time
is that of the processor, which a busy machine disturbs least.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from time import perf_counter, process_time

import numpy as np

from benchmarks.report import page, table
from shoal.engines import Engine, LocalEngine
from shoal.experiments import Run, simulate_shards

SIZES = (100_000, 1_000_000, 10_000_000)
SHARD = 100_000
SEED = 31_415


def main(sizes: Sequence[int] = SIZES) -> None:
    rows = []
    for n_users in sizes:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.shards", str(n_users)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        rows.append(json.loads(done.stdout))
        print(f"done: {n_users:,} users", flush=True)
    users, seconds = [row["users"] for row in rows], [row["processor"] for row in rows]
    exponent = np.polyfit(np.log(users), np.log(seconds), 1)[0]
    page(
        "shards",
        "Ten million users",
        "make bench",
        "The flagship on clustered populations, 10 arms, C = 20, 20 rounds, through shards of "
        f"{SHARD:,} users in one process. The peak is the most memory that the process had, "
        "Python and all libraries included.",
        table(
            ["users", "shards", "processor s", "wall s", "million user-rounds/s", "peak MB",
             "regret per user and round"],
            [
                (row["users"], row["users"] // SHARD, row["processor"], row["wall"],
                 row["users"] * 20 / row["processor"] / 1e6, row["peak"], row["regret"])
                for row in rows
            ],
        ),
        f"Fitted exponent of the processor's time in the number of users: {exponent:.3f}.",
        "## On Ray",
        _on_ray(),
    )  # fmt: skip


def play(n_users: int, engine: Engine) -> Run:
    return simulate_shards(
        "shoal", n_users=n_users, n_arms=10, n_shards=max(1, n_users // SHARD),
        min_group_size=20, horizon=20, seed=SEED, engine=engine,
    )  # fmt: skip


def measure(n_users: int) -> None:
    """Print what one size takes, as JSON."""
    engine = LocalEngine(n_workers=1)
    play(SHARD, engine)
    started, wall = process_time(), perf_counter()
    run = play(n_users, engine)
    print(
        json.dumps(
            {
                "users": n_users,
                "processor": process_time() - started,
                "wall": perf_counter() - wall,
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "regret": run.regret / (n_users * 20),
            }
        )
    )


def _on_ray() -> str:
    """Compare both engines on two workers, start included, and their results."""
    from shoal.engines.ray import RayEngine

    rows, curves = [], []
    for name, engine in (("local", LocalEngine(n_workers=2)), ("ray", RayEngine(n_workers=2))):
        start = perf_counter()
        curves.append(play(1_000_000, engine).curves.tobytes())
        rows.append((name, perf_counter() - start))
    same = "the same bytes" if curves[0] == curves[1] else "NOT the same bytes"
    return (
        "A million users in ten shards on two workers, start of the workers included. Each shard's "
        "actor leaves its state after every one of the 20 rounds. Ray gives its workers a low "
        "priority (niceness 15), so that a busy machine slows them more than local ones.\n\n"
        + table(["engine", "wall s"], rows)
        + f"\n\nBoth gave {same}."
    )


if __name__ == "__main__":
    measure(int(sys.argv[1]))
