"""The distribution ``shoal-client``: small, and enough to report a click."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.support.live import learning, serve
from tests.support.service import users
from tests.support.stores import Stores

ROOT = Path(__file__).parents[2]

CLICK = """
import json, sys
from importlib.metadata import distributions
from shoal.client import Client

try:
    from shoal import simulate
except ImportError as error:
    missing = str(error)
url, token = sys.argv[1:]
with Client(url, token) as app:
    number, arm = app.assignment("news", "user-0")
    refused = app.report("news", number, {"user-0": 1.0})
names = sorted(item.metadata["Name"] for item in distributions())
path = sys.modules["shoal"].__file__
print(json.dumps({"arm": arm, "refused": refused, "packages": names, "path": path,
                  "missing": missing}))
"""


def test_the_client_alone_reports_a_click_from_an_empty_environment(
    tmp_path: Path,
) -> None:
    place = tmp_path / "environment"
    python = place / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *constraints, str(ROOT / "packaging/client")], check=True)
    stores = Stores(*(f"sqlite:///{tmp_path}/{role}.db" for role in ("aggregator", "learner")))
    with serve(stores) as live, learning(live):
        operator = live.client("operator")
        operator.create_campaign("news", arms=["a", "b"], min_group_size=3, seats=6)
        operator.enrol("news", users(6))
        operator.open_round("news", 1)
        command = [str(python), "-I", "-c", CLICK, live.url, live.tokens["app"]]
        done = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, timeout=240)
    answer = json.loads(done.stdout)
    assert answer["arm"] in ("a", "b")
    assert answer["refused"] == []
    assert answer["missing"].startswith("simulate must come from shoal; got shoal-client")
    assert Path(answer["path"]).is_relative_to(place)
    assert "shoal-client" in answer["packages"]
    assert len(answer["packages"]) <= 12
    files = [file for file in place.rglob("*") if file.is_file() and not file.is_symlink()]
    assert sum(file.stat().st_size for file in files) <= 40e6
