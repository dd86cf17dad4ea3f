"""The files in deploy/, run as they are as far as a machine without systemd can."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from tests.support import confined
from tests.support.chaos import free_port
from tests.support.programs import need
from tests.support.service import users

from shoal.client import Client
from shoal.kernels import cache_folder
from shoal.model import merging
from shoal.service.embedded import read_tokens
from shoal.service.settings import load_settings
from shoal.service.startup import use_cache

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
MAX_EXPOSURE = 3.0


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_exposed_to_little(unit: Path) -> None:
    need("systemd-analyze")
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    level = re.search(r"Overall exposure level for .*: ([0-9.]+)", text)
    assert level
    assert float(level[1]) <= MAX_EXPOSURE


def test_the_shipped_unit_starts_where_nothing_but_its_own_folders_can_be_written(
    tmp_path: Path,
) -> None:
    need("systemd-analyze", "unshare", "setpriv")
    unit = DEPLOY / "shoal.service"
    service = confined.service_of(unit)
    state, cache = tmp_path / "state", tmp_path / "cache"
    places = {"/var/lib/shoal": str(state), "/var/cache/shoal": str(cache)}
    for folder in (state, cache):
        folder.mkdir()
    # All that this machine has compiled, but for what the aggregator compiles in its start.
    compiled = cache_folder(Path(merging.__file__))
    assert compiled is not None
    others = shutil.ignore_patterns(compiled.name, "*.tmp.*")  # nor what is just being written
    shutil.copytree(compiled.parent, cache / "shoal", ignore=others)
    listed = dict(item.split("=") for line in service["Environment"] for item in line.split())
    port = free_port()
    environment = {name: places[value] for name, value in listed.items()} | {
        "SHOAL_AGGREGATOR_PORT": str(port),
        "SHOAL_LEARNER_PORT": str(free_port()),
        "NOTIFY_SOCKET": str(state / "notify"),
    }
    inherited = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR",)}
    serve = [sys.executable, "-m", "shoal.cli", *service["ExecStart"][0].split()[1:]]
    serve[-1] = str(DEPLOY / "shoal.toml")
    log = (tmp_path / "log").open("w+")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(environment["NOTIFY_SOCKET"])
        systemd.settimeout(120)
        tree = subprocess.Popen(
            confined.command(unit, [state, cache], *serve),
            env=inherited | environment, stdout=subprocess.DEVNULL, stderr=log, text=True,
        )  # fmt: skip
        with tree, log:
            try:
                assert systemd.recv(100) == b"READY=1", (tmp_path / "log").read_text()
                _play(f"http://127.0.0.1:{port}", read_tokens(state / "tokens.env"))
            finally:
                tree.kill()  # unshare does not pass other signals on; all else ends with it
    kept = cache / "shoal" / compiled.name
    assert list(kept.rglob("*.nbi"))  # the next start compiles nothing again
    assert "can't be cached" not in (tmp_path / "log").read_text()


def _play(url: str, tokens: dict[str, str]) -> None:
    ends = time.monotonic() + 240
    with (
        Client(url, tokens["operator"], patience=60) as operator,
        Client(url, tokens["app"], patience=60) as app,
    ):
        operator.create_campaign(
            "news", arms=["a", "b"], min_group_size=10, seats=24, policy="random"
        )
        operator.enrol("news", users(24))
        while operator.open_round("news", 1, wait=30).state == "wanted":
            assert time.monotonic() < ends
        assert app.report("news", 1, dict.fromkeys(users(24), 0.5)) == []
        assert operator.close_round("news", 1).state == "released"


def test_the_sandbox_of_these_tests_is_one(tmp_path: Path) -> None:
    """Without this the test above could not fail."""
    need("systemd-analyze", "unshare", "setpriv")
    (tmp_path / "state").mkdir()
    script = (
        "import os, pathlib\n"
        f"pathlib.Path({str(tmp_path / 'state' / 'file')!r}).touch()\n"
        "for write in (lambda: pathlib.Path.home().joinpath('file').touch(), "
        "lambda: os.nice(1), lambda: os.chroot('/'), lambda: os.stat('/proc/meminfo')):\n"
        "    try:\n        write()\n    except OSError as error:\n        print(error.errno)\n"
    )
    command = confined.command(
        DEPLOY / "shoal.service", [tmp_path / "state"], sys.executable, "-c", script
    )
    home = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=home)
    assert done.stdout.split() == ["30", "1", "1", "2"]  # read-only, not permitted twice, hidden
    assert (tmp_path / "state" / "file").exists()


@pytest.mark.parametrize("home", ["a file", "none"])
def test_a_user_without_a_home_has_a_cache_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", "")  # else what is set below would stay for later tests
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    if home == "none":
        monkeypatch.setattr(Path, "home", _no_home)
    use_cache(tmp_path / "data")
    folder = tmp_path / "data" / "cache"
    assert os.environ["XDG_CACHE_HOME"] == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    use_cache(tmp_path / "data")
    assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / "mine")


def _no_home() -> Path:
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("role", ["aggregator", "learner"])
def test_a_first_start_that_fails_ends_the_process_and_is_not_tried_for_ever(
    tmp_path: Path, role: str
) -> None:
    """Whatever the reason: systemd then knows that the unit does not run."""
    (tmp_path / "sitecustomize.py").write_text(
        f"import os, sys\nif sys.orig_argv[-1] == {role!r}:\n    os._exit(7)\n"
    )
    environment = os.environ | {
        "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}",
        "SHOAL_DATA": str(tmp_path / "data"),
        "SHOAL_AGGREGATOR_PORT": str(free_port()),
        "SHOAL_LEARNER_PORT": str(free_port()),
    }
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "shoal.cli", "serve"],
        env=environment, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert time.monotonic() - began < 60


def test_the_files_in_deploy_are_valid() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = compose["services"]
    for role in ("aggregator", "learner"):
        assert services[role]["command"] == ["serve", role]
        known = {name: "1" for name in services[role]["environment"] if "PORT" in name}
        load_settings(known | services[role]["environment"])
    shared = set(services["learner"]["networks"]) & set(services["aggregator-database"]["networks"])
    assert not shared  # no way from the learner to the aggregator's database
    assert services["setup"]["network_mode"] == "none"  # it sees the passwords of both
    for name in services.keys() - {"setup"}:
        assert set(services[name]["networks"]) <= set(compose["networks"]), name
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(DEPLOY / "shoal.service")
    assert unit["Service"]["ExecStart"].startswith("/opt/shoal/bin/shoal serve")
    assert load_settings({}, file=DEPLOY / "shoal.toml").aggregator.min_group_size_floor == 10
