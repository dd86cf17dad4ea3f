"""Joining a Ray cluster, or starting one, with Ray's token on.

Whoever reaches a Ray cluster without a token can run anything on it. So the token is never off
here: joining takes the cluster's own, from ``RAY_AUTH_TOKEN``, the file that
``RAY_AUTH_TOKEN_PATH`` names, or ``~/.ray/auth_token``; a cluster that is started for one command
gets a new random one.
"""

import logging
import os
import re
import secrets
import socket
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from threading import Timer
from typing import Any

from shoal.errors import InvalidInputError, ShoalError
from shoal.extras import need

ANSWER_SECONDS = 10.0
"""Time for a cluster to answer, once Ray is loaded."""

CONNECT_SECONDS = 4.0
"""Time for its address to accept a connection."""

TOKEN_REFUSED = "InvalidAuthToken"

ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # Ray's default, without its warning
    "RAY_USAGE_STATS_ENABLED": "0",
}

_JOIN = """
import sys, ray
print("joining", file=sys.stderr, flush=True)
ray.init(address=sys.argv[1], log_to_driver=False, configure_logging=False)
"""


def connect(*, address: str | None = None, n_workers: int | None = None) -> None:
    """Join the cluster at ``address`` (HOST:PORT, or "auto"), or start one on this machine.

    This machine must itself be a node of a cluster that is joined. A process that is connected
    already stays where it is. A cluster that was started ends with this process.
    """
    need("cluster")
    mode = os.environ.setdefault("RAY_AUTH_MODE", "token")
    if mode != "token":
        raise InvalidInputError(f"RAY_AUTH_MODE must be token, or not set; got {mode!r}.")
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if address is None and not _has_token():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)

    loaded = sys.modules.get("ray")
    if loaded and loaded.is_initialized():
        return
    if address is not None:
        _check_reachable(address)

    import ray

    # Ray reads mode and token when it is imported, which may be long ago.
    core: Any = import_module("ray._raylet")
    core.Config.initialize("")
    core.AuthenticationTokenLoader.instance().reset_cache()
    # The engine reports deaths, and standard output may have to be JSON; what Ray reports of its
    # nodes is in its own log files.
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    driver: Any = import_module("ray._private.worker")
    driver.print_to_stdstream = lambda *arguments, **options: None
    local: dict[str, Any] = {"num_cpus": n_workers, "include_dashboard": False}
    options = local if address is None else {}
    ray.init(address=address or "local", log_to_driver=False, configure_logging=False, **options)


def check_address(address: str) -> str:
    """Return an address that a cluster can have, or refuse it.

    >>> check_address("ray://10.0.0.1:10001")
    Traceback (most recent call last):
    shoal.errors.InvalidInputError: address must be HOST:PORT, or auto; got 'ray://10.0.0.1:10001'.
    """
    host, _, port = address.rpartition(":")
    if address == "auto" or (host and "/" not in host and port.isdigit()):
        return address
    raise InvalidInputError(f"address must be HOST:PORT, or auto; got {address!r}.")


def check_version(expected: str) -> None:
    """Refuse to work on a node that has another version of Shoal."""
    here = version("shoal")
    if here != expected:
        raise ShoalError(
            f"shoal must have the same version on all nodes of the cluster; got {here} on one "
            f"and {expected} where the work was started."
        )


def _has_token() -> bool:
    if os.environ.get("RAY_AUTH_TOKEN"):
        return True
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    return Path(path or Path.home() / ".ray" / "auth_token").is_file()


def _check_reachable(address: str) -> None:
    """Refuse a cluster that does not answer, before Ray is loaded, which takes long."""
    if not _has_token():
        raise ShoalError(
            f"the token of the Ray cluster at {address} must be in RAY_AUTH_TOKEN, in the file "
            "that RAY_AUTH_TOKEN_PATH names, or in ~/.ray/auth_token; got none. On the cluster, "
            "`ray get-auth-token` prints it."
        )
    problem = _connection_problem(address) or _join_problem(address)
    if problem:
        raise ShoalError(
            f"the Ray cluster at {address} must answer within {ANSWER_SECONDS:.0f} s; got "
            f"{problem}. Check the address (`ray status` on the cluster), that this machine is "
            "one of its nodes (`ray start --address=...`), the token (`ray get-auth-token`), the "
            "firewall, and that Ray and Python have the same versions on all nodes."
        )


def _connection_problem(address: str) -> str:
    """Return why nobody accepts a connection at this address, empty if somebody does."""
    host, _, port = address.rpartition(":")
    if not host:  # "auto"
        return ""
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except TimeoutError:
        return "no answer"
    except (OSError, OverflowError) as error:
        return f"no answer: {error}"
    return ""


def _join_problem(address: str) -> str:
    """Join from a process that can be killed: Ray tries for minutes and ignores Ctrl-C."""
    output = ""
    with subprocess.Popen(
        [sys.executable, "-c", _JOIN, address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        timeout = Timer(ANSWER_SECONDS, child.kill)
        for line in child.stderr or ():
            if line == "joining\n":
                timeout.start()
                continue
            output += line
            if TOKEN_REFUSED in line:
                child.kill()
        timeout.cancel()
    return _reason(output) if child.returncode else ""


def _reason(output: str) -> str:
    """Summarise the many lines that Ray prints."""
    if TOKEN_REFUSED in output:
        return "a refusal of the token"
    if "Version mismatch" in output:
        return "a version mismatch"
    if "Failed to connect to GCS" in output or not output.strip():
        return "no answer"
    return re.sub(r"^\[.*?\] \S+: ", "", output.strip().splitlines()[-1]).rstrip(".")
