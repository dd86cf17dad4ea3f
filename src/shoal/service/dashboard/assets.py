"""Stylesheet, scripts and icon: compressed once, cached by browsers under their content's hash.

The script that draws charts is Vega as vl-convert bundles it, never shipped. To build it takes
seconds and starts a JavaScript engine, so that is done once per version, in one separate process
however many ask for it; the result is kept in the user's cache folder.
"""

import asyncio
import gzip
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from shoal.files import write_atomically
from shoal.service.problems import BUSY, NOT_FOUND, ProblemError

router = APIRouter(prefix="/static", include_in_schema=False)

CHARTS = "charts.js"  # made at run time
MAX_WAIT_SECONDS = 10.0  # that a request waits for a file that is being made
MAX_BUILD_SECONDS = 120.0
MEDIA_TYPES = {
    "shoal.css": "text/css; charset=utf-8",
    "shoal.js": "text/javascript; charset=utf-8",
    "forms.js": "text/javascript; charset=utf-8",
    CHARTS: "text/javascript; charset=utf-8",
    "favicon.svg": "image/svg+xml",
}
_BUILD = """
import sys, vl_convert
sys.stdout.write(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
"""
_BUNDLE_VERSION = version("vl-convert-python")

log = logging.getLogger("shoal.service")


class Asset(NamedTuple):
    """A file as it is sent, plain or compressed."""

    plain: bytes
    compressed: bytes
    tag: str


class SingleFlight:
    """Makes each value once, in a thread of its own, however many ask for it at a time.

    One that could not be made is tried again when it is next asked for.
    """

    def __init__(self, make: Callable[[str], Asset]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._values: dict[str, Future[Asset]] = {}

    def get(self, name: str) -> Future[Asset]:
        """Return a value that is there, or will be."""
        with self._lock:
            value = self._values.get(name)
            if value is None or (value.done() and value.exception() is not None):
                value = self._values[name] = Future()
                threading.Thread(target=self._run, args=(name, value), daemon=True).start()
            return value

    def _run(self, name: str, value: Future[Asset]) -> None:
        try:
            value.set_result(self._make(name))
        except Exception as error:
            log.error("%s can't be made: %s", name, type(error).__name__)
            value.set_exception(error)


def make_asset(name: str) -> Asset:
    """Return a file, compressed."""
    if name == CHARTS:
        compressed = _load_charts()
        plain = gzip.decompress(compressed)
    else:
        plain = (files("shoal.service.dashboard") / "static" / name).read_bytes()
        compressed = _compress(plain)
    return Asset(plain, compressed, sha256(plain).hexdigest()[:16])


_assets = SingleFlight(make_asset)


def load(name: str) -> Asset:
    """Return a file as soon as it is there."""
    return load_soon(name).result()


def load_soon(name: str) -> Future[Asset]:
    """Return a file that is there, or will be."""
    return _assets.get(name)


def address(name: str) -> str:
    """Return a file's address, which changes with its content."""
    tag = _BUNDLE_VERSION if name == CHARTS else load(name).tag  # no page waits for the build
    return f"/static/{name}?v={tag}"


@router.get("/{file}")
async def read_asset(file: str, request: Request) -> Response:
    """Read a file; whoever asks for the chart script while it is built does not wait for long."""
    if file not in MEDIA_TYPES:
        raise ProblemError(NOT_FOUND)
    loading = asyncio.wrap_future(load_soon(file))
    try:
        body, compressed, tag = await asyncio.wait_for(asyncio.shield(loading), MAX_WAIT_SECONDS)
    except (TimeoutError, OSError, subprocess.SubprocessError):
        raise ProblemError(BUSY) from None
    headers = {
        "ETag": f'"{tag}"',
        "Cache-Control": "public, max-age=31536000, immutable",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        body, headers["Content-Encoding"] = compressed, "gzip"
    return Response(body, headers=headers, media_type=MEDIA_TYPES[file])


def prepare_charts() -> None:
    """Begin to build the script where no earlier process has; the first page would wait for it."""
    if not _charts_file().exists():
        load_soon(CHARTS)


def _charts_file() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "shoal" / f"charts-{_BUNDLE_VERSION}.js.gz"


def _load_charts() -> bytes:
    """Return the script, compressed; the first call on a machine builds it."""
    file = _charts_file()
    try:
        return file.read_bytes()
    except OSError:
        command = [sys.executable, "-c", _BUILD]
        script = _compress(
            subprocess.check_output(command, stdin=subprocess.DEVNULL, timeout=MAX_BUILD_SECONDS)
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, script, suffix=f".{os.getpid()}")
    except OSError:
        log.warning("the chart script can't be cached in %s", file.parent)
    return script


def _compress(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)
