from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

import pytest

from shoal.files import TEMPORARY, open_atomically, write_atomically


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = tmp_path / "file"
    (tmp_path / f"file{TEMPORARY}").write_bytes(b"left by a killed process")
    write_atomically(file, b"first")
    write_atomically(file, b"second")
    assert file.read_bytes() == b"second"
    assert names(tmp_path) == ["file"]


def test_an_interrupted_write_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    write_atomically(file, b"first")

    def stop(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(file, b"second")
    assert file.read_bytes() == b"first"
    assert names(tmp_path) == ["file"]


def test_data_is_synced_before_the_rename_and_the_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, fsync, synced = tmp_path / "file", os.fsync, list[tuple[bool, bool]]()

    def record(descriptor: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), file.exists()))
        fsync(descriptor)

    monkeypatch.setattr("os.fsync", record)
    write_atomically(file, b"data")
    assert synced == [(False, False), (True, True)]


def test_a_secret_is_never_readable_by_others_nor_replaced(tmp_path: Path) -> None:
    file = tmp_path / "key"
    left = tmp_path / f"key{TEMPORARY}"
    left.touch(mode=0o666)
    write_atomically(file, b"key", mode=0o600, overwrite=False)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        write_atomically(file, b"other", mode=0o600, overwrite=False)
    assert file.read_bytes() == b"key"
    assert names(tmp_path) == ["key"]


def test_a_new_file_is_renamed_where_the_file_system_has_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    file = tmp_path / "file"
    write_atomically(file, b"first", overwrite=False)
    with pytest.raises(FileExistsError):
        write_atomically(file, b"second", overwrite=False)
    assert file.read_bytes() == b"first"
    assert names(tmp_path) == ["file"]


def test_a_block_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(file: IO[bytes]) -> None:
        file.write(b"half")
        raise RuntimeError

    with pytest.raises(RuntimeError), open_atomically(tmp_path / "file") as file:
        fail(file)
    assert names(tmp_path) == []
