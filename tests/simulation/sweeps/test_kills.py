"""A sweep that is killed time after time ends with the records of one that was not."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.engines.test_local import until
from tests.simulation.sweeps.test_sweep import Here, records

from shoal.simulation.sweeps import read_configuration, status, sweep

N_KILLS = 10
CELLS = """
policies = ["random", "best-arm"]
instances = ["uniform", "linear"]
users = 10
arms = 3
min_group_size = 2
horizon = 4000
runs = 2
seed = [0, 1, 2, 3, 4, 5]
"""


def start(file: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "shoal.cli", "sweep", str(file), "--out", str(out),
         "--workers", "2", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_ten_kills_at_random_times_change_nothing(tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "killed"
    file.write_text(CELLS)
    chance = random.Random(10)
    written: dict[str, tuple[int, int]] = {}
    for life in range(N_KILLS):
        with start(file, out) as running:
            if life % 2:  # as soon as there is one more cell, or a moment later
                wait_for_more(out, len(written), running)
                time.sleep(chance.uniform(0.0, 0.05))
            else:
                time.sleep(chance.uniform(0.0, 1.5))
            running.send_signal(signal.SIGKILL)
        now = cells(out)
        assert written.items() <= now.items()  # what is written is never written again
        written = now
    assert 0 < len(written) < 24
    assert not out.exists() or not status(out).at_work
    with start(file, out) as running:
        said, _ = running.communicate(timeout=120)
    assert running.returncode == 0
    assert json.loads(said)["before"] == len(written)
    assert written.items() <= cells(out).items()
    sweep(read_configuration(file), tmp_path / "undisturbed", engine=Here())
    assert cells(out).keys() == cells(tmp_path / "undisturbed").keys()
    assert records(out).equals(records(tmp_path / "undisturbed"))
    assert not list(out.rglob("*.part"))


def wait_for_more(out: Path, n_cells: int, running: subprocess.Popen[str]) -> None:
    until(lambda: len(cells(out)) > n_cells or running.poll() is not None)


def cells(out: Path) -> dict[str, tuple[int, int]]:
    """Return for each finished cell what changes when a file is written anew."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in (out / "cells").glob("*.parquet")
    }


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    file.write_text(CELLS.replace("4000", "400000"))
    with start(file, out) as running:
        until(lambda: status_of(out).get("user_rounds_done", 0) > 0)
        found = status(out)
        assert found.at_work
        assert found.running == 2
        assert found.seconds_left is not None
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Stopped; the same command goes on with what is missing." in said
    assert "Traceback" not in said
    assert not status(out).at_work
    assert status(out).running == 0
    assert not (out / "progress.json").exists()


def status_of(out: Path) -> dict[str, int]:
    try:
        content: dict[str, int] = json.loads((out / "progress.json").read_text())
    except OSError:
        return {}
    return content
