"""Compiled inner loops: Numba with a cache that sees every change.

Numba caches a function by its own file alone: after a change in a function that it calls from
another file, the old machine code would run on. So each module's kernels are cached in a folder
named by a hash of the module and of everything that it imports from Shoal, directly or not. The
folders lie below the user's cache directory (or ``NUMBA_CACHE_DIR``), so that a read-only
installation and an upgrade in place work too. Where nothing can be written, kernels are compiled
in each process.
"""

import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.event import Listener, install_listener

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent
IMPORT = re.compile(r"^from shoal\b\.?([\w.]*) import (\([^)]*\)|.*)|^import shoal", re.M)
"""Those at the top of a module: a kernel can use nothing that a function imports."""
_NAME = re.compile(r"\w+")

DAYS_KEPT = 30
"""Days after its last use that a cache of other sources is deleted."""


def kernel(
    *, fastmath: bool = False, threads: bool = False, borrows: bool = False
) -> Callable[[Kernel], Kernel]:
    """Compile a function on its first call; with ``threads``, several may run it at once.

    A function that ``borrows`` allocates no array, not even for an expression's value, and gets
    none from what it calls: it only uses those of its caller. So it counts no references, which
    in a short function of many arrays take more time than the work, most of all where threads
    count the same ones. One that allocates can't be compiled then.

    >>> @kernel()
    ... def twice(x: float) -> float:
    ...     return 2 * x
    >>> twice(1.5)
    3.0
    """

    def compile_lazily(function: Kernel) -> Kernel:
        source = Path(function.__code__.co_filename)
        folder = cache_folder(source) if source.is_file() else None
        settings: Any = numba.config
        chosen, settings.CACHE_DIR = settings.CACHE_DIR, str(folder or "")
        try:
            compile_as: Any = numba.njit  # its types leave out _nrt, the counting of references
            compiled = compile_as(
                cache=folder is not None, fastmath=fastmath, nogil=threads, _nrt=not borrows
            )
            return cast("Kernel", compiled(function))
        finally:
            settings.CACHE_DIR = chosen

    return compile_lazily


SHORT_SECONDS = 1.0
"""Compilation that takes no longer is not announced in a program."""

_watchers: list[Callable[[], None]] = []


@contextmanager
def on_compile(call: Callable[[], None]) -> Iterator[None]:
    """Call ``call`` while a function is compiled, in this process or in a worker of it.

    A function that is loaded from the cache is not compiled.
    """
    listen: Any = install_listener  # has no types
    _watchers.append(call)
    try:
        with listen("numba:compile", _Listener(call)):
            yield
    finally:
        _watchers.remove(call)


@contextmanager
def compilation_notice() -> Iterator[None]:
    """Print a line to standard error where compilation takes long and nobody else watches it."""
    if _watchers:  # a command has a line of its own; a worker tells its engine
        yield
        return
    start, announced = 0.0, False

    def announce() -> None:
        nonlocal start, announced
        start = start or time.monotonic()
        if not announced and time.monotonic() - start > SHORT_SECONDS:
            sys.stderr.write("compiling, once: the next start is quicker\n")
            sys.stderr.flush()
            announced = True

    with on_compile(announce):
        yield


def announce_compilation() -> None:
    """Tell those who watch that a worker compiles; its engine calls this."""
    for call in _watchers:
        call()


class _Listener(Listener):
    """Numba tells it of each function that it compiles, and of those inside."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def on_start(self, event: object) -> None:
        self._call()

    def on_end(self, event: object) -> None:
        pass


@cache
def cache_folder(source: Path) -> Path | None:
    """Return the folder for a module's compiled kernels, None if nothing can be written."""
    digest = hashlib.sha256()
    for file in sorted(closure(str(source))):
        digest.update(_content(file) + b"\0")
    try:
        base = Path(os.environ.get("NUMBA_CACHE_DIR") or _user_cache()) / "shoal"
        folder = base / digest.hexdigest()[:16]
        _delete_unused(base)
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except (OSError, RuntimeError):  # RuntimeError: a user without a home
        return None
    return folder if os.access(folder, os.W_OK) else None


def closure(source: str) -> set[str]:
    """Return the file of a module and those of all that it imports from Shoal, directly or not."""
    sources, queue = {source}, [source]
    while queue:
        new = _imports(queue.pop()) - sources
        sources |= new
        queue += new
    return sources


@cache
def _imports(source: str) -> frozenset[str]:
    """Return the files that a module imports from Shoal: modules, packages, submodules.

    Each start reads all of them: paths as text take a third of the time.
    """
    files: set[str] = set()
    for match in IMPORT.finditer(_content(source).decode()):
        module = "/".join([str(PACKAGE), *filter(None, (match[1] or "").split("."))])
        for target in (module, *(f"{module}/{name}" for name in _NAME.findall(match[2] or ""))):
            files |= {f"{target}.py", f"{target}/__init__.py"}
    return frozenset(filter(_is_file, files))


@cache
def _content(file: str) -> bytes:
    return Path(file).read_bytes()


@cache
def _is_file(file: str) -> bool:
    return os.access(file, os.R_OK)


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local")
    if sys.platform == "darwin":
        return Path.home() / "Library/Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@cache
def _delete_unused(base: Path) -> None:
    """Delete the caches that nobody has used for ``DAYS_KEPT``, once in a process."""
    oldest = time.time() - DAYS_KEPT * 86_400
    for folder in base.iterdir() if base.is_dir() else ():
        with suppress(FileNotFoundError):  # another process may delete it as well
            if folder.stat().st_mtime < oldest:
                shutil.rmtree(folder, ignore_errors=True)
