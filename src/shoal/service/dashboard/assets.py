"""Stylesheet, scripts and icon: compressed once, cached by browsers under their content's hash."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter, Request, Response

from shoal.service.dashboard import bundle
from shoal.service.problems import NOT_FOUND, ProblemError

router = APIRouter(prefix="/static", include_in_schema=False)

CHARTS = "charts.js"  # made at run time
MEDIA_TYPES = {
    "shoal.css": "text/css; charset=utf-8",
    "shoal.js": "text/javascript; charset=utf-8",
    CHARTS: "text/javascript; charset=utf-8",
    "favicon.svg": "image/svg+xml",
}
IMMUTABLE = "public, max-age=31536000, immutable"


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
    plain = bundle.load() if name == CHARTS else (folder / name).read_bytes()
    tag = sha256(plain).hexdigest()[:16]
    return Asset(MEDIA_TYPES[name], plain, gzip.compress(plain, 9, mtime=0), tag)


def address(name: str) -> str:
    """Return a file's address, which changes with its content."""
    if name == CHARTS:  # no page waits for the build
        return f"/static/{name}?v={bundle.bundle_version()}"
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
