"""A sweep's folder: finished cells, failures, progress, and a lock.

sweep.json            the configuration
cells/NAME.parquet    a finished cell
failed/NAME.json      why a cell failed, until it is done
progress.json         how far the running sweep is
lock                  held by the running sweep; the system releases it when that process dies
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from shoal.errors import InvalidInputError, ShoalError
from shoal.files import TEMPORARY, write_atomically

LOCK_TIMEOUT = 1.0
"""Seconds to wait for a lock that ``shoal status`` may hold for a moment."""


class SweepFolder:
    """The files of a sweep, and the rules for writing them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells, self.failed = path / "cells", path / "failed"

    @property
    def exists(self) -> bool:
        """Whether a sweep was ever started here."""
        return (self.path / "sweep.json").is_file()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Make the folder, hold its lock, and remove the temporary files of a killed sweep."""
        try:
            if self.path.exists() and not self.exists and any(self._other_files()):
                raise InvalidInputError(
                    "out must be a new folder or that of a sweep; "
                    f"{str(self.path)!r} holds other files."
                )
            for folder in (self.path, self.cells, self.failed):
                folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise InvalidInputError(
                "out must be a folder that can be written; "
                f"got {str(self.path)!r}: {error.strerror}."
            ) from None
        try:
            self._acquire(descriptor)
            for folder in (self.path, self.cells, self.failed):
                for left in folder.glob(f"*{TEMPORARY}"):
                    left.unlink()
            yield
        finally:
            os.close(descriptor)

    def _other_files(self) -> Iterator[Path]:
        ours = {"cells", "failed", "lock", "sweep.json", "progress.json"}
        return (p for p in self.path.iterdir() if p.name.removesuffix(TEMPORARY) not in ours)

    def _acquire(self, descriptor: int) -> None:
        end = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > end:
                    who = self.progress().get("pid", "another process")
                    raise InvalidInputError(
                        f"out must be used by one sweep at a time; {str(self.path)!r} is at work "
                        f"in process {who}."
                    ) from None
                time.sleep(0.05)

    def at_work(self) -> bool:
        """Whether a sweep runs here now: whether a process holds the lock."""
        try:
            descriptor = os.open(self.path / "lock", os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def configuration(self) -> dict[str, Any]:
        """Return the configuration that the sweep was begun with; version 0.1 tuned no options."""
        try:
            content = json.loads((self.path / "sweep.json").read_text("utf-8"))
        except (OSError, ValueError):
            content = None
        if not isinstance(content, dict):
            raise InvalidInputError(
                f"{str(self.path)!r} must be the folder of a sweep; got no sweep.json to read."
            )
        return {"tuned": False, **content}

    def done(self) -> set[str]:
        """Return the names of the finished cells."""
        return {path.stem for path in self.cells.glob("*.parquet") if _is_complete(path)}

    def failures(self) -> dict[str, dict[str, Any]]:
        """Return by cell why it failed."""
        return {
            p.stem: json.loads(p.read_text("utf-8")) for p in sorted(self.failed.glob("*.json"))
        }

    def copy_cell(self, name: str, other: SweepFolder) -> bool:
        """Copy a finished cell from another sweep's folder; return whether it has one."""
        source = other.cells / f"{name}.parquet"
        if not source.is_file() or not _is_complete(source):
            return False
        write_result(self.cells / source.name, source.read_bytes())
        return True

    def write_progress(self, content: Mapping[str, Any]) -> None:
        """Write the progress, for ``shoal status`` only: an error is ignored."""
        with suppress(OSError):
            write_atomically(self.path / "progress.json", _json(content))

    def progress(self) -> dict[str, Any]:
        """Return the last progress of the running sweep, empty where there is none."""
        with suppress(OSError, ValueError):
            content: dict[str, Any] = json.loads((self.path / "progress.json").read_text("utf-8"))
            return content
        return {}

    def remove_progress(self) -> None:
        """Remove the progress: the sweep has ended."""
        with suppress(OSError):
            for left in self.path.glob("progress.json*"):
                left.unlink()


def write_result(path: Path, content: bytes | Mapping[str, Any]) -> None:
    """Write a file, or JSON, atomically; say what a failure means for the sweep."""
    try:
        write_atomically(path, content if isinstance(content, bytes) else _json(content))
    except OSError as error:
        raise ShoalError(
            f"{path} must be writable; got: {error.strerror}. "
            "What was written before is whole; the same command goes on."
        ) from None


def _is_complete(path: Path) -> bool:
    """A broken disk may leave an empty file; such a cell is played again."""
    return path.stat().st_size > 0


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
