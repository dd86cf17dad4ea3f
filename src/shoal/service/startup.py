"""What a process of the service does before it serves, and once it does.

Before: nobody gets a copy of its memory, and compiled functions have a folder that can be written.
Then it says that it is ready: to the supervisor through a pipe, or to systemd, which does not call
a unit active before that.
"""

import ctypes
import os
import resource
import socket
import sys
from contextlib import suppress
from pathlib import Path

SUPERVISED = "SHOAL_SUPERVISED"  # the descriptor of the pipe to the supervisor
_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """Let no core dump, debugger or other process of this user read the memory: it has rewards.

    The limit alone is not enough, as it does not hold for a program that takes core dumps from the
    kernel.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def use_cache(data: Path) -> None:
    """Keep compiled functions and the chart script in ``data`` where the home can't be written.

    Without a cache each start would compile all of them. This process's children do as it does.
    """
    if not _is_writable(_user_cache()):
        folder = (data / "cache").absolute()
        if _is_writable(folder):
            os.environ["XDG_CACHE_HOME"] = str(folder)


def _user_cache() -> Path | None:
    with suppress(RuntimeError):  # a user without a home
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return None


def _is_writable(folder: Path | None) -> bool:
    if folder is None:
        return False
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def announce_ready() -> None:
    """Tell whoever started this process that it serves; a second call does nothing."""
    pipe = os.environ.pop(SUPERVISED, "")
    if pipe:
        with suppress(OSError):  # the supervisor has ended
            os.write(int(pipe), b"1")
        os.close(int(pipe))
    else:
        notify_systemd("READY=1")


def notify_systemd(state: str) -> None:
    """Send a state to systemd, if it started this process and waits for one."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel, suppress(OSError):
            channel.sendto(state.encode(), address.replace("@", "\0", 1))
