"""Dockerfile, compose file, alerts, logs and upgrades: run as far as there is no container engine.

The roles run with the environments, commands and health checks of deploy/, on a file system where
nothing but their volumes can be written, and get their passwords and the learner's token as there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from click.testing import CliRunner
from tests.service.test_serve import attempt, one_round, wait_for
from tests.support import confined
from tests.support.chaos import free_port
from tests.support.programs import need
from tests.support.stores import Stores, as_user

from shoal.cli.main import main
from shoal.service.embedded import read_tokens
from shoal.service.settings import load_settings
from shoal.service.store import Database
from shoal.service.store.migrate import current, newest, upgrade

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
VERSION_0_1 = ROOT / "tests" / "recordings" / "v0_1"


def dockerfile() -> dict[str, list[str]]:
    """The Dockerfile's instructions, each with all of its arguments."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    steps: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition(" ")
            steps.setdefault(name, []).append(value)
    return steps


def compose() -> dict[str, Any]:
    parsed: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return parsed


def test_the_image_is_built_without_a_network_and_runs_as_nobody() -> None:
    steps = dockerfile()
    install, folders = steps["RUN"]
    assert "--no-index --find-links /wheels" in install
    assert steps["COPY"] == ["wheels /wheels"]
    assert not re.search(
        r"https?://|apt-get|curl|wget", " ".join(install.split() + folders.split())
    )
    assert steps["USER"] == ["10001:10001"]
    assert json.loads(steps["ENTRYPOINT"][0]) + json.loads(steps["CMD"][0]) == ["shoal", "serve"]
    for step in steps["RUN"]:
        subprocess.run(["sh", "-n", "-c", step], check=True)
    extras = re.search(r"shoal\[([\w,]+)\]", install)
    assert extras
    known = (ROOT / "pyproject.toml").read_text()
    assert all(f"\n{extra} = [" in known for extra in extras[1].split(","))


def test_no_role_has_a_way_to_the_others_store_or_secrets() -> None:
    services = compose()["services"]
    for role, other in (("aggregator", "learner"), ("learner", "aggregator")):
        assert services[role]["read_only"] is True
        assert services[role]["cap_drop"] == ["ALL"]
        assert not set(services[role]["networks"]) & set(services[f"{other}-database"]["networks"])
        volumes = {volume.split(":")[0] for volume in services[role]["volumes"]}
        assert not any(volume.startswith(other) for volume in volumes)
        load_settings({k: v for k, v in services[role]["environment"].items() if k != "SHOAL_URL"})
    assert "handover:/handover:ro" in services["learner"]["volumes"]
    declared = set(compose()["volumes"])
    for item in services.values():
        assert {volume.split(":")[0] for volume in item.get("volumes", [])} <= declared


