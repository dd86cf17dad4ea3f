"""Run a group of recordings in a process of its own, with the arithmetic of ``tests.support``.

Polars runs on one thread: the order of its sums depends on it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.arithmetic import pin_arithmetic

import shoal

pin_arithmetic()
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
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}
    paths = [str(ROOT), str(SOURCES.parent), os.environ.get("PYTHONPATH", "")]
    return kept | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYTHONHASHSEED": "0",
        "POLARS_MAX_THREADS": "1",
        "COLUMNS": "100",
    }
