"""A sweep's folder: finished cells, written once and whole; failures; who is at work.

sweep.json            the configuration
cells/NAME.parquet    a finished cell
failed/NAME.json      why a cell failed, until it is done
progress.json         how far the running sweep is
lock                  held by the running sweep; the system lets go of it when that dies
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

PATIENCE = 1.0
"""Seconds to wait for a lock that somebody is only looking at."""

TEMPORARY = ".part"


class SweepFolder:
    """The files of a sweep, and the rules for writing them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cells = path / "cells"
        self.failed = path / "failed"

    @property
    def exists(self) -> bool:
        """Whether a sweep was ever begun here."""
        return (self.path / "sweep.json").is_file()

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Make the folder, hold its lock, and clean what a killed sweep left behind."""
        try:
            if self.path.exists() and not self.exists and any(self._strangers()):
                raise InvalidInputError(
                    "out must be a new folder or that of a sweep; "
                    f"{str(self.path)!r} holds other files."
                )
            for folder in (self.path, self.cells, self.failed):
                folder.mkdir(parents=True, exist_ok=True)
            held = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise InvalidInputError(
                "out must be a folder that can be written; "
                f"got {str(self.path)!r}: {error.strerror}."
            ) from None
        try:
            self._acquire(held)
            for folder in (self.path, self.cells, self.failed):
                for left in folder.glob(f"*{TEMPORARY}"):
                    left.unlink()
            yield
        finally:
            os.close(held)

    def _strangers(self) -> Iterator[Path]:
        ours = {"cells", "failed", "lock", "sweep.json", "progress.json"}
        return (p for p in self.path.iterdir() if p.name.removesuffix(TEMPORARY) not in ours)

    def _acquire(self, held: int) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        """Whether a sweep runs here now: whether somebody alive holds the lock."""
        try:
            held = os.open(self.path / "lock", os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(held)
        return False

    def configuration(self) -> dict[str, Any]:
        """Return the configuration that the sweep was begun with."""
        try:
            content = json.loads((self.path / "sweep.json").read_text("utf-8"))
        except (OSError, ValueError):
            content = None
        if not isinstance(content, dict):
            raise InvalidInputError(
                f"{str(self.path)!r} must be the folder of a sweep; got no sweep.json to read."
            )
        return content

    def done(self) -> set[str]:
        """Return the names of the finished cells."""
        return {path.stem for path in self.cells.glob("*.parquet") if _is_whole(path)}

    def failures(self) -> dict[str, dict[str, Any]]:
        """Return by cell why it failed."""
        return {
            p.stem: json.loads(p.read_text("utf-8")) for p in sorted(self.failed.glob("*.json"))
        }

    def write_cell(self, name: str, records: bytes) -> None:
        """Keep a finished cell, once and for ever."""
        write_whole(self.cells / f"{name}.parquet", records)

    def write_failure(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep why a cell failed."""
        write_whole(self.failed / f"{name}.json", _json(content))

    def forget_failure(self, name: str) -> None:
        """The cell is tried again."""
        (self.failed / f"{name}.json").unlink(missing_ok=True)

    def take_over(self, name: str, other: SweepFolder) -> bool:
        """Take a finished cell from another sweep's folder, if it is there."""
        source = other.cells / f"{name}.parquet"
        if not source.is_file() or not _is_whole(source):
            return False
        write_whole(self.cells / source.name, source.read_bytes())
        return True

    def write_configuration(self, content: Mapping[str, Any]) -> None:
        """Keep the configuration: from now on this is the folder of a sweep."""
        write_whole(self.path / "sweep.json", _json(content))

    def write_progress(self, content: Mapping[str, Any]) -> None:
        """Tell how far the sweep is; where that can't be written, no harm is done."""
        part = self.path / f"progress.json{TEMPORARY}"
        with suppress(OSError):
            part.write_bytes(_json(content))
            part.replace(self.path / "progress.json")

    def progress(self) -> dict[str, Any]:
        """Return what the running sweep told last, empty where nothing was."""
        with suppress(OSError, ValueError):
            content: dict[str, Any] = json.loads((self.path / "progress.json").read_text("utf-8"))
            return content
        return {}

    def forget_progress(self) -> None:
        """The sweep is over."""
        with suppress(OSError):
            for left in self.path.glob("progress.json*"):
                left.unlink()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, even if the machine stops."""
    part = path.with_name(path.name + TEMPORARY)
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError):
            raise ShoalError(
                f"{path} must be writable; got: {error.strerror}. "
                "What was written before is whole; the same command goes on."
            ) from None
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_whole(path: Path) -> bool:
    """A broken disk may leave a file with nothing in it; a cell like that is played again."""
    return path.stat().st_size > 0


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()
