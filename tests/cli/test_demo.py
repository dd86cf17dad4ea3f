"""``shoal demo`` as a newcomer runs it: the real process tree, played over HTTP."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import Mock

import httpx
import numpy as np
import pytest
from click.testing import CliRunner

from shoal.cli.demo import MIN_ROUNDS, play
from shoal.cli.main import main
from shoal.cli.story import draw_story
from shoal.cli.watch import Watch
from shoal.service.dashboard.assets import CHARTS, load

SMALL = ["--users", "300", "--arms", "3", "--min-group-size", "20"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where everything temporary goes."""
    load(CHARTS)  # else a first run on a machine makes it, in one process more
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def processes(folder: Path) -> list[str]:
    """Everything that was started to keep temporary files there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}".encode() in entry.read_bytes():
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


def test_a_finite_run_plays_learns_and_leaves_nothing(folder: Path) -> None:
    done = CliRunner().invoke(main, ["demo", "--seconds", "2", "--json", *SMALL])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["rounds"] >= MIN_ROUNDS
    assert found["totals"] > 0
    assert found["smallest_group"] >= found["min_group_size"] == 20
    assert 0 < found["best_single_arm"] < found["full_knowledge"] < 1
    assert 0 < found["reward"] < 1
    assert 0 <= found["arms_in_use"] <= 3
    assert 0 <= found["favourite_share"] <= 1
    assert list(folder.iterdir()) == []
    assert processes(folder) == []


def test_a_slow_machine_plays_enough_rounds_to_learn_something() -> None:
    watch, analyst = Mock(rounds=0), Mock()

    def play_round(*arguments: object) -> None:
        watch.rounds += 1

    watch.play.side_effect = play_round
    play(watch, Mock(), analyst, seconds=1e-9, live=False)
    assert watch.rounds == MIN_ROUNDS == 40
    assert watch.add_release.call_count == MIN_ROUNDS - 1


def test_ctrl_c_ends_every_process_removes_the_folder_and_ends_the_story(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "pictures"
    demo = subprocess.Popen(
        [sys.executable, "-m", "shoal.cli", "demo", "--headless", "--seconds", "180", *SMALL,
         "--out", str(out)],
        env=os.environ | {"TMPDIR": str(folder), "COLUMNS": "100"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert demo.stdout is not None
    assert "A learning app sends each of its 300 learners" in demo.stdout.readline()
    assert "totals over at least 20 learners" in demo.stdout.readline()
    said = re.search(r"Watch it at (http://\S+)/ ", demo.stdout.readline())
    assert said is not None
    headers = {"Authorization": f"Bearer {demo.stdout.readline().strip()}"}
    assert demo.stdout.readline() == "It ends by itself; Ctrl-C ends it before.\n"
    ends = time.monotonic() + 120
    number = 0
    while number < 3 and time.monotonic() < ends:
        number = httpx.get(f"{said[1]}/v1/campaigns/demo", headers=headers).json()["round"]
        time.sleep(0.05)
    assert number >= 3
    assert len(processes(folder)) == 4  # the demo, a supervisor and two roles
    demo.send_signal(signal.SIGINT)
    text, err = demo.communicate(timeout=120)
    assert demo.returncode == 0, err
    assert "smallest group" in text
    for words in (
        "Learners who come back, round by round",
        "Who gets the reminder that suits them",
        "of the learners come back",
        "learners get the reminder that suits their taste",
        "no learner's response was stored",
    ):
        assert words in text
    assert {file.name for file in out.iterdir()} == {
        "learning.png", "learning.svg", "reminders.png", "reminders.svg",
    }  # fmt: skip
    assert "Traceback" not in err
    assert list(folder.iterdir()) == []
    assert processes(folder) == []


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--min-group-size", "4"], "4 is not in the range x>=5"),
        (["--seconds", "0"], "0.0 is not in the range x>0"),
        (["--users", "9"], "min_group_size must be between 1 and n_users=9; got 10"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_code_2(
    folder: Path, arguments: list[str], rule: str
) -> None:
    done = CliRunner().invoke(main, ["demo", *arguments])
    assert done.exit_code == 2
    assert rule in done.output
    assert list(folder.iterdir()) == []


def test_a_port_that_is_taken_is_refused(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(main, ["demo", "--port", str(port)])
    assert done.exit_code == 2
    assert f"port must be free; {port}" in done.output
    assert list(folder.iterdir()) == []


def test_a_taste_that_is_served_worse_than_by_chance_is_named(rng: np.random.Generator) -> None:
    story = draw_story(300, 3, rng=rng)
    watch = Watch(story, 0.3, 0.7, 20, rewards=[0.5], arms=story.taste.copy(), smallest=20)
    assert "not found yet" not in watch.sentences()[1]
    watch.arms = np.where(story.taste == 2, 0, story.taste).astype(np.int32)
    assert f"What suits {story.tastes[2]} is not found yet" in watch.sentences()[1]
