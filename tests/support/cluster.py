"""A Ray cluster of two nodes on this machine, as an operator starts it, with the token on."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RAY = [sys.executable, "-m", "ray.scripts.scripts"]
NODE = [
    "--num-cpus=1",
    "--object-store-memory=80000000",
    "--disable-usage-stats",
    "--include-log-monitor=false",
    "--block",
]


@contextmanager
def two_nodes() -> Iterator[str]:
    """Run the cluster and yield its address; the token is in the environment meanwhile."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))  # short: a socket's path has a limit
    before = {name: os.environ.get(name) for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN")}
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    nodes: list[subprocess.Popen[bytes]] = []
    try:
        head = ["--head", "--port=0", "--include-dashboard=false", f"--temp-dir={folder}"]
        nodes.append(_start(head, folder))
        address = _address(folder, nodes[0])
        nodes.append(_start([f"--address={address}"], folder))
        _wait_for_nodes(address, nodes)
        yield address
    finally:
        for node in reversed(nodes):
            _end(node)
        for pid in _left(folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        shutil.rmtree(folder, ignore_errors=True)


def _start(arguments: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "said.txt").open("ab") as said:
        return subprocess.Popen(
            [*RAY, "start", *arguments, *NODE], stdout=said, stderr=said, start_new_session=True
        )


def _address(folder: Path, head: subprocess.Popen[bytes], *, patience: float = 60.0) -> str:
    file, end = folder / "ray_current_cluster", time.monotonic() + patience
    while not (file.is_file() and file.read_text()):
        assert head.poll() is None, (folder / "said.txt").read_text()
        assert time.monotonic() < end
        time.sleep(0.05)
    return file.read_text().strip()


def _wait_for_nodes(address: str, nodes: list[subprocess.Popen[bytes]]) -> None:
    """Wait until the cluster counts both nodes, asked from a process of its own."""
    ask = (
        "import ray, time; ray.init(address=%r, configure_logging=False)\n"
        "while len([n for n in ray.nodes() if n['Alive']]) < 2: time.sleep(0.05)"
    )
    subprocess.run([sys.executable, "-c", ask % address], check=True, timeout=90)
    assert all(node.poll() is None for node in nodes)


def _end(node: subprocess.Popen[bytes]) -> None:
    """Ask the node to end; it takes its own processes with it."""
    node.terminate()
    try:
        node.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(node.pid, signal.SIGKILL)
        node.wait()


def _left(folder: Path) -> list[int]:
    """Return the processes whose command names our own folder: a node's that did not end."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found
