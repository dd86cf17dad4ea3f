"""Doctor, export, backup and restore, and the files in deploy/."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result
from sqlalchemy import select
from tests.support.live import learning, serve
from tests.support.service import KEY, close, even, read, report, start, users
from tests.support.stores import Stores

from shoal.cli.main import main
from shoal.client import Client
from shoal.errors import InvalidInputError
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.tokens import ROLES, Access
from shoal.service.dashboard.sessions import begin_session
from shoal.service.embedded import read_tokens
from shoal.service.learner.service import Learner
from shoal.service.process import _make_tokens
from shoal.service.settings import Settings
from shoal.service.store import Database, system_clock
from shoal.service.store import aggregator as tables
from shoal.service.store.backup import back_up, restore
from shoal.service.store.migrate import newest
from shoal.wire import LearnerProgress


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, list(arguments))


def environment(stores: Stores, folder: Path) -> dict[str, str]:
    return {
        "SHOAL_DATA": str(folder),
        "SHOAL_AGGREGATOR_DATABASE": stores.aggregator,
        "SHOAL_LEARNER_DATABASE": stores.learner,
        "SHOAL_LEARNER_AGGREGATOR": "http://127.0.0.1:9",
        "SHOAL_AGGREGATOR_MIN_GROUP_SIZE_FLOOR": "4",
    }


def put_key(folder: Path, key: bytes = KEY) -> Path:
    file = folder / "aggregator.key"
    file.touch(mode=0o600)
    file.write_bytes(key)
    return file


def played(stores: Stores) -> bytes:
    aggregator = Aggregator(stores.open("aggregator"), key=KEY)
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 0.5))
    close(aggregator)
    document = aggregator.releases.read("news", 1)
    aggregator.close()
    stores.open("learner").close()
    return document


def test_doctor_finds_nothing_in_a_sound_service(
    stores: Stores, backend: str, tmp_path: Path
) -> None:
    played(stores)
    put_key(tmp_path)
    before = everything_in(tmp_path)
    done = run("doctor", "--json", **environment(stores, tmp_path))
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert [item["fault"] for item in found] == [""] * (14 if backend == "sqlite" else 12)
    told = [item["check"] for item in found]
    assert "campaign news: 1 round is anonymous, with no noise" in told
    assert everything_in(tmp_path) == before


def everything_in(folder: Path) -> dict[str, bytes]:
    return {str(f): f.read_bytes() if f.is_file() else b"" for f in sorted(folder.rglob("*"))}


def test_doctor_makes_nothing_that_is_missing(tmp_path: Path) -> None:
    data = tmp_path / "nowhere"
    done = run("doctor", SHOAL_DATA=str(data), SHOAL_LEARNER_AGGREGATOR="http://127.0.0.1:9")
    assert done.exit_code == 1
    assert done.output.count("is missing") == 3
    assert not data.exists()
    other = run("backup", "learner", str(tmp_path / "copy"), SHOAL_DATA=str(data))
    assert (other.exit_code, "must not be empty" in other.output) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_doctor_compares_the_learners_clock_with_the_aggregators(
    sqlite_stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(sqlite_stores) as live:
        settings = environment(sqlite_stores, tmp_path) | {"SHOAL_LEARNER_AGGREGATOR": live.url}
        done = run("doctor", "--role", "learner", **settings)
        assert "ok    this machine's clock and the aggregator's agree" in done.output
        monkeypatch.setattr("shoal.service.doctor.system_clock", lambda: system_clock() + 60_000)
        done = run("doctor", "--role", "learner", **settings)
        assert "they differ by about" in done.output


def test_stores_and_backups_are_for_their_owner_alone(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    data = tmp_path / "a" / "data"
    stores = Stores(f"sqlite:///{data}/aggregator.db", f"sqlite:///{data}/learner.db")
    before = os.umask(0)
    try:
        with serve(stores) as live:
            files = list(data.iterdir())
            assert len(files) == 6  # two files, with the log and its index
            assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
            back_up(live.aggregator.database, "aggregator", tmp_path / "copy")
    finally:
        os.umask(before)
    assert data.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    database = data / "aggregator.db"
    database.chmod(0o644)
    put_key(data)
    settings = environment(stores, data)
    assert f"{database} can be read by others" in run("doctor", **settings).output
    stores.open("aggregator").close()  # as a start does
    assert database.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("UPDATE rounds SET groups = arms", "not the one that was frozen"),
        ("UPDATE campaigns SET definition = replace(definition, '\"min_group_size\":4',"
         " '\"min_group_size\":5')", "must have at least min_group_size=5"),
        ("UPDATE releases SET counted = reporters, document = CAST(replace(CAST(document AS TEXT),"
         " '\"reporters\":4', '\"reporters\":3') AS BLOB)", "fewer than 4"),
        ("DELETE FROM releases", "can't be read"),
        ("UPDATE arms SET until = 1 WHERE name = 'b'", "an arm is played that was not on offer"),
        ("UPDATE campaigns SET definition = replace(definition, '\"min_group_size\":4',"
         " '\"min_group_size\":3')", "C is 3, below the floor of 4"),
        ("UPDATE rounds SET opened_at = opened_at + 1000000", "round 1 of campaign news has one"),
        ("INSERT INTO keys (fingerprint) VALUES (x'00')", "the store was filled with another key"),
        ("UPDATE releases SET document = CAST(replace(CAST(document AS TEXT), '\"noise\":null',"
         " '\"noise\":{\"epsilon\":1,\"scale\":9}') AS BLOB)", "other noise"),
    ],
)  # fmt: skip
def test_doctor_finds_what_was_tampered_with(
    sqlite_stores: Stores, tmp_path: Path, damage: str, fault: str
) -> None:
    played(sqlite_stores)
    put_key(tmp_path)
    database = sqlite_stores.open("aggregator")
    with database.write() as connection:
        connection.exec_driver_sql(damage)
    database.close()
    done = run("doctor", **environment(sqlite_stores, tmp_path))
    assert done.exit_code == 1
    assert fault in done.output
    at_floor = "floor of" in fault  # a check of its own
    assert f"{14 + at_floor} checks, 1 fault" in done.output
    assert ("FAULT campaign news: C is at least the floor" in done.output) == at_floor


def test_doctor_finds_what_a_start_would_refuse_for_a_missing_secret(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    settings, secrets = environment(sqlite_stores, tmp_path), tmp_path / "aggregator.key.rounds"
    put_key(tmp_path)
    aggregator = Aggregator(sqlite_stores.open("aggregator"), key=KEY, secrets=secrets)
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 0.5))
    aggregator.close()
    sqlite_stores.open("learner").close()
    assert run("doctor", **settings).exit_code == 0
    for secret in secrets.iterdir():
        secret.unlink()
    done = run("doctor", **settings)
    assert (done.exit_code, "missing is that of round 1 of news" in done.output) == (1, True)


def test_doctor_finds_a_key_that_is_missing_or_open_to_others(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    played(sqlite_stores)
    assert "is missing" in run("doctor", **environment(sqlite_stores, tmp_path)).output
    put_key(tmp_path).chmod(0o644)
    assert "read by others" in run("doctor", **environment(sqlite_stores, tmp_path)).output


def test_a_backup_restores_on_either_backend(stores: Stores, tmp_path: Path) -> None:
    document = played(stores)
    database = stores.open("aggregator")
    rows = back_up(database, "aggregator", tmp_path / "copy")
    with pytest.raises(InvalidInputError, match="must be empty"):
        restore(database, "aggregator", tmp_path / "copy")
    database.close()
    other = Database(f"sqlite:///{tmp_path}/other/aggregator.db")
    with pytest.raises(InvalidInputError, match="must be a backup of the learner's store"):
        restore(other, "learner", tmp_path / "copy")
    assert restore(other, "aggregator", tmp_path / "copy") == rows
    aggregator = Aggregator(other, key=KEY)
    assert aggregator.releases.read("news", 1, to_learner=True) == document
    start(aggregator, even(12, size=4), least=4, number=2)
    report(aggregator, dict.fromkeys(users(12), 0.5), number=2)
    close(aggregator, number=2)
    back_up(other, "aggregator", tmp_path / "second")
    aggregator.close()


@pytest.mark.parametrize("damage", ["cut off", "bit flipped", "another release's"])
def test_a_failed_restore_leaves_the_store_empty(
    stores: Stores, tmp_path: Path, damage: str
) -> None:
    source = Stores(f"sqlite:///{tmp_path}/s/a.db", f"sqlite:///{tmp_path}/s/l.db")
    played(source)
    database = source.open("aggregator")
    rows = back_up(database, "aggregator", tmp_path / "copy")
    database.close()
    good = (tmp_path / "copy").read_bytes()
    if damage == "cut off":
        bad = good[: len(good) // 2]
    elif damage == "bit flipped":
        half = len(good) // 2
        bad = good[:half] + bytes([good[half] ^ 255]) + good[half + 1 :]
    else:
        bad = gzip.compress(
            gzip.decompress(good).replace(str(newest("aggregator")).encode(), b"a9999")
        )
    (tmp_path / "bad").write_bytes(bad)
    settings = environment(stores, tmp_path)
    done = run("restore", "aggregator", str(tmp_path / "bad"), **settings)
    assert (done.exit_code, " must be " in done.output) == (2, True), done.output
    database = Database(stores.aggregator)
    assert database.files() == []  # nothing is left of a new one
    database.close()
    done = run("restore", "aggregator", str(tmp_path / "copy"), **settings)
    assert (done.exit_code, f"{rows:,} rows are in" in done.output) == (0, True), done.output


def test_no_token_and_no_session_comes_back_with_a_backup(stores: Stores, tmp_path: Path) -> None:
    with serve(stores) as live:
        revoked = live.aggregator.access.issue("gone", "operator")
        assert begin_session(live.aggregator, revoked) is not None
        back_up(live.aggregator.database, "aggregator", tmp_path / "copy")
    database = Database(f"sqlite:///{tmp_path}/other/aggregator.db")
    restore(database, "aggregator", tmp_path / "copy")
    with database.read() as connection:
        for table in (tables.tokens, tables.sessions):
            assert connection.execute(select(table)).all() == []
    database.close()


def test_new_tokens_leave_no_other_valid(sqlite_stores: Stores, tmp_path: Path) -> None:
    database = sqlite_stores.open("aggregator")
    access = Access(database)
    former = [access.issue("operator", "operator"), access.issue("second", "operator")]
    said: list[str] = []
    _make_tokens(access, Settings(data=tmp_path), said.append, new=True)
    assert set(access.roles()) == set(ROLES)
    assert [access.role_of(token) for token in former] == [None, None]
    tokens = read_tokens(tmp_path / "tokens.env")
    assert {role: access.role_of(token) for role, token in tokens.items()} == {r: r for r in ROLES}
    assert (tmp_path / "tokens.env").stat().st_mode & 0o777 == 0o600
    assert not any(token in line for token in tokens.values() for line in said)
    database.close()


def test_a_backup_of_sqlite_restores_into_either_store_and_numbering_goes_on(
    stores: Stores, tmp_path: Path
) -> None:
    source = Stores(f"sqlite:///{tmp_path}/s/a.db", f"sqlite:///{tmp_path}/s/l.db")
    played(source)
    first = source.open("aggregator")
    back_up(first, "aggregator", tmp_path / "copy")
    first.close()
    database = Database(stores.aggregator)
    restore(database, "aggregator", tmp_path / "copy")
    aggregator = Aggregator(database, key=KEY)
    start(aggregator, even(12, size=4), least=4, number=2)
    report(aggregator, dict.fromkeys(users(12), 0.5), number=2)
    assert len(close(aggregator, number=2).totals) == 3
    assert read(aggregator.releases.read("news", 1)).round == 1
    aggregator.close()


def test_a_learner_goes_on_from_a_restored_store(stores: Stores, tmp_path: Path) -> None:
    definition = {"arms": ["a", "b"], "min_group_size": 4, "seats": 12, "policy": "shoal"}
    with serve(stores) as live:
        operator, app = live.client("operator"), live.client("app")
        operator.create_campaign("news", **definition)
        operator.enrol("news", users(12))
        for number in (1, 2):
            operator.open_round("news", number, wait=0)
            live.work()
            app.report("news", number, dict.fromkeys(users(12), 0.5))
            operator.close_round("news", number)
            live.work()
        before = live.learner.runs["news"]
        database = live.learner.database
        back_up(database, "learner", tmp_path / "copy")
        with database.write() as connection:
            for table in ("policies", "runs", "deleted_campaigns", "alembic_version"):
                connection.exec_driver_sql(f"DROP TABLE {table}")
        restore(database, "learner", tmp_path / "copy")
        live.learner = Learner(database, live.learner._client)
        after = live.learner.runs["news"]
        assert (after.planned, after.learnt, after.reading) == (2, 2, 2)
        assert (after.policy_state() == before.policy_state()) is True
        operator.open_round("news", 3, wait=0)
        live.work()
        assert operator.round("news", 3).state == "open"


def test_backup_and_restore_are_commands(sqlite_stores: Stores, tmp_path: Path) -> None:
    played(sqlite_stores)
    settings = environment(sqlite_stores, tmp_path)
    file = str(tmp_path / "copy")
    nowhere = run("backup", "aggregator", file, SHOAL_DATA=str(tmp_path / "none"))
    assert f"nothing is at {tmp_path}/none/aggregator.db" in nowhere.output
    assert "rows of the aggregator's store" in run("backup", "aggregator", file, **settings).output
    assert run("backup", "aggregator", file, **settings).exit_code == 2
    assert "must be empty" in run("restore", "aggregator", file, **settings).output
    moved = settings | {"SHOAL_AGGREGATOR_DATABASE": f"sqlite:///{tmp_path}/new.db"}
    restored = run("restore", "aggregator", file, **moved)
    assert restored.exit_code == 0
    assert "beside the store that the learner had" in restored.output
    for again in ("withdraw users who left", "erase again those who asked for it", "retire arms"):
        assert again in restored.output
    assert "tokens and sessions are left out" in restored.output
    assert "Warning" not in restored.output
    (tmp_path / "junk").write_bytes(b"junk")
    alone = {name: f"sqlite:///{tmp_path}/alone-{name}.db" for name in moved if "DATABASE" in name}
    restored = run("restore", "aggregator", file, **alone)
    assert "Warning: there is no learner's store" in restored.output
    assert "That one alone remembers the rounds since the backup" in restored.output
    moved["SHOAL_AGGREGATOR_DATABASE"] = f"sqlite:///{tmp_path}/newer.db"
    assert run("restore", "aggregator", str(tmp_path / "junk"), **moved).exit_code == 2


def test_export_writes_the_released_totals(sqlite_stores: Stores, tmp_path: Path) -> None:
    out = tmp_path / "totals.parquet"
    with serve(sqlite_stores) as live, learning(live):
        operator = live.client("operator")
        operator.create_campaign("news", arms=["a", "b"], min_group_size=4, seats=12, horizon=99)
        operator.enrol("news", users(12))
        for number in (1, 2):
            operator.open_round("news", number)
            live.client("app").report("news", number, dict.fromkeys(users(12), 0.25))
            if number == 1:
                operator.close_round("news", number)
        arguments = ["export", "news", str(out), "--url", live.url]
        assert "SHOAL_TOKEN must be" in run(*arguments).output
        address = {"SHOAL_URL": live.url, "SHOAL_ANALYST_TOKEN": live.tokens["analyst"]}
        done = run(*arguments[:3], **address)
        assert done.exit_code == 0, done.output
        text = tmp_path / "totals.csv"
        assert run("export", "news", str(text), **address).exit_code == 0
        refused = run(
            "export", "news", f"{out}2", "--url", live.url, SHOAL_TOKEN=live.tokens["app"]
        )
        assert refused.exit_code == 2
        assert "role may not" in refused.output
    frame = pl.read_parquet(out)
    assert pl.read_csv(text).equals(frame)
    assert frame.columns == ["round", "arm", "reporters", "total"]
    assert frame["round"].unique().to_list() == [1]
    assert (frame["total"] == frame["reporters"] * 0.25).all()
    assert set(frame["reporters"]) == {4}


def test_export_passes_over_rounds_that_a_restore_forgot(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    out = tmp_path / "totals.parquet"
    with serve(sqlite_stores) as live:
        live.client("operator").create_campaign(
            "news", arms=["a", "b"], min_group_size=4, seats=12, policy="random"
        )
        live.aggregator.epochs.sync_learner({"news": LearnerProgress(3, 3)})
        given = {"SHOAL_TOKEN": live.tokens["analyst"]}
        done = run("export", "news", str(out), "--url", live.url, **given)
        assert (done.exit_code, "0 totals" in done.output) == (0, True), done.output
        lost = tmp_path / "nowhere" / "totals.parquet"
        done = run("export", "news", str(lost), "--url", live.url, **given)
        assert (done.exit_code, "folder that exists" in done.output) == (2, True), done.output


def test_a_client_needs_a_token() -> None:
    with pytest.raises(InvalidInputError, match="token must be"):
        Client("http://127.0.0.1:9", "")
