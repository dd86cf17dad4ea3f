"""What an engine adds to a sweep of cells of about a second each.

Real cells go through the whole of a sweep, files included: the work is the time that the cells
themselves report. Cells that only sleep for a second show the engine alone, free of the noise of
a busy machine. SHOAL_BENCH_CELLS makes it shorter.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.report import page, table
from shoal.engines import Engine, LocalEngine, Tick
from shoal.engines.ray import RayEngine
from shoal.experiments import simulate
from shoal.experiments.sweep import Configuration, read_sweep, sweep

N_CELLS = int(os.environ.get("SHOAL_BENCH_CELLS", "200"))
N_WORKERS = 2
USERS, ARMS, LEAST = 1000, 10, 10


def main() -> None:
    horizon = _horizon_of_a_second()
    rows: list[list[object]] = []
    for name, engine in (
        ("local", LocalEngine(n_workers=N_WORKERS)),
        ("ray", RayEngine(n_workers=N_WORKERS)),
    ):
        begun = time.perf_counter()
        engine.capacity()  # joins or starts the cluster
        start = time.perf_counter() - begun
        for kind, measure in (("sleeping", _sleeping), ("real", _real(horizon))):
            wall, work = measure(engine)
            rows.append([name, kind, work, wall, f"{wall / work - 1:.1%}", f"{start:.1f} s"])
    page(
        "engines",
        "Engines",
        "make bench",
        f"{N_CELLS} cells of about one second each on {N_WORKERS} workers. *Sleeping* cells only "
        "wait for a second, in an engine alone. *Real* cells are simulations of "
        f"{USERS:,} users for {horizon:,} rounds in a whole sweep, every record kept on disk; "
        "their work is the time that they themselves report. Work is per worker; the overhead "
        "is what the time on the wall has above it, with the workers' start included. Ray's "
        "cluster starts once for a process, before that.",
        table(["engine", "cells", "work, s", "wall, s", "overhead", "cluster's start"], rows),
        "On every engine the records are the same bytes; a killed worker costs its unfinished "
        "cell alone ([how](../tutorials/sweeps.md)).",
    )


def _horizon_of_a_second() -> int:
    """Return the rounds that take about a second here, once everything is compiled."""
    means = np.full((USERS, ARMS), 0.5)
    for rounds in (100, 1000):
        run = simulate("random", means, min_group_size=LEAST, horizon=rounds)
    return max(100, int(1000 / run.seconds))


def _sleep(task: int, tick: Tick) -> int:
    time.sleep(1.0)
    tick(1)
    return task


def _sleeping(engine: Engine) -> tuple[float, float]:
    begun = time.perf_counter()
    done = list(engine.run(_sleep, range(N_CELLS), tick=lambda amount: None))
    assert len(done) == N_CELLS
    return time.perf_counter() - begun, N_CELLS / N_WORKERS


def _real(horizon: int) -> Callable[[Engine], tuple[float, float]]:
    def measure(engine: Engine) -> tuple[float, float]:
        grid = Configuration(
            policies=("random",),
            users=(USERS,),
            arms=(ARMS,),
            min_group_size=(LEAST,),
            horizon=(horizon,),
            seed=tuple(range(N_CELLS)),
            runs=1,
        )
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            outcome = sweep(grid, Path(folder) / "sweep", engine=engine)
            wall = time.perf_counter() - begun
            assert outcome.done == N_CELLS
            seconds = read_sweep(Path(folder) / "sweep").unique("cell")["seconds"].sum()
        return wall, float(seconds) / N_WORKERS

    return measure


if __name__ == "__main__":
    main()
