from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.chaos import Tree
from tests.support.stores import Stores

EXAMPLE = Path(__file__).parents[2] / "examples" / "news.py"


def test_the_example_app_gets_past_the_best_single_arm_and_the_doctor_finds_nothing(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    with Tree(sqlite_stores, tmp_path) as tree:
        tokens = {f"SHOAL_{role.upper()}_TOKEN": token for role, token in tree.tokens.items()}
        url = f"http://127.0.0.1:{tree.port}"
        sizes = ["--users", "280", "--min-group-size", "5", "--rounds", "30"]
        done, again, unknown = (
            subprocess.run(
                [sys.executable, str(EXAMPLE), "--url", url, *sizes], env=os.environ | environment,
                capture_output=True, text=True, timeout=240, check=False,
            )
            for environment in (tokens, tokens, tokens | {"SHOAL_OPERATOR_TOKEN": "unknown"})
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "--campaign must be a new one; 'news' exists\n"
    assert unknown.stderr == "A valid token is needed.\n"
    said = re.search(r"smallest total ever released: (\d+) readers", done.stdout)
    assert said is not None
    assert int(said[1]) >= 5
    doctor = subprocess.run(
        [sys.executable, "-m", "shoal.cli", "doctor", "--json", "--data", str(tmp_path)],
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    checks = {found["check"]: found["fault"] for found in json.loads(doctor.stdout)}
    assert checks["campaign news: 30 rounds are anonymous, with no noise"] == ""
    assert set(checks.values()) == {""}


def test_the_example_app_without_tokens_says_which_it_needs() -> None:
    mine = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], env=mine, capture_output=True, text=True, timeout=240,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("SHOAL_OPERATOR_TOKEN, SHOAL_APP_TOKEN, SHOAL_ANALYST_TOKEN must")