def test_the_compose_files_layout_starts_from_nothing(tmp_path: Path) -> None:
    """Passwords and the learner's token come to their places without anyone copying them."""
    need("unshare", "setpriv", "systemd-analyze")
    services, port, other = compose()["services"], free_port(), free_port()
    places = {"/secrets": tmp_path / "secrets", "/handover": tmp_path / "handover"}
    for folder in ("secrets/aggregator", "secrets/learner", "handover", "aggregator", "learner"):
        (tmp_path / folder).mkdir(parents=True)

    def local(text: str) -> str:
        for place, folder in places.items():
            text = re.sub(rf"{place}(?=[/:]|$)", str(folder), text)
        return text

    script = local(services["setup"]["command"][0].replace("$$", "$"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for _ in range(2):  # the second time nothing changes
        subprocess.run(["sh", "-c", script], check=True, env={"PATH": path})
        passwords = [
            (tmp_path / "secrets" / r / "pgpass").read_text() for r in ("aggregator", "learner")
        ]
    assert len(set(passwords)) == 2
    assert (tmp_path / "secrets/learner/pgpass").stat().st_mode & 0o777 == 0o600

    def start(role: str, **changed: str) -> subprocess.Popen[bytes]:
        image = dict(item.split("=", 1) for item in shlex.split(dockerfile()["ENV"][0]))
        own = {k: local(v) for k, v in services[role]["environment"].items()}
        data = str(tmp_path / role)
        environment = os.environ | image | own | changed | {
            "PATH": path, "HOME": data, "SHOAL_DATA": data, "XDG_CACHE_HOME": os.environ.get(
                "XDG_CACHE_HOME", str(Path.home() / ".cache")
            ),
        }  # fmt: skip
        command = [sys.executable, "-m", "shoal.cli", *services[role]["command"]]
        cache = Path(environment["XDG_CACHE_HOME"])  # this machine's: nothing is compiled again
        cache.mkdir(exist_ok=True)
        handover = [tmp_path / "handover"] if role == "aggregator" else []
        writable = [tmp_path / role, cache, *handover]
        log = (tmp_path / f"{role}.log").open("wb")
        with log:
            return subprocess.Popen(
                confined.command(DEPLOY / "shoal.service", writable, *command),
                env=environment, stdout=subprocess.DEVNULL, stderr=log,
            )  # fmt: skip

    url = f"http://127.0.0.1:{port}"
    roles = []
    try:  # on SQLite: the tests' PostgreSQL has no port, and its socket is another user's
        roles.append(
            start(
                "aggregator", SHOAL_AGGREGATOR_HOST="127.0.0.1", SHOAL_AGGREGATOR_PORT=str(port),
                SHOAL_AGGREGATOR_DATABASE="",
            )
        )  # fmt: skip
        wait_for(f"{url}/health")
        roles.append(
            start(
                "learner", SHOAL_LEARNER_HOST="127.0.0.1", SHOAL_LEARNER_PORT=str(other),
                SHOAL_LEARNER_DATABASE="", SHOAL_LEARNER_AGGREGATOR=url,
            )
        )  # fmt: skip
        wait_for(f"http://127.0.0.1:{other}/ready")
        tokens = read_tokens(tmp_path / "aggregator" / "tokens.env")
        assert "learner" not in tokens  # it is in its own file alone
        assert (tmp_path / "handover/learner.token").stat().st_mode & 0o777 == 0o600
        one_round(url, tokens, least=10)
        check = json.loads(dockerfile()["HEALTHCHECK"][0].partition("CMD ")[2])
        for address, code in (
            (url, 0),
            (f"http://127.0.0.1:{other}", 0),
            ("http://127.0.0.1:9", 1),
        ):
            done = subprocess.run(
                [sys.executable, *check[1:]], env=os.environ | {"SHOAL_URL": address},
                capture_output=True, check=False,
            )  # fmt: skip
            assert done.returncode == code
    finally:
        for process in roles:
            process.kill()
            process.wait()
    for line in (tmp_path / "aggregator.log").read_text().splitlines():
        assert {"time", "level", "logger", "message"} <= json.loads(line).keys()


def test_the_databases_address_reads_its_password_from_a_file(
    tmp_path: Path, postgres: str
) -> None:
    """The way of compose.yaml; this server asks for none, so that the file is only found."""
    address = compose()["services"]["learner"]["environment"]["SHOAL_LEARNER_DATABASE"]
    file = tmp_path / "pgpass"
    file.write_text("*:*:shoal_learner:shoal_learner:secret\n")
    file.chmod(0o600)
    query = address.partition("?")[2].replace("/secrets/learner/pgpass", str(file))
    there = as_user(postgres, "learner").replace(":learner-secret", "")
    database = Database(f"{there}&{query}")
    assert database.alive()
    database.close()


def test_alert_rules_are_valid_and_name_metrics_that_there_are() -> None:
    need("promtool")
    rules = DEPLOY / "alerts.yaml"
    subprocess.run(["promtool", "check", "rules", str(rules)], check=True, capture_output=True)
    sources = "".join(
        (ROOT / "src/shoal/service" / name).read_text()
        for name in ("web/metrics.py", "learner/application.py")
    )
    for name in re.findall(r"shoal_\w+", rules.read_text()):
        assert f'"{re.sub("_(total|count)$", "", name)}"' in sources, name


def test_threat_31_an_alert_rises_when_totals_show_everyones_reward(tmp_path: Path) -> None:
    need("promtool")
    series: list[dict[str, str]] = [
        {"series": "shoal_homogeneous_totals_total", "values": "0+3x100"},
        {"series": "shoal_released_totals_total", "values": "0+10x100"},
    ]
    case: dict[str, Any] = {"interval": "1m", "input_series": series, "alert_rule_test": []}
    cases = []
    for share, alerts in ((3, 1), (1, 0)):  # in ten
        series[0]["values"] = f"0+{share}x100"
        test: dict[str, Any] = {
            "eval_time": "90m",
            "alertname": "ShoalHomogeneousTotals",
            "exp_alerts": [],
        }
        if alerts:
            rule = _rule("ShoalHomogeneousTotals")
            test["exp_alerts"] = [
                {"exp_labels": rule["labels"], "exp_annotations": rule["annotations"]}
            ]
        cases.append(json.loads(json.dumps(case | {"alert_rule_test": [test]})))
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(DEPLOY / "alerts.yaml")], "tests": cases}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _rule(name: str) -> dict[str, Any]:
    groups = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    return next(rule for rule in groups[0]["rules"] if rule["alert"] == name)


