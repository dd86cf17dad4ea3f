"""Threat 25: a copy of the whole folder, put back, plays no round again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from tests.service.test_serve import attempt
from tests.support.service import close, even, report, start, users

from shoal.errors import InvalidInputError
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.keys import COPIED, check_secrets, claim_key
from shoal.service.aggregator.witness import (
    WITNESS_UNSET,
    Statement,
    Witness,
    check,
    read_statement,
    warn_if_missing,
)
from shoal.service.doctor import examine
from shoal.service.problems import ProblemError
from shoal.service.process import _open_witness, open_store
from shoal.service.settings import load_settings
from shoal.service.store import Database
from shoal.service.store import aggregator as store
from shoal.wire import LearnerProgress


@contextmanager
def opened(folder: Path, *, boot: str = "one", witness: Path | None = None) -> Iterator[Aggregator]:
    """An aggregator as a process starts it."""
    database = open_store(f"sqlite:///{folder}/aggregator.db", "aggregator")
    found = Witness(witness) if witness else None
    witnessed = found is not None and found.knows
    key = claim_key(database, folder / "key", now=0, boot=boot, witnessed=witnessed)
    check_secrets(database, folder / "key.rounds", now=0, witnessed=witnessed)
    if found is None:
        warn_if_missing(database)
    else:
        found.reconcile(database, now=0)
    aggregator = Aggregator(database, key=key, secrets=folder / "key.rounds", witness=found)
    try:
        yield aggregator
    finally:
        aggregator.close()
        (folder / "aggregator.db.lock").unlink()  # as with a process that has ended


def first_half(folder: Path, witness: Path | None = None) -> None:
    with opened(folder, witness=witness) as aggregator:
        start(aggregator, even(12, size=4), least=4)
        report(aggregator, dict.fromkeys(users(6), 1.0))


def state(aggregator: Aggregator) -> str:
    aggregator.epochs.sync_learner({"news": LearnerProgress(1, 0)})
    return aggregator.rounds.get("news", 1).state


def put_back(copy: Path, folder: Path, how: str) -> None:
    if how == "the folder":
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
    else:  # over the files that are there
        shutil.copytree(copy, folder, dirs_exist_ok=True)
        for end in ("-wal", "-shm"):
            (folder / f"aggregator.db{end}").unlink(missing_ok=True)


@pytest.mark.parametrize("how", ["the folder", "file by file"])
@pytest.mark.parametrize("witnessed", [False, True], ids=["no witness", "witness"])
def test_threat_25_a_snapshot_restores_both_stores_and_the_key(
    tmp_path: Path, how: str, witnessed: bool
) -> None:
    folder, copy = tmp_path / "data", tmp_path / "copy"
    witness = tmp_path / "elsewhere.json" if witnessed else None
    first_half(folder, witness)
    shutil.copytree(folder, copy)
    with opened(folder, witness=witness) as aggregator:
        assert state(aggregator) == "open"  # an ordinary start goes on
        report(aggregator, dict.fromkeys(users(12), 1.0))
        assert sum(total.reporters for total in close(aggregator).totals) == 12
    put_back(copy, folder, how)
    with opened(folder, witness=witness) as aggregator:
        assert aggregator.rounds.get("news", 1).state == "abandoned"
        assert report(aggregator, {"user-11": 0.0}) == [(0, "late-report")]
        with aggregator.database.read() as connection:
            assert connection.execute(store.sums.select()).all() == []
            last = connection.execute(store.audit.select()).all()[-1]
        assert last.action == "round.abandon"


@pytest.mark.parametrize("how", ["the folder", "file by file"])
def test_threat_25_a_folder_put_back_is_told_also_where_no_round_had_reports(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder, copy = tmp_path / "data", tmp_path / "copy"
    with opened(folder) as aggregator:
        start(aggregator, even(12, size=4), least=4)
        close(aggregator)
    shutil.copytree(folder, copy)
    with opened(folder, boot="two"):  # an ordinary start, of the machine too
        assert "put back" not in caplog.text
    put_back(copy, folder, how)
    settings = load_settings(
        {"SHOAL_DATA": str(folder), "SHOAL_AGGREGATOR_KEY_FILE": str(folder / "key")}
    )
    found = [f.fault for f in examine(settings, "aggregator") if "put back" in f.fault]
    assert found == [COPIED]
    assert "If it was only moved, nothing is to be done" in COPIED
    with opened(folder) as aggregator:
        assert COPIED in caplog.text
        assert "campaign news: its last round in this folder is round 1" in caplog.text
        with aggregator.database.read() as connection:
            last = connection.execute(store.audit.select()).all()[-1]
        assert (last.action, last.details) == ("store.copied", '{"rounds":{"news":1}}')
        # The way that the warning names: round 2 was played after the copy was made.
        start(aggregator, even(12, size=4), least=4, number=2)
        assert aggregator.epochs.abandon("news", 2) == 1
    caplog.clear()
    with opened(folder):  # it was said, and the file is known now
        assert "put back" not in caplog.text
    assert not [f for f in examine(settings, "aggregator") if "put back" in f.fault]


def test_a_machine_that_has_started_since_abandons_what_has_sums(tmp_path: Path) -> None:
    first_half(tmp_path / "data")
    with opened(tmp_path / "data", boot="two") as aggregator:
        assert aggregator.rounds.get("news", 1).state == "abandoned"


def test_with_a_witness_a_round_survives_a_start_of_the_machine(tmp_path: Path) -> None:
    witness = tmp_path / "elsewhere.json"
    first_half(tmp_path / "data", witness)
    with opened(tmp_path / "data", boot="two", witness=witness) as aggregator:
        assert state(aggregator) == "open"
        report(aggregator, dict.fromkeys(users(12), 1.0))
        assert sum(total.total for total in close(aggregator).totals) == 12_000


def test_a_witness_tells_of_entries_that_were_cut_off(tmp_path: Path) -> None:
    witness = tmp_path / "elsewhere.json"
    first_half(tmp_path / "data", witness)
    with opened(tmp_path / "data", witness=witness) as aggregator:
        state(aggregator)
        close(aggregator)
        with aggregator.database.read() as connection:
            assert check(connection, read_statement(witness)) == ""
            ahead = Statement(audit=99, digest="00")
            assert "were there" in check(connection, ahead)
            other = msgspec.structs.replace(read_statement(witness), digest="00")
            assert "another log" in check(connection, other)


def test_a_new_witness_raises_no_alarm_and_an_older_store_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, copy, witness = tmp_path / "data", tmp_path / "copy", tmp_path / "elsewhere.json"
    with opened(folder, witness=witness):
        pass
    shutil.copytree(folder, copy)
    with opened(folder, witness=witness):  # of a store that was empty
        pass
    first_half(folder, witness)
    with opened(folder, witness=witness):
        assert "older than its witness" not in caplog.text
    put_back(copy, folder, "the folder")
    with opened(folder, witness=witness):
        assert "the store is older than its witness" in caplog.text


def test_a_start_without_the_witness_that_there_was_warns_and_the_doctor_finds_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, witness = tmp_path / "data", tmp_path / "elsewhere.json"
    settings = {"SHOAL_DATA": str(folder), "SHOAL_AGGREGATOR_KEY_FILE": str(folder / "key")}
    witnessed = settings | {"SHOAL_AGGREGATOR_WITNESS": str(witness)}

    def faults(environment: dict[str, str]) -> list[str]:
        findings = examine(load_settings(environment), "aggregator")
        return [finding.fault for finding in findings if "witness" in finding.fault]

    with opened(folder):
        pass
    assert faults(settings) == []  # it never had one
    for _ in range(2):
        with opened(folder, witness=witness) as aggregator, aggregator.database.read() as reading:
            actions = [row.action for row in reading.execute(store.audit.select())]
        assert actions == ["store.witnessed"]
    assert WITNESS_UNSET not in caplog.text
    assert (faults(settings), faults(witnessed)) == ([WITNESS_UNSET], [])
    with opened(folder):
        assert WITNESS_UNSET in caplog.text
    assert faults(settings) == [WITNESS_UNSET]


def test_a_witness_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    witness = tmp_path / "elsewhere" / "witness.json"
    witness.parent.mkdir()
    first_half(tmp_path / "data", witness)
    with opened(tmp_path / "data", witness=witness) as aggregator:
        state(aggregator)
        shutil.rmtree(witness.parent)
        with pytest.raises(ProblemError, match=r"What is away is the witness: .*No such file"):
            close(aggregator)


def test_the_doctor_finds_a_witness_that_is_away(tmp_path: Path) -> None:
    data, witness = tmp_path / "data", tmp_path / "elsewhere" / "witness.json"
    settings = load_settings(
        {
            "SHOAL_DATA": str(data),
            "SHOAL_AGGREGATOR_KEY_FILE": str(data / "key"),
            "SHOAL_AGGREGATOR_WITNESS": str(witness),
        }
    )

    def faults() -> list[str]:
        findings = examine(settings, "aggregator")
        return [finding.fault for finding in findings if "witness" in finding.check + finding.fault]

    with opened(data):
        pass
    assert "must be in a folder that is there" in "".join(faults())  # as a start says
    witness.parent.mkdir()
    assert faults() == ["", ""]  # the next start makes it
    with opened(data, witness=witness):
        pass
    assert faults() == ["", ""]
    witness.parent.rename(tmp_path / "away")
    assert "must be in a folder that is there" in "".join(faults())
    witness.parent.mkdir()  # where nothing is mounted
    assert f"there is no {witness}" in "".join(faults())
    witness.write_text("damaged")
    assert "must be a file by Shoal" in "".join(faults())


@pytest.mark.parametrize("linked", ["nothing", "the file", "its folder", "the data"])
def test_a_witness_in_the_folder_is_refused_by_whatever_path(tmp_path: Path, linked: str) -> None:
    data, link = tmp_path / "data", tmp_path / "link"
    data.mkdir()
    witness = data / "witness.json"
    if linked == "the file":
        witness.touch()
        link.symlink_to(witness)
        witness = link
    elif linked != "nothing":
        link.symlink_to(data)
        witness = link / "witness.json" if linked == "its folder" else witness
    given = link if linked == "the data" else data
    settings = load_settings({"SHOAL_DATA": str(given), "SHOAL_AGGREGATOR_WITNESS": str(witness)})
    database = Database(settings.database("aggregator"))
    with pytest.raises(InvalidInputError, match=r"witness must be outside of the folder"):
        _open_witness(settings, database)


@pytest.mark.slow
def test_a_witness_whose_folder_is_missing_is_named_at_the_start(tmp_path: Path) -> None:
    witness = tmp_path / "not mounted" / "witness.json"
    done = attempt(
        "aggregator", SHOAL_DATA=str(tmp_path / "data"), SHOAL_AGGREGATOR_PORT="0",
        SHOAL_AGGREGATOR_WITNESS=str(witness),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "aggregator.witness must be in a folder that is there" in done.stderr
    assert str(witness) in done.stderr
