"""A sweep that is killed time after time ends with the records of one that was not."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.engines.test_local import until
from tests.experiments.sweep.test_sweep import Here, records

from shoal.experiments.sweep import read_configuration, status, sweep

N_KILLS = 2  # one in the start, one after a cell is kept
CELLS = """
policies = ["random", "best-arm"]
instances = ["uniform", "linear"]
users = 10
arms = 3
min_group_size = 2
horizon = 6000
runs = 2
seed = [0, 1]
"""


def start(file: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "shoal.cli", "sweep", str(file), "--out", str(out),
         "--workers", "2", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def test_kills_at_random_times_change_nothing(tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "killed"
    file.write_text(CELLS)
    chance = random.Random(10)
    written: dict[str, tuple[int, int]] = {}
    for life in range(N_KILLS):
        with start(file, out) as running:
            # Somewhere in its start, or a moment after one more cell is kept.
            soon = chance.uniform(0.0, 2.0)
            wait_for_more(out, len(written), seconds=60.0 if life % 2 else soon)
            time.sleep(chance.uniform(0.0, 0.03))
            running.send_signal(signal.SIGKILL)
        assert running.returncode == -signal.SIGKILL
        now = cells(out)
        assert written.items() <= now.items()  # what is written is never written again
        written = now
    assert len(written) >= N_KILLS // 2
    assert not status(out).at_work
    with start(file, out) as running:
        said, _ = running.communicate(timeout=240)
    assert running.returncode == 0
    assert json.loads(said)["before"] == len(written)
    assert written.items() <= cells(out).items()
    sweep(read_configuration(file), tmp_path / "undisturbed", engine=Here())
    assert cells(out).keys() == cells(tmp_path / "undisturbed").keys()
    assert records(out).equals(records(tmp_path / "undisturbed"))
    assert not list(out.rglob("*.part"))


def test_a_kill_before_the_first_file_is_whole_locks_nobody_out(tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    file.write_text('policies = "random"\nhorizon = 20\nruns = 1\n')
    code = (
        "import os, signal; os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL);"
        "from shoal.cli.main import main; main()"
    )
    killed = subprocess.run(
        [sys.executable, "-c", code, "sweep", str(file), "--out", str(out)], check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert (out / "sweep.json.part").exists()
    assert sweep(read_configuration(file), out, engine=Here()).done == 1
    assert not list(out.rglob("*.part"))


def wait_for_more(out: Path, n_cells: int, *, seconds: float) -> None:
    end = time.monotonic() + seconds
    while len(cells(out)) == n_cells and time.monotonic() < end:
        time.sleep(0.01)


def cells(out: Path) -> dict[str, tuple[int, int]]:
    """Return for each finished cell what changes when a file is written anew."""
    return {
        path.name: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in (out / "cells").glob("*.parquet")
    }


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(tmp_path: Path) -> None:
    file, out = tmp_path / "sweep.toml", tmp_path / "out"
    file.write_text(CELLS.replace("6000", "600000"))
    with start(file, out) as running:
        until(lambda: status_of(out).get("user_rounds_done", 0) > 0)
        found = status(out)
        assert found.at_work
        assert found.running == 2
        assert found.seconds_left is not None
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to the workers too
        _, said = running.communicate(timeout=240)
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