def test_a_store_of_version_0_1_is_upgraded_in_place_and_goes_on(tmp_path: Path) -> None:
    """As docs/service/upgrade.md says: back up, start the new release, look with doctor."""
    for name in ("aggregator", "learner"):
        shutil.copy(VERSION_0_1 / f"{name}.db", tmp_path / f"{name}.db")
    before = _names(tmp_path)
    environment = {"SHOAL_DATA": str(tmp_path)}
    backup = tmp_path / "before.backup"
    runner = CliRunner(env=environment)
    assert runner.invoke(main, ["backup", "aggregator", str(backup)]).exit_code == 0
    for role in ("aggregator", "learner"):
        database = Database(f"sqlite:///{tmp_path}/{role}.db")
        upgrade(database, role)
        assert current(database) == newest(role)
        database.close()
    assert _names(tmp_path) == before
    # Back again: the backup goes into an empty store of any release that knows its version.
    (tmp_path / "back").mkdir()
    restored = runner.invoke(
        main, ["restore", "aggregator", str(backup), "--data", str(tmp_path / "back")]
    )
    assert restored.exit_code == 0, restored.output
    assert _names(tmp_path / "back") == before


def _names(folder: Path) -> list[str]:
    import sqlite3

    connection = sqlite3.connect(folder / "aggregator.db")
    try:
        return [row[0] for row in connection.execute("SELECT name FROM campaigns ORDER BY name")]
    finally:
        connection.close()


@pytest.mark.parametrize("role", ["aggregator", "learner"])
def test_a_store_of_a_later_release_is_refused_clearly_and_left_as_it_is(
    sqlite_stores: Stores, tmp_path: Path, role: str
) -> None:
    database = sqlite_stores.open(role)  # type: ignore[arg-type]
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = 'z9999'")
    file = database.file
    database.close()
    assert file is not None
    content = file.read_bytes()
    done = attempt(
        role, SHOAL_DATA=str(tmp_path), SHOAL_AGGREGATOR_PORT="0", SHOAL_LEARNER_PORT="0",
        SHOAL_LEARNER_TOKEN=f"shoal.learner.{'a' * 43}",
    )  # fmt: skip
    assert done.returncode == 2
    assert "z9999" in done.stderr
    assert "of this release or an earlier one" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_bytes() == content


def test_log_lines_are_json_where_the_settings_say_so(tmp_path: Path) -> None:
    port = free_port()
    environment = os.environ | {
        "SHOAL_DATA": str(tmp_path), "SHOAL_AGGREGATOR_PORT": str(port),
        "SHOAL_AGGREGATOR_LOG_FORMAT": "json",
    }  # fmt: skip
    log = tmp_path / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "shoal.cli", "serve", "aggregator"],
            env=environment, stdout=subprocess.DEVNULL, stderr=out,
        )  # fmt: skip
    try:
        wait_for(f"http://127.0.0.1:{port}/health")
        httpx.get(f"http://127.0.0.1:{port}/nowhere")
        ends = time.monotonic() + 120
        while "GET none 404" not in log.read_text():  # it is written after the answer
            assert time.monotonic() < ends
            time.sleep(0.01)
    finally:
        process.terminate()
        process.wait(120)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert any(line["message"].startswith("GET none 404") for line in lines)
    assert {line["level"] for line in lines} == {"INFO"}
