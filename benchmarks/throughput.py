"""Pulls per second of UCB for 50 users and 5 arms, beside other bandit libraries.

The peers are installed for the benchmark only, each into an environment of its own. All are
measured in one run, in turns, several times; the best of each counts.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from benchmarks.peers import N_ARMS, N_USERS
from benchmarks.report import ROOT, page, table
from shoal.experiments import simulate

PEERS = {
    "river": ["river"],
    "mabwiser": ["mabwiser"],
    # Its last release needs a SciPy of its own time.
    "smpybandits": ["SMPyBandits", "scipy<1.12", "numpy<2"],
}
TURNS = 3
N_SHARDS = 20
HORIZON = 20_000


def main() -> None:
    pythons = {name: _install(name) for name in PEERS}
    found: dict[str, list[float]] = {"Shoal, 20 runs at once": [], "Shoal, one run": []}
    for turn in range(TURNS):
        found["Shoal, 20 runs at once"].append(_shoal(N_SHARDS, seed=turn))
        found["Shoal, one run"].append(_shoal(1, seed=turn))
        for name, python in pythons.items():
            if python:
                found.setdefault(name, []).append(_peer(python, name))
    best = {name: max(speeds) for name, speeds in found.items()}
    fastest = max(speed for name, speed in best.items() if not name.startswith("Shoal"))
    missing = [name for name, python in pythons.items() if python is None]
    page(
        "throughput",
        "Throughput",
        "make bench",
        f"UCB1 for {N_USERS} users with {N_ARMS} arms each, Bernoulli rewards; pulls per second, "
        f"best of {TURNS} turns, all in one run. Shoal checks every plan and measures regret while "
        "it plays; the peers do neither.",
        table(
            ["library", "pulls per second", "times the fastest peer"],
            [(n, s, s / fastest) for n, s in sorted(best.items(), key=lambda kv: -kv[1])],
        ),
        f"Could not be installed or run: {', '.join(missing)}." if missing else "All peers ran.",
    )


def _shoal(n_shards: int, *, seed: int) -> float:
    means = np.random.default_rng(seed).random((n_shards, N_USERS, N_ARMS))
    simulate("ucb", means, min_group_size=1, horizon=10)
    run = simulate("ucb", means, min_group_size=1, horizon=HORIZON, seed=seed)
    return n_shards * N_USERS * HORIZON / run.seconds


def _install(name: str) -> Path | None:
    """Make the peer's environment; None where it can't be had on this machine."""
    folder = ROOT / "build" / "peers" / name
    python = folder / "bin" / "python"
    script = [str(python), "-c", "import benchmarks.peers"]
    try:
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            install = [str(python), "-m", "pip", "install", "--quiet", *PEERS[name]]
            subprocess.run(install, check=True, capture_output=True)
        subprocess.run(script, check=True, cwd=ROOT, capture_output=True)
        _peer(python, name)
    except (subprocess.CalledProcessError, ValueError):
        return None
    return python


def _peer(python: Path, name: str) -> float:
    done = subprocess.run(
        [str(python), "benchmarks/peers.py", name],
        check=True,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.split()[-1])
