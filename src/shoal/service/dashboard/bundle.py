"""The script that draws charts: Vega as vl-convert bundles it, built at run time, never shipped.

The build takes seconds and starts a JavaScript engine, so it runs once per version, in a separate
process; the result is kept in the user's cache folder.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from shoal.files import write_atomically

log = logging.getLogger("shoal.service")


@lru_cache(maxsize=1)
def load() -> bytes:
    """Return the script; the first call on a machine builds it."""
    file = _folder() / f"charts-{bundle_version()}.js"
    try:
        return file.read_bytes()
    except OSError:
        script = _build()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, script, suffix=f".{os.getpid()}")
    except OSError:
        log.warning("the chart script can't be cached in %s", file.parent)
    return script


def bundle_version() -> str:
    """Return the version of the package that builds the script."""
    return version("vl-convert-python")


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "shoal"


def _build() -> bytes:
    process = subprocess.run(
        [sys.executable, "-m", "shoal.service.dashboard.bundle"],
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    return process.stdout


def main() -> None:
    """Print the script."""
    import vl_convert

    sys.stdout.write(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


if __name__ == "__main__":
    main()
