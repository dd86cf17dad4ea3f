"""Settings, doctor, export, backup and restore, and the files in deploy/."""

from __future__ import annotations

import configparser
import json
from pathlib import Path

import polars as pl
import pytest
import yaml
from click.testing import CliRunner, Result
from tests.service.conftest import DEPLOY, Stores
from tests.service.helpers import KEY, close, even, read, report, start, users
from tests.service.live import learning, serve

from shoal.cli.main import main
from shoal.client import Client
from shoal.errors import InvalidInputError
from shoal.service.aggregator import Aggregator
from shoal.service.aggregator.blinding import load_key
from shoal.service.settings import load_settings
from shoal.service.store import Database
from shoal.service.store.backup import back_up, restore


def run(*arguments: str, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, list(arguments))


def environment(stores: Stores, folder: Path) -> dict[str, str]:
    return {
        "SHOAL_DATA": str(folder),
        "SHOAL_AGGREGATOR_DATABASE": stores.aggregator,
        "SHOAL_LEARNER_DATABASE": stores.learner,
    }


def played(stores: Stores) -> bytes:
    aggregator = Aggregator(stores.open("aggregator"), key=KEY)
    start(aggregator, even(12, size=4), least=4)
    report(aggregator, dict.fromkeys(users(12), 0.5))
    close(aggregator)
    document = aggregator.released("news", 1)
    aggregator.close()
    stores.open("learner").close()
    return document


def test_settings_come_from_a_file_and_the_environment_wins(tmp_path: Path) -> None:
    file = tmp_path / "shoal.toml"
    file.write_text('data = "/srv/shoal"\n[aggregator]\nport = 9000\nhost = "::1"\n')
    found = load_settings({"SHOAL_AGGREGATOR_PORT": "9001"}, file=file)
    assert (found.aggregator.port, found.aggregator.host) == (9001, "::1")
    assert found.aggregator_database == "sqlite:////srv/shoal/aggregator.db"
    assert found.key_file == Path("/srv/shoal/aggregator.key")
    assert load_settings({}).aggregator.min_group_size_floor == 5


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[agregator]\nport = 1\n", "setting must be a known name"),
        ("[aggregator]\nprot = 1\n", "setting of aggregator must be a known name"),
        ('[learner]\nport = "x"\n', "learner.port must be a whole number"),
        ("port = [", "config must be a readable TOML file"),
    ],
)
def test_settings_that_are_not_understood_are_refused(tmp_path: Path, text: str, rule: str) -> None:
    file = tmp_path / "shoal.toml"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=rule):
        load_settings({}, file=file)


def test_the_key_is_made_once_and_only_for_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "key"
    key = load_key(file)
    assert (len(key), load_key(file), file.stat().st_mode & 0o777) == (32, key, 0o600)


def test_doctor_finds_nothing_in_a_sound_service(stores: Stores, tmp_path: Path) -> None:
    played(stores)
    load_key(tmp_path / "aggregator.key")
    done = run("doctor", "--json", **environment(stores, tmp_path))
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert [item["fault"] for item in found] == [""] * 9
    assert "campaign news: 1 rounds are anonymous" in [item["check"] for item in found]


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
    ],
)  # fmt: skip
def test_doctor_finds_what_was_tampered_with(
    sqlite_stores: Stores, tmp_path: Path, damage: str, fault: str
) -> None:
    played(sqlite_stores)
    load_key(tmp_path / "aggregator.key")
    database = sqlite_stores.open("aggregator")
    with database.write() as connection:
        connection.exec_driver_sql(damage)
    database.close()
    done = run("doctor", **environment(sqlite_stores, tmp_path))
    assert done.exit_code == 1
    assert fault in done.output
    assert "9 checks, 1 fault" in done.output


def test_doctor_finds_a_key_that_is_missing_or_open_to_others(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    played(sqlite_stores)
    assert "is missing" in run("doctor", **environment(sqlite_stores, tmp_path)).output
    load_key(tmp_path / "aggregator.key")
    (tmp_path / "aggregator.key").chmod(0o644)
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
    assert aggregator.released("news", 1, to_learner=True) == document
    start(aggregator, even(12, size=4), least=4, number=2)
    report(aggregator, dict.fromkeys(users(12), 0.5), number=2)
    close(aggregator, number=2)
    back_up(other, "aggregator", tmp_path / "second")
    aggregator.close()


def test_a_backup_restores_into_postgresql_and_numbering_goes_on(
    stores: Stores, backend: str, tmp_path: Path
) -> None:
    if backend != "postgresql":
        return
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
    assert read(aggregator.released("news", 1)).round == 1
    aggregator.close()


def test_backup_and_restore_are_commands(sqlite_stores: Stores, tmp_path: Path) -> None:
    played(sqlite_stores)
    settings = environment(sqlite_stores, tmp_path)
    file = str(tmp_path / "copy")
    assert "rows of the aggregator's store" in run("backup", "aggregator", file, **settings).output
    assert run("backup", "aggregator", file, **settings).exit_code == 2
    assert "must be empty" in run("restore", "aggregator", file, **settings).output
    moved = settings | {"SHOAL_AGGREGATOR_DATABASE": f"sqlite:///{tmp_path}/new.db"}
    assert run("restore", "aggregator", file, **moved).exit_code == 0
    (tmp_path / "junk").write_bytes(b"junk")
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
        done = run(*arguments, SHOAL_TOKEN=live.tokens["analyst"])
        assert done.exit_code == 0, done.output
        refused = run(
            "export", "news", f"{out}2", "--url", live.url, SHOAL_TOKEN=live.tokens["app"]
        )
        assert refused.exit_code == 2
        assert "role may not" in refused.output
    frame = pl.read_parquet(out)
    assert frame.columns == ["round", "arm", "reporters", "total"]
    assert frame["round"].unique().to_list() == [1]
    assert (frame["total"] == frame["reporters"] * 0.25).all()
    assert frame["reporters"].to_list() == [6, 6]


def test_a_client_needs_a_token() -> None:
    with pytest.raises(InvalidInputError, match="token must be"):
        Client("http://127.0.0.1:9", "")


def test_the_files_in_deploy_are_valid(tmp_path: Path) -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for role in ("aggregator", "learner"):
        assert services[role]["command"] == ["shoal", "serve", role]
        known = {name: "1" for name in services[role]["environment"] if "PORT" in name}
        load_settings(known | services[role]["environment"])
    shared = set(services["learner"]["networks"]) & set(services["aggregator-database"]["networks"])
    assert not shared  # no way from the learner to the aggregator's database
    for name, item in services.items():
        assert set(item["networks"]) <= set(compose["networks"]), name
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "shoal.service")
    assert unit["Service"]["ExecStart"].startswith("/opt/shoal/bin/shoal serve")
    assert load_settings({}, file=DEPLOY / "shoal.toml").aggregator.min_group_size_floor == 10
