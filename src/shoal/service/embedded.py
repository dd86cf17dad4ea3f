"""A temporary service: ``shoal serve`` in a folder that is removed when it ends."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from shoal.errors import InvalidInputError, ShoalError

READY = "The dashboard is at"  # how the line begins that says so


@dataclass(frozen=True)
class Embedded:
    """A running service: its address, a token for each role, and the supervisor's process."""

    url: str
    tokens: dict[str, str]
    pid: int


def read_tokens(file: Path) -> dict[str, str]:
    """Read the tokens that a first start has written, by role."""
    lines = (line.partition("=") for line in file.read_text().splitlines())
    return {name.split("_")[1].lower(): token for name, _, token in lines}


@contextmanager
def embedded(*, port: int = 0, settings: Mapping[str, str] | None = None) -> Iterator[Embedded]:
    """Run both roles until the block ends; leave no process and no file.

    Port 0 is any that is free. ``settings`` other than the defaults go by the names of their
    environment variables.
    """
    with TemporaryDirectory(prefix="shoal-") as name, ExitStack() as stack:
        folder = Path(name)
        port = free_port(port=port)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SHOAL_")} | {
            "SHOAL_DATA": str(folder / "data"),
            "SHOAL_AGGREGATOR_PORT": str(port),
            "SHOAL_LEARNER_PORT": str(free_port()),
            **(settings or {}),
        }
        log = stack.enter_context((folder / "log").open("w+"))
        tree = subprocess.Popen(
            [sys.executable, "-m", "shoal.cli", "serve"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C is for this process, which then ends the others
        )
        stack.callback(_stop, tree)
        assert tree.stdout is not None
        while not (line := tree.stdout.readline()).startswith(READY):
            if not line:
                log.seek(0)
                lines = log.read().strip().splitlines() or ["no reason"]
                raise ShoalError(f"the service did not start: {lines[-1]}")
        tokens = read_tokens(folder / "data" / "tokens.env")
        yield Embedded(f"http://127.0.0.1:{port}", tokens, tree.pid)


def free_port(*, port: int = 0) -> int:
    """Return a free port of this machine, or refuse the one that is named."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise InvalidInputError(f"port must be free; {port}: {error}.") from None
        chosen: int = trial.getsockname()[1]
        return chosen


def _stop(tree: subprocess.Popen[str]) -> None:
    """End the supervisor, which ends its children; a second Ctrl-C must not leave them behind."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        tree.terminate()
        tree.wait()
        if tree.stdout is not None:
            tree.stdout.close()
    finally:
        signal.signal(signal.SIGINT, before)
