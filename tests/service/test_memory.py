"""Threat 29: what is in the aggregator's memory stays there, whatever ends the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
from tests.service.test_serve import wait_for
from tests.support.chaos import free_port

from shoal.service.embedded import read_tokens

CANARY = "canary-73719377"


def started(folder: Path, *command: str, **environment: str) -> subprocess.Popen[bytes]:
    """A process whose own limit allows core dumps of any size, in a folder of its own."""
    return subprocess.Popen(
        ["sh", "-c", 'ulimit -c unlimited; exec "$@"', "sh", sys.executable, *command],
        cwd=folder, env=os.environ | environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def abort(process: subprocess.Popen[bytes]) -> bool:
    """Abort a process; return whether its memory was dumped, to a file or to a program."""
    os.kill(process.pid, signal.SIGABRT)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = -signal.SIGABRT
    assert os.WTERMSIG(status) == signal.SIGABRT
    return os.WCOREDUMP(status)


def test_threat_29_core_dumps_and_swap(tmp_path: Path) -> None:
    """A process that is aborted with a secret in its memory leaves no core dump."""
    for name in ("service", "control"):
        (tmp_path / name).mkdir()
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    service = started(
        tmp_path / "service", "-m", "shoal.cli", "serve", "aggregator",
        SHOAL_DATA=str(tmp_path / "data"), SHOAL_AGGREGATOR_PORT=str(port),
    )  # fmt: skip
    try:
        wait_for(f"{url}/health")
        token = read_tokens(tmp_path / "data" / "tokens.env")["app"]
        path = f"{url}/v1/campaigns/{CANARY}/rounds/1/reports"
        body = {"reports": [{"user": CANARY, "reward": 0.73719377}]}
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.post(path, json=body, headers=headers).status_code == 404
        limits = Path(f"/proc/{service.pid}/limits").read_text()
        assert "Max core file size        0                    0" in limits
        dumped = abort(service)
    finally:
        service.kill()
    assert not dumped
    assert list((tmp_path / "service").iterdir()) == []
    # The control: without the service's care, the same signal dumps the canary.
    control = started(
        tmp_path / "control", "-c", f"import time; x = '{CANARY}'; open('up', 'w'); time.sleep(60)"
    )
    ends = time.monotonic() + 120
    while not (tmp_path / "control" / "up").exists() and time.monotonic() < ends:
        time.sleep(0.01)
    assert abort(control)
    for core in (tmp_path / "control").glob("core*"):  # where the kernel writes a file
        assert CANARY.encode() in core.read_bytes()
