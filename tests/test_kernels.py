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
CALLEE = "grouping.py"
CALLER = """
import numpy as np
from shoal.policies.pooled.thompson import _return_unseen
arms = np.array([1, 2, 2], np.int32)
_return_unseen(np.array([[0.1, 0.2, 0.9]] * 3), arms, 2)
print(arms.tolist())
"""
PLAYED = "[2, 2, 2]\n"


def run(folder: Path, *, cache: str = "cache") -> str:
    env = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / cache)}
    done = subprocess.run(
        [sys.executable, "-c", CALLER], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, whose kernels were compiled once."""
    folder = tmp_path_factory.mktemp("copy")
    unneeded = shutil.ignore_patterns("__pycache__", "service", "cli", "experiments", "figures")
    shutil.copytree(PACKAGE, folder / "shoal", ignore=unneeded)
    assert run(folder) == PLAYED
    return folder


def test_a_change_in_a_callee_of_another_file_changes_the_caller(copy: Path) -> None:
    source = copy / "shoal" / CALLEE
    text = source.read_text(encoding="utf-8")
    move = "arms[user] = favourite\n"
    assert text.count(move) == 1
    source.write_text(text.replace(move, "arms[user] = favourite - 1\n"))
    assert run(copy) == "[1, 2, 2]\n"
    source.write_text(text)
    assert run(copy) == PLAYED


def test_a_change_elsewhere_compiles_nothing_again() -> None:
    sources = kernels.all_sources(PACKAGE / "policies/shoal/joint/posterior.py")
    assert PACKAGE / "policies/shoal/joint/prior.py" in sources
    assert PACKAGE / "model/feedback.py" in sources, "imported by way of a package"
    caller = PACKAGE / "policies/shoal/joint/value_of_information.py"
    assert caller not in sources, "it imports the callee"
    others = ("service", "figures")  # a plan draws figures, which it imports when it does
    assert not any(other in path.parts for path in sources for other in others)


def test_an_unchanged_tree_finds_its_kernels_again(copy: Path) -> None:
    files = sorted((copy / "cache").rglob("*.nbc"))
    times = [file.stat().st_mtime_ns for file in files]
    assert run(copy) == PLAYED
    assert files == sorted((copy / "cache").rglob("*.nbc"))
    assert files
    assert times == [file.stat().st_mtime_ns for file in files]


def test_nothing_is_written_beside_the_sources(copy: Path) -> None:
    assert not list((copy / "shoal").rglob("*.nb[ic]"))


def test_kernels_run_where_no_cache_can_be_written(copy: Path) -> None:
    (copy / "file").write_text("a file where the folder should be")
    assert run(copy, cache="file") == PLAYED


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
