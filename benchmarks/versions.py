"""Is this tree slower than an earlier one? Both are measured in turns, in one run.

``python -m benchmarks.versions TREE [CASE ...]`` compares with another checkout, which needs no
environment of its own: its sources are read beside the packages that are installed here. Ratios
are of speeds, this tree's over the other's, so that more than 1 is faster now; time is the
process's own but for the service's. Shown are the ratio of each tree's fastest turns, and of the
ratios of neighbouring turns the median, the lowest and the highest. It is not one of the
benchmarks that ``make bench`` runs, as there must be another tree.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import gettempdir

import numpy as np

from benchmarks.report import ROOT, table

TURNS = 7

SIMULATE = """
import numpy as np, shoal
from time import process_time
def play(policy, n_users, n_arms, size, horizon, n_shards=1, **options):
    means = np.random.default_rng(7).random((n_shards, n_users, n_arms))
    shoal.simulate(policy, means, min_group_size=size, horizon=20, options=options)
    start = process_time()
    shoal.simulate(policy, means, min_group_size=size, horizon=horizon, options=options)
    return n_shards * n_users * horizon / (process_time() - start)
"""
ROUNDS = """
import numpy as np
from time import process_time
from shoal.environments import make_environment
from shoal.instances import clustered
from shoal.model import Problem
from shoal.policies import make_policy
def play(policy, n_users=1_000_000, n_arms=10, n_rounds=10):
    rng = np.random.default_rng(7)
    problem = Problem(n_users, n_arms, 20, horizon=500)
    means = clustered(n_users, n_arms, rng=rng)
    environment = make_environment("bernoulli", problem, means, rng=rng)
    learner, seconds = make_policy(policy, problem, rng=rng), []
    for _ in range(n_rounds):
        start = process_time()
        plan = learner.ask()
        asked = process_time()
        feedback = environment.play(plan)
        played = process_time()
        learner.tell(feedback)
        seconds.append(asked - start + process_time() - played)
    return n_users / np.mean(seconds[3:])
"""
REPORTS = """
import os
os.environ["SHOAL_BENCH_SECONDS"] = "6"
from pathlib import Path
from tempfile import TemporaryDirectory
from benchmarks.service import stores, sustained
from shoal.service.embedded import embedded
def play(backend):
    with TemporaryDirectory() as folder, stores(backend, Path(folder)) as (_, settings):
        with embedded(settings=settings) as service:
            return sustained(service, Path(folder), 8)[0]
"""
DECOMPOSE = """
import numpy as np
from time import process_time
from shoal import decompose
def play(method, n_users, n_arms, demand):
    active = np.random.default_rng(7).random((n_users, n_arms)) < 0.5
    active[np.arange(n_users), np.arange(n_users) % n_arms] = True
    decompose(active, demand, min_crowd=5, method=method)
    start = process_time()
    for _ in range(3):
        decompose(active, demand, min_crowd=5, method=method)
    return 3 / (process_time() - start)
"""
CASES = {
    "ucb, one run": (SIMULATE, "'ucb', 50, 5, 1, 20_000"),
    "ucb, 20 runs at once": (SIMULATE, "'ucb', 50, 5, 1, 20_000, 20"),
    "shoal, 50 users": (SIMULATE, "'shoal', 50, 5, 4, 8_000"),
    "shoal, 200 users": (SIMULATE, "'shoal', 200, 5, 4, 300"),
    "shoal, 3,000 users": (SIMULATE, "'shoal', 3_000, 6, 20, 300"),
    "pooled-thompson, 50 users": (SIMULATE, "'pooled-thompson', 50, 5, 4, 8_000"),
    "elimination-euler, 50 users": (
        SIMULATE,
        "'elimination-euler', 50, 5, 4, 60_000, approximation_ratio=5.0, gamma=8.0",
    ),
    "pooled-elimination, 50 users": (SIMULATE, "'pooled-elimination', 50, 5, 4, 60_000, gamma=2.0"),
    "explore-then-commit, 50 users": (
        SIMULATE,
        "'explore-then-commit', 50, 5, 4, 60_000, exploration=0.18",
    ),
    "pooled-thompson, a million users": (ROUNDS, "'pooled-thompson'"),
    "shoal, a million users": (ROUNDS, "'shoal'"),
    "decompose by euler, 100,000 users": (DECOMPOSE, "'euler', 100_000, 10, 256"),
    "decompose by lp, 1,000 users": (DECOMPOSE, "'lp', 1_000, 10, 1000"),
    "reports, SQLite": (REPORTS, "'sqlite'"),
    "reports, PostgreSQL": (REPORTS, "'postgresql'"),
}


def main(other: Path, names: list[str]) -> None:
    unknown = set(names) - set(CASES)
    if unknown:
        sys.exit(f"case must be one of {', '.join(CASES)}; got {', '.join(sorted(unknown))}.")
    rows = []
    for name in names or CASES:
        code, arguments = CASES[name]
        for tree in (ROOT, other):  # compile what is compiled once
            _measure(tree, code, arguments)
        speeds: dict[Path, list[float]] = {ROOT: [], other: []}
        for turn in range(TURNS):
            for tree in (ROOT, other) if turn % 2 else (other, ROOT):
                speeds[tree].append(_measure(tree, code, arguments))
        fastest = max(speeds[ROOT]) / max(speeds[other])
        ratios = np.divide(speeds[ROOT], speeds[other]).tolist()
        rows.append((name, fastest, float(np.median(ratios)), min(ratios), max(ratios)))
        print(name, *(f"{ratio:.3f}" for ratio in sorted(ratios)), file=sys.stderr, flush=True)
    print(table(["case", "fastest turns", "median of turns", "lowest", "highest"], rows))


def _measure(tree: Path, code: str, arguments: str) -> float:
    """Return a speed of the sources in ``tree``."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"{code}\nprint(play({arguments}))"],
        cwd=tree,
        env={
            "PYTHONPATH": f"{tree}/src:{tree}", "PATH": "/usr/bin:/bin", "HOME": str(Path.home()),
            "XDG_RUNTIME_DIR": gettempdir(),
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{tree}: {done.stderr}")
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m benchmarks.versions TREE [CASE ...]")
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
