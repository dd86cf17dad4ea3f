"""Where results go: refused before the work starts, not after it."""

import os
from pathlib import Path

from shoal.errors import InvalidInputError


def check_new(path: Path, kind: str) -> None:
    """Refuse a path for results, a new "file" or "folder", that exists or can't be written.

    The folder around it must be there: one that is made for a mistyped path is found by nobody.
    """
    if path.exists():
        raise InvalidInputError(f"out must be a new {kind}; {str(path)!r} exists.")
    check_folder(path)


def check_folder(path: Path) -> None:
    """Refuse a path whose folder does not exist or can't be written."""
    parent = path.absolute().parent
    if not parent.exists():
        raise InvalidInputError(
            f"out must lie in a folder that exists; {str(path.parent)!r} does not."
        )
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InvalidInputError(f"out must lie in a folder that can be written; got {str(path)!r}.")
