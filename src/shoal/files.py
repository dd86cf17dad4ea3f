"""Atomic and durable writes: a file is there whole or not at all, even if the machine stops."""

import os
from pathlib import Path

TEMPORARY = ".part"
"""Ends the name of a file that is being written; what a killed process leaves has it too."""


def write_atomically(
    path: Path,
    data: bytes,
    *,
    mode: int = 0o666,
    overwrite: bool = True,
    suffix: str = TEMPORARY,
) -> None:
    """Write a temporary file beside ``path``, sync it, rename it, sync the folder.

    ``mode`` is less the process's umask. Without ``overwrite`` a file that exists raises
    ``FileExistsError``. ``suffix`` ends the temporary file's name; processes that may write the
    same file at the same time need one each.
    """
    part = path.with_name(path.name + suffix)
    part.unlink(missing_ok=True)  # left by a killed process
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            part.replace(path)
        else:
            path.hardlink_to(part)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make names that were added to or removed from a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
