"""Atomic and durable writes: a file is there whole or not at all, even if the machine stops."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EEXIST
from pathlib import Path
from threading import get_native_id
from typing import IO

TEMPORARY = ".part"
"""Ends the name of a file that is being written; what a killed process leaves has it too."""


def own_suffix() -> str:
    """Return the end of a temporary file's name that no other thread or process writes to."""
    return f".{os.getpid()}-{get_native_id()}{TEMPORARY}"


def write_atomically(
    path: Path,
    data: bytes,
    *,
    mode: int = 0o666,
    overwrite: bool = True,
    suffix: str = TEMPORARY,
) -> None:
    """Write a file as ``open_atomically`` does."""
    with open_atomically(path, mode=mode, overwrite=overwrite, suffix=suffix) as file:
        file.write(data)


@contextmanager
def open_atomically(
    path: Path, *, mode: int = 0o666, overwrite: bool = True, suffix: str = TEMPORARY
) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path``; at the end sync it, rename it, sync the folder.

    ``mode`` is less the process's umask. Without ``overwrite`` a file that exists raises
    ``FileExistsError``. ``suffix`` ends the temporary file's name; processes that may write the
    same file at the same time need one each. Where the block fails, nothing is left.
    """
    part = path.with_name(path.name + suffix)
    part.unlink(missing_ok=True)  # left by a killed process
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            part.replace(path)
        else:
            _rename_to_new(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def _rename_to_new(part: Path, path: Path) -> None:
    try:
        path.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links, as of a USB stick
        if path.exists():
            raise FileExistsError(EEXIST, os.strerror(EEXIST), str(path)) from None
        part.rename(path)


def sync_folder(folder: Path) -> None:
    """Make names that were added to or removed from a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
