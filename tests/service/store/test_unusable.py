"""Commands whose store, or whose file, can't be used: one line, exit code 2, nothing left."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.support.live import serve
from tests.support.service import users
from tests.support.stores import Stores

from shoal.cli.main import main

NOBODY = "postgresql://shoal:secret@127.0.0.1:9/shoal"


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, list(arguments))


def refused(done: Result, *words: str) -> None:
    """One line on standard error, with these words, and the exit code of a refusal."""
    assert done.exit_code == 2, (done.exit_code, done.output, done.exception)
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert done.stderr.startswith("Error: ")
    assert not [word for word in words if word not in done.stderr], done.stderr


def addresses(stores: Stores) -> dict[str, str]:
    return {
        "SHOAL_AGGREGATOR_DATABASE": stores.aggregator,
        "SHOAL_LEARNER_DATABASE": stores.learner,
    }


@contextmanager
def full_disk(*, after: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (after, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("place", ["no database", "no server"])
@pytest.mark.parametrize("command", ["backup", "restore", "relearn"])
def test_a_store_that_can_not_be_used_is_one_line(
    tmp_path: Path, sqlite_stores: Stores, place: str, command: str
) -> None:
    other = tmp_path / "other.db"
    other.write_text("a letter, of which SQLite makes nothing; " * 100)
    address = NOBODY if place == "no server" else f"sqlite:///{other}"
    away = {"SHOAL_LEARNER_DATABASE": address}
    backup = tmp_path / "backup"
    if command == "restore":
        sqlite_stores.open("learner").close()
        assert run("backup", "learner", str(backup), **addresses(sqlite_stores)).exit_code == 0
    arguments = ["news"] if command == "relearn" else ["learner", str(backup)]
    done = run(command, *arguments, **away)
    cause = "connection failed" if place == "no server" else "file is not a database"
    refused(done, "the learner's store at", "can't be used", cause)
    assert "secret" not in done.output
    assert backup.exists() == (command == "restore")


def test_doctor_says_why_a_store_does_not_answer(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    other.write_text("a letter, of which SQLite makes nothing; " * 100)
    other.chmod(0o600)
    done = run("doctor", "--role", "learner", SHOAL_LEARNER_DATABASE=f"sqlite:///{other}")
    assert done.exit_code == 1
    assert "FAULT the learner's store answers\n      file is not a database." in done.output


def test_a_backup_into_a_missing_folder_is_refused(sqlite_stores: Stores, tmp_path: Path) -> None:
    sqlite_stores.open("learner").close()
    file = tmp_path / "nowhere" / "backup"
    done = run("backup", "learner", str(file), **addresses(sqlite_stores))
    refused(done, "file must be in a folder that exists", str(file.parent))


def test_a_backup_that_does_not_fit_leaves_nothing_and_can_be_repeated(
    stores: Stores, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    arguments = ["backup", "aggregator", str(folder / "backup")]
    with serve(stores) as live:
        live.client("operator").create_campaign("news", arms=["a", "b"], min_group_size=4, seats=9)
        live.client("operator").enrol("news", users(9))
        with full_disk(after=200):
            done = run(*arguments, **addresses(stores))
        refused(done, "file must be a new file that can be written whole", "File too large")
        assert list(folder.iterdir()) == []
        assert run(*arguments, **addresses(stores)).exit_code == 0
        refused(run(*arguments, **addresses(stores)), "file must be a new file", "exists")
        assert [file.name for file in folder.iterdir()] == ["backup"]


def test_a_restore_that_does_not_fit_leaves_no_store(sqlite_stores: Stores, tmp_path: Path) -> None:
    sqlite_stores.open("learner").close()
    backup = str(tmp_path / "backup")
    run("backup", "learner", backup, **addresses(sqlite_stores))
    new = tmp_path / "new.db"
    with full_disk(after=5000):
        done = run("restore", "learner", backup, SHOAL_LEARNER_DATABASE=f"sqlite:///{new}")
    refused(done, f"the learner's store at {new} can't be used")
    assert not new.exists()
    done = run("restore", "learner", backup, SHOAL_LEARNER_DATABASE=f"sqlite:///{new}")
    assert done.exit_code == 0
    assert "If the aggregator's store is restored as well, nobody remembers" in done.output


def test_an_export_that_does_not_fit_leaves_nothing(sqlite_stores: Stores, tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    with serve(sqlite_stores) as live:
        live.client("operator").create_campaign("news", arms=["a", "b"], min_group_size=4, seats=9)
        live.work()
        arguments = ["export", "news", str(folder / "totals"), "--url", live.url]
        with full_disk(after=100):
            done = run(*arguments, SHOAL_TOKEN=live.tokens["analyst"])
        refused(done, "File too large")
        assert list(folder.iterdir()) == []
