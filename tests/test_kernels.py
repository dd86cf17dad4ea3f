"""A compiled kernel is never older than the sources it was made from."""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import time
import typing
from pathlib import Path

import numpy as np
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


BORROWER = """
import numpy as np
from shoal.kernels import kernel

@kernel(borrows=True)
def first(numbers):
    return (2 * numbers)[0]

first(np.ones(3))
"""


def test_a_kernel_that_borrows_and_allocates_is_refused(copy: Path) -> None:
    (copy / "shoal/borrower.py").write_text(BORROWER)
    with pytest.raises(subprocess.CalledProcessError) as refused:
        call(copy, "import shoal.borrower", cache="borrower")
    assert "NRT required but not enabled" in refused.value.stderr


def test_a_kernel_that_borrows_gets_no_array_from_what_it_calls() -> None:
    """Such an array would never be given back, and no compiler says so."""
    found = {}
    for module in pkgutil.walk_packages(shoal.__path__, "shoal."):
        if not module.name.endswith("__main__"):
            for name, value in vars(importlib.import_module(module.name)).items():
                if hasattr(value, "targetoptions") and value.__module__ == module.name:
                    found[module.name, name] = value
    borrowing = [value for value in found.values() if not value.targetoptions["_nrt"]]
    assert len(borrowing) > 10
    for value in borrowing:
        function = value.py_func
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        for other in [value, *(kernel for kernel in called if hasattr(kernel, "py_func"))]:
            returned = typing.get_type_hints(other.py_func)["return"]
            parts = [returned, *typing.get_args(returned)]
            if isinstance(returned, type) and hasattr(returned, "_fields"):  # a NamedTuple
                parts += typing.get_type_hints(returned).values()
            assert not any(typing.get_origin(part) is np.ndarray for part in parts), (
                f"{function.__name__} gets an array from {other.py_func.__name__}"
            )


ALLOCATIONS = """
import numpy as np
from numba.core.runtime import rtsys
from shoal.environments import make_environment
from shoal.model import Problem
from shoal.policies import make_policy

for n_users, size in (10, 3), (40, 3), (300, 5):  # few for four arms, many, and a population
    problem = Problem(n_users, 4, size, horizon=300)
    rng = np.random.default_rng(0)
    means = rng.random((n_users, 4))
    environment = make_environment("bernoulli", problem, means, rng=rng)
    policy = make_policy("shoal", problem, rng=rng)
    held = []
    for _ in range(30):
        policy.tell(environment.play(policy.ask()))
        counts = rtsys.get_allocation_stats()
        held.append(counts.alloc - counts.free)
    print(counts.alloc > 1000 and max(held[10:]) <= max(held[:10]))
"""


def test_learners_give_back_all_that_they_allocate() -> None:
    env = os.environ | {"NUMBA_NRT_STATS": "1"}
    told = subprocess.run(
        [sys.executable, "-c", ALLOCATIONS], env=env, capture_output=True, text=True, check=True
    )
    assert told.stdout == "True\nTrue\nTrue\n"
