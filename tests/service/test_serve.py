"""``shoal serve`` as its users run it: one tree, or two roles that only share an address."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.support.chaos import Tree, free_port
from tests.support.service import users
from tests.support.stores import Stores

from shoal.client import Client
from shoal.service.embedded import read_tokens
from shoal.service.listener import bind


def wait_for(url: str) -> httpx.Response:
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        try:
            answer = httpx.get(url, timeout=2)
        except httpx.TransportError:
            time.sleep(0.1)
            continue
        if answer.status_code == 200:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"{url} did not become ready")


@contextmanager
def role(*arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal.cli", "serve", *arguments],
        env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def one_round(url: str, tokens: dict[str, str], *, least: int = 5) -> None:
    with (
        Client(url, tokens["operator"], patience=60) as operator,
        Client(url, tokens["app"], patience=60) as app,
        Client(url, tokens["analyst"], patience=60) as analyst,
    ):
        operator.create_campaign(
            "news", arms=["a", "b"], min_group_size=least, seats=12, horizon=99
        )
        operator.enrol("news", users(12))
        ends = time.monotonic() + 600  # kernels may have to be compiled, on a busy machine
        while (state := operator.open_round("news", 1, wait=10).state) == "wanted":
            assert time.monotonic() < ends
        assert state == "open"
        assert len(app.assignments("news")) == 12
        assert app.report("news", 1, dict.fromkeys(users(12), 0.5)) == []
        assert operator.close_round("news", 1).state == "released"
        totals = analyst.release("news", 1).totals
        assert totals
        assert all(total.reporters >= least for total in totals)


def test_the_split_roles_share_nothing_but_an_address_and_a_token(
    stores: Stores, tmp_path: Path
) -> None:
    port, other = free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    with role(
        "aggregator", SHOAL_DATA=str(tmp_path / "a"), SHOAL_AGGREGATOR_PORT=str(port),
        SHOAL_AGGREGATOR_DATABASE=stores.aggregator,
    ) as aggregator:  # fmt: skip
        assert aggregator.stdout is not None
        lines = [aggregator.stdout.readline() for _ in range(2)]
        tokens = read_tokens(tmp_path / "a" / "tokens.env")
        assert "/tokens.env; only their hashes are stored" in lines[0]
        assert lines[1].startswith("The dashboard is at http://127.0.0.1:")
        assert set(tokens) == {"admin", "operator", "app", "analyst", "learner", "monitor"}
        assert not any(token in line for token in tokens.values() for line in lines)
        with role(
            "learner", SHOAL_DATA=str(tmp_path / "l"), SHOAL_LEARNER_PORT=str(other),
            SHOAL_LEARNER_DATABASE=stores.learner, SHOAL_LEARNER_AGGREGATOR=url,
            SHOAL_LEARNER_TOKEN=tokens["learner"],
        ):  # fmt: skip
            wait_for(f"http://127.0.0.1:{other}/ready")
            one_round(url, tokens)
            metrics = wait_for(f"http://127.0.0.1:{other}/metrics").text
            assert "shoal_learner_in_touch 1.0" in metrics
            assert "news" not in metrics
    assert not (tmp_path / "l" / "aggregator.key").exists()


def test_one_command_serves_both_roles_and_ends_with_all_its_children(
    sqlite_stores: Stores, tmp_path: Path
) -> None:
    with Tree(sqlite_stores, tmp_path) as tree:
        one_round(f"http://127.0.0.1:{tree.port}", tree.tokens)
        children = tree.children()
        assert len(children) == 2
        for pid in children:  # each role is told its own settings only
            known = Path(f"/proc/{pid}/environ").read_bytes()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            names = {n.split(b"=")[0] for n in known.split(b"\0") if n.startswith(b"SHOAL_")}
            if command.rstrip(b"\0").endswith(b"learner"):
                hidden, other = "aggregator", b"SHOAL_AGGREGATOR_"
            else:
                hidden, other = "learner", b"SHOAL_LEARNER_"
                names.discard(b"SHOAL_LEARNER_TOKEN")
            assert not any(name.startswith(other) for name in names)
            assert not names & {b"SHOAL_DATA", b"SHOAL_CONFIG"}
            store = getattr(sqlite_stores, hidden).removeprefix("sqlite:///")
            for secret in (store, f"{hidden}.db", f"{hidden}.key"):
                assert secret.encode() not in known + command
        os.kill(tree.process.pid, signal.SIGKILL)
        tree.process.wait()
        ends = time.monotonic() + 120
        while time.monotonic() < ends and any(_running(pid) for pid in children):
            time.sleep(0.05)
        assert not any(_running(pid) for pid in children)


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("arguments", "environment", "rule"),
    [
        (["learner"], {}, "learner.token must be a learner's token"),
        (["aggregator"], {"SHOAL_AGGREGATOR_DATABASE": "mysql://x"}, "database must be sqlite or"),
        (["aggregator"], {"SHOAL_AGGREGATOR_PORT": "x"}, "aggregator.port must be a whole number"),
        ([], {"SHOAL_AGGREGATOR_DATABASE": "mysql://x"}, "database must be sqlite or postgresql"),
        (["--config", "missing.toml"], {}, "config must be a readable TOML file"),
        ([], {"SHOAL_DATA": f"{__file__}/data"}, "data must be a folder that can be written; [Err"),
        (["aggregator"], {"SHOAL_DATA": f"{__file__}/data"}, "store can't be opened: [Errno 20]"),
        (
            ["aggregator"],
            {"SHOAL_AGGREGATOR_DATABASE": "postgresql://nobody@127.0.0.1:1/none"},
            "the aggregator's store can't be opened: connection failed",
        ),
    ],
)
def test_a_wrong_setting_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], rule: str
) -> None:
    ports = {"SHOAL_AGGREGATOR_PORT": "0", "SHOAL_LEARNER_PORT": "0"}
    done = attempt(*arguments, **({"SHOAL_DATA": str(tmp_path)} | ports | environment))
    assert done.returncode == 2
    assert rule in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("Error: ") == 1


def attempt(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "shoal.cli", "serve", *arguments],
        env=os.environ | environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("arguments", [[], ["aggregator"]])
def test_a_port_in_use_is_one_line_and_nothing_is_made(
    tmp_path: Path, arguments: list[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = attempt(
            *arguments, SHOAL_DATA=str(tmp_path / "data"), SHOAL_AGGREGATOR_PORT=port,
            SHOAL_LEARNER_PORT="0",
        )  # fmt: skip
    assert done.returncode == 2
    assert f"a free address of this machine; 127.0.0.1 {port}" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Fatal" not in done.stderr
    assert "shoal.operator" not in done.stdout
    assert not (tmp_path / "data" / "aggregator.db").exists()


def test_answers_do_not_wait_for_the_network_to_ask_for_more() -> None:
    """By its protocol asyncio knows that it may switch off the delay of small packets."""
    with bind("aggregator", "127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_idle_connections_keep_nobody_out_and_are_closed(tmp_path: Path) -> None:
    port = free_port()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    opened: list[socket.socket] = []
    log = tmp_path / "log"
    process = subprocess.Popen(
        ["sh", "-c", 'ulimit -n 1024; exec "$@" 2>"$0"', str(log),
         sys.executable, "-m", "shoal.cli", "serve", "aggregator"],
        env=os.environ | {
            "SHOAL_DATA": str(tmp_path), "SHOAL_AGGREGATOR_PORT": str(port),
            "SHOAL_AGGREGATOR_BODY_SECONDS": "5",
        },
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(f"http://127.0.0.1:{port}/health")
        for _ in range(1100):
            opened.append(socket.create_connection(("127.0.0.1", port), timeout=60))
            with suppress(OSError):  # it may be closed already
                opened[-1].sendall(b"GET /he")
        assert wait_for(f"http://127.0.0.1:{port}/health").json() == {"ok": True}
        for connection in opened:
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    finally:
        for connection in opened:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        process.terminate()
        process.wait(60)
    assert "Traceback" not in log.read_text()


@dataclass(frozen=True)
class Disk:
    """An aggregator whose disk can be full: none of its files may grow."""

    process: subprocess.Popen[str]
    url: str
    tokens: dict[str, str]

    @contextmanager
    def full(self) -> Iterator[None]:
        before = resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (1024, before[1]))
        try:
            yield
        finally:
            resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disk]:
    folder, port = tmp_path_factory.mktemp("disk"), free_port()
    url = f"http://127.0.0.1:{port}"
    with role("aggregator", SHOAL_DATA=str(folder), SHOAL_AGGREGATOR_PORT=str(port)) as process:
        wait_for(f"{url}/ready")
        yield Disk(process, url, read_tokens(folder / "tokens.env"))


def test_a_full_disk_is_a_problem_and_shows_in_readiness(disk: Disk) -> None:
    headers = {"Authorization": f"Bearer {disk.tokens['admin']}"}
    path, body = f"{disk.url}/v1/tokens/new", {"role": "app", "campaigns": ["*"]}
    with disk.full():
        answer = httpx.put(path, json=body, headers=headers)
        assert answer.status_code == 503
        assert answer.json()["type"] == "urn:shoal:problem:store-away"
        ends = time.monotonic() + 60
        while httpx.get(f"{disk.url}/ready").status_code == 200:
            assert time.monotonic() < ends
            time.sleep(0.1)
    wait_for(f"{disk.url}/ready")
    assert httpx.put(path, json=body, headers=headers).status_code == 200


def test_a_full_disk_at_login_is_503(disk: Disk) -> None:
    form = {"token": disk.tokens["analyst"]}
    with disk.full():
        answer = httpx.post(f"{disk.url}/login", data=form)
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["content-type"].startswith("text/html")
        assert "set-cookie" not in answer.headers
    ends = time.monotonic() + 120
    while httpx.post(f"{disk.url}/login", data=form).status_code != 303:
        assert time.monotonic() < ends


def test_a_second_aggregator_on_a_store_is_refused_whatever_its_key_file(
    stores: Stores, tmp_path: Path
) -> None:
    own = {
        "SHOAL_DATA": str(tmp_path / "first"),
        "SHOAL_AGGREGATOR_PORT": "0",
        "SHOAL_AGGREGATOR_DATABASE": stores.aggregator,
    }
    other = own | {"SHOAL_DATA": str(tmp_path / "second")}
    with role("aggregator", **own) as first:
        assert first.stdout is not None
        assert first.stdout.readline().startswith("Tokens of admin")
        done = attempt("aggregator", **other)
        assert done.returncode == 2
        assert "another one has the store " in done.stderr
        assert (stores.aggregator.removeprefix("sqlite:///") in done.stderr) is (
            stores.aggregator.startswith("sqlite")
        )
        assert not (tmp_path / "second" / "aggregator.key").exists()
        first.kill()
    with role("--new-tokens", "aggregator", **other) as second:  # the lock went with the process
        assert second.stdout is not None
        assert second.stdout.readline().startswith("Tokens of admin")
