"""Run a group of recordings in a process whose arithmetic is the same on every x86-64 machine.

The last bits of a sum depend on how many numbers are added at once, which libraries choose by the
processor. So these are pinned to what every x86-64 processor since 2013 (Haswell) has:

- OpenBLAS, of NumPy and of SciPy: its Haswell kernels, on one thread;
- Numba: code for Haswell, with its features and no others;
- NumPy: none of the AVX-512 variants that it would choose at run time. NumPy warns of a name that
  it has no variant for, and ignores one that the processor lacks: so all that it has are named;
- Polars: one thread.

The C library's mathematical functions can't be pinned; those of glibc use FMA on all such machines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.arithmetic import pin_kernels

import shoal

ROOT = Path(__file__).parents[2]
SOURCES = Path(shoal.__file__).parent

Recording = dict[str, Any]

# Not ``-m``: each worker of a sweep would import the group again, and with it the service.
MAIN = """
from tests.recordings.{group} import record
from tests.recordings.pinned import answer
answer(record)
"""


def compute(group: str, *arguments: str) -> Recording:
    """Return what ``tests.recordings.<group>`` computes, by its key."""
    with TemporaryDirectory(prefix="shoal-recordings-") as folder:
        out = Path(folder, "out.json")
        command = [sys.executable, "-c", MAIN.format(group=group), str(out), *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{group} exited with {done.returncode}:\n{done.stderr[-4000:]}")
        recording: Recording = json.loads(out.read_text(encoding="utf-8"))
        return recording


def answer(record: Callable[..., Recording]) -> None:
    """Write what ``record`` computes to the file that ``compute`` has named."""
    Path(sys.argv[1]).write_text(json.dumps(record(*sys.argv[2:])), encoding="utf-8")


def _environment() -> dict[str, str]:
    pin_kernels()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
    variants = import_module("numpy._core._multiarray_umath").__cpu_dispatch__
    wide = [name for name in variants if name.startswith(("AVX512", "X86_V4"))]
    paths = [str(ROOT), str(SOURCES.parent), os.environ.get("PYTHONPATH", "")]
    return kept | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONHASHSEED": "0",
        "OPENBLAS_CORETYPE": "Haswell",
        "OPENBLAS_NUM_THREADS": "1",
        "NPY_DISABLE_CPU_FEATURES": " ".join(wide),
        "POLARS_MAX_THREADS": "1",
        "COLUMNS": "100",
    }
