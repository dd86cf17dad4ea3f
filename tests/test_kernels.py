"""A compiled kernel is never older than the sources it was made from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shoal
from shoal import kernels

PACKAGE = Path(shoal.__file__).parent
# Both are compiled, in different files, and the second calls the first.
CALLEE = "policies/shoal/joint/posterior.py"
CALLER = """
import numpy as np
from shoal.policies.shoal.joint import posterior, prior, value_of_information as value
from shoal.policies.shoal.joint.mixture import mixed
belief = posterior.Belief(
    np.full((2, 3), 0.5), np.stack([np.eye(3) * 0.05 + 0.05] * 2), np.ones(2), np.ones(5),
    prior.uniform_prior((2,)),
)
mixture = mixed(belief)
prices = value.all_prices(belief, mixture, np.ones((2, 3), np.bool_), 100.0)
this_round = value.ShardRound(belief, mixture, prices, 2, 100.0, 1.0, np.zeros(3))
print(value.merit(this_round, 0, np.arange(2), np.random.default_rng(0)))
"""


def run(folder: Path, code: str) -> str:
    env = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    unneeded = shutil.ignore_patterns("__pycache__", "service", "cli", "experiments", "figures")
    shutil.copytree(PACKAGE, tmp_path / "shoal", ignore=unneeded)
    return tmp_path


def test_a_change_in_a_callee_of_another_file_changes_the_caller(copy: Path) -> None:
    before = run(copy, CALLER)
    source = copy / "shoal" / CALLEE
    text = source.read_text(encoding="utf-8")
    rate = "    return float(belief.tallies[REPORTS]"
    assert text.count(rate) == 1
    source.write_text(text.replace(rate, rate.replace("return", "return 0.5 *")))
    assert float(run(copy, CALLER)) == pytest.approx(0.5 * float(before))
    source.write_text(text)
    assert run(copy, CALLER) == before


def test_a_change_elsewhere_compiles_nothing_again() -> None:
    sources = kernels.all_sources(PACKAGE / CALLEE)
    assert PACKAGE / "policies/shoal/joint/prior.py" in sources
    assert PACKAGE / "model/feedback.py" in sources, "imported by way of a package"
    caller = PACKAGE / "policies/shoal/joint/value_of_information.py"
    assert caller not in sources, "it imports the callee"
    assert not any("service" in path.parts for path in sources)


def test_an_unchanged_tree_finds_its_kernels_again(copy: Path) -> None:
    run(copy, CALLER)
    files = sorted((copy / "cache").rglob("*.nbc"))
    times = [file.stat().st_mtime_ns for file in files]
    run(copy, CALLER)
    assert files == sorted((copy / "cache").rglob("*.nbc"))
    assert files
    assert times == [file.stat().st_mtime_ns for file in files]


def test_nothing_is_written_beside_the_sources(copy: Path) -> None:
    run(copy, CALLER)
    assert not list((copy / "shoal").rglob("*.nb[ic]"))


def test_kernels_run_where_no_cache_can_be_written(copy: Path) -> None:
    (copy / "cache").write_text("a file where the folder should be")
    assert float(run(copy, CALLER)) > 0


def test_caches_that_nobody_uses_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    old, recent = tmp_path / "shoal/old", tmp_path / "shoal/recent"
    for folder, days in (old, kernels.DAYS_KEPT + 1), (recent, kernels.DAYS_KEPT - 1):
        folder.mkdir(parents=True)
        used = time.time() - days * 86_400
        os.utime(folder, (used, used))
    kernels.cache_folder.__wrapped__(Path(kernels.__file__))
    assert recent.is_dir()
    assert not old.exists()
