from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.service.conftest import Stores
from tests.service.live import learning, serve

EXAMPLE = Path(__file__).parents[2] / "examples" / "news.py"


def test_the_example_app_gets_past_the_best_single_arm(sqlite_stores: Stores) -> None:
    with serve(sqlite_stores) as live, learning(live):
        tokens = {f"SHOAL_{role.upper()}_TOKEN": token for role, token in live.tokens.items()}
        sizes = ["--users", "200", "--min-group-size", "2", "--rounds", "120"]
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), "--url", live.url, *sizes, "--exploration", "0.15"],
            env=os.environ | tokens, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "smallest total of round 1: 3 readers" in done.stdout
