"""Stylesheet, scripts and icon: compressed once, cached by browsers under their content's hash.

The script that draws charts is Vega as vl-convert bundles it, never shipped. To build it takes
seconds and starts a JavaScript engine, so that is done once per version, in a separate process; the
result is kept in the user's cache folder.
"""

import gzip
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from fastapi import APIRouter, Request, Response

from shoal.files import write_atomically
from shoal.service.problems import NOT_FOUND, ProblemError

router = APIRouter(prefix="/static", include_in_schema=False)

CHARTS = "charts.js"  # made at run time
MEDIA_TYPES = {
    "shoal.css": "text/css; charset=utf-8",
    "shoal.js": "text/javascript; charset=utf-8",
    CHARTS: "text/javascript; charset=utf-8",
    "favicon.svg": "image/svg+xml",
}
_BUILD = """
import sys, vl_convert
sys.stdout.write(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
"""
IMMUTABLE = "public, max-age=31536000, immutable"

log = logging.getLogger("shoal.service")


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent, plain or compressed."""

    media_type: str
    plain: bytes
    compressed: bytes
    tag: str


@lru_cache
def asset(name: str) -> Asset:
    """Return a file, compressed."""
    folder = files("shoal.service.dashboard") / "static"
    plain = _load_charts() if name == CHARTS else (folder / name).read_bytes()
    tag = sha256(plain).hexdigest()[:16]
    return Asset(MEDIA_TYPES[name], plain, gzip.compress(plain, 9, mtime=0), tag)


def address(name: str) -> str:
    """Return a file's address, which changes with its content."""
    if name == CHARTS:  # no page waits for the build
        return f"/static/{name}?v={_bundle_version()}"
    return f"/static/{name}?v={asset(name).tag}"


@router.get("/{file}")
def read_asset(file: str, request: Request) -> Response:
    """Read a file."""
    if file not in MEDIA_TYPES:
        raise ProblemError(NOT_FOUND)
    content = asset(file)
    headers = {
        "ETag": f'"{content.tag}"',
        "Cache-Control": IMMUTABLE,
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    if content.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(content.compressed, headers=headers, media_type=content.media_type)
    return Response(content.plain, headers=headers, media_type=content.media_type)


def _load_charts() -> bytes:
    """Return the script; the first call on a machine builds it."""
    file = _folder() / f"charts-{_bundle_version()}.js"
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


def _bundle_version() -> str:
    """Return the version of the package that builds the script."""
    return version("vl-convert-python")


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "shoal"


def _build() -> bytes:
    process = subprocess.run(
        [sys.executable, "-c", _BUILD],
        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    return process.stdout
