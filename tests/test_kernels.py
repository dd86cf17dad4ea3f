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
# Both are compiled, in different files, and the second calls the first. Modules of their own
# compile in a second what the package's would in ten.
CALLEE = """
from shoal.kernels import kernel

@kernel()
def twice(number: int) -> int:
    return 2 * number
"""
CALLER = """
from shoal.callee import twice
from shoal.kernels import kernel

@kernel()
def above(number: int) -> int:
    return twice(number) + 1
"""
CALL = "from shoal.caller import above; print(above(3))"
RESULT = "7\n"
WATCHED_CALL = """
from shoal import kernels
from shoal.caller import above

kernels.SHORT_SECONDS = -1.0
with {}kernels.compilation_notice():
    print(above(3))
"""


def run(folder: Path, *, cache: str = "cache") -> str:
    return call(folder, CALL, cache=cache).stdout


def call(folder: Path, code: str, *, cache: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / cache)}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what compiles, with two kernels that were compiled once."""
    folder = tmp_path_factory.mktemp("copy")
    package = folder / "shoal"
    package.mkdir()
    for name in ("__init__.py", "kernels.py"):
        shutil.copy(PACKAGE / name, package)
    (package / "callee.py").write_text(CALLEE)
    (package / "caller.py").write_text(CALLER)
    assert run(folder) == RESULT
    return folder


def test_a_change_in_a_callee_of_another_file_changes_the_caller(copy: Path) -> None:
    source = copy / "shoal/callee.py"
    source.write_text(CALLEE.replace("2 * number", "5 * number"))
    assert run(copy) == "16\n"
    source.write_text(CALLEE)
    assert run(copy) == RESULT


def test_a_change_elsewhere_compiles_nothing_again() -> None:
    source = PACKAGE / "policies/shoal/joint/posterior.py"
    sources = {Path(file) for file in kernels.closure(str(source))}
    assert PACKAGE / "policies/shoal/joint/prior.py" in sources
    assert PACKAGE / "model/feedback.py" in sources, "imported by way of a package"
    caller = PACKAGE / "policies/shoal/joint/value_of_information.py"
    assert caller not in sources, "it imports the callee"
    others = ("service", "figures")  # a plan draws figures, which it imports when it does
    assert not any(other in path.parts for path in sources for other in others)


def test_an_unchanged_tree_finds_its_kernels_again(copy: Path) -> None:
    files = sorted((copy / "cache").rglob("*.nbc"))
    times = [file.stat().st_mtime_ns for file in files]
    assert run(copy) == RESULT
    assert files == sorted((copy / "cache").rglob("*.nbc"))
    assert files
    assert times == [file.stat().st_mtime_ns for file in files]


def test_nothing_is_written_beside_the_sources(copy: Path) -> None:
    assert not list((copy / "shoal").rglob("*.nb[ic]"))


def test_kernels_run_where_no_cache_can_be_written(copy: Path) -> None:
    (copy / "file").write_text("a file where the folder should be")
    assert run(copy, cache="file") == RESULT


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


def test_a_program_says_once_that_it_compiles_and_nothing_where_there_is_a_cache(
    copy: Path,
) -> None:
    first, second = (call(copy, WATCHED_CALL.format(""), cache="notice") for _ in range(2))
    assert first.stderr == "compiling, once: the next start is quicker\n"
    assert second.stderr == ""
    assert first.stdout == second.stdout == RESULT


def test_a_program_says_nothing_where_somebody_else_watches(copy: Path) -> None:
    watched = WATCHED_CALL.format("kernels.on_compile(lambda: None), ")
    assert call(copy, watched, cache="watched").stderr == ""
