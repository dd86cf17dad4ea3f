"""Runs a command as a unit's sandbox does, where no systemd runs: nothing but some folders can be
written, other processes are hidden, no capability is left, and the unit's system calls alone work.

``python confined.py UNIT FOLDER[,FOLDER...] COMMAND...`` in new user, mount and process namespaces.
Only the standard library: it is a program of its own.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

NAMESPACES = [
    "unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child",
]  # fmt: skip
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001  # libseccomp's actions


def command(unit: Path, writable: list[Path], *arguments: str) -> list[str]:
    """Return a command line that runs another one in the sandbox of a unit."""
    folders = ",".join(map(str, writable))
    return [*NAMESPACES, sys.executable, __file__, str(unit), folders, *arguments]


def service_of(unit: Path) -> dict[str, list[str]]:
    """Return the settings of a unit's service, each with all of its values."""
    values: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            values.setdefault(name, []).append(value)
    return values


def main(unit: Path, writable: list[str], arguments: list[str]) -> None:
    service = service_of(unit)
    assert service["ProtectSystem"] == ["strict"]
    for folder in writable:
        mount("--bind", folder, folder)
    mount("-o", "remount,bind,ro", "/")
    assert (service["ProcSubset"], service["ProtectProc"]) == (["pid"], ["invisible"])
    mount("-t", "proc", "-o", "subset=pid,hidepid=invisible", "proc", "/proc")
    assert service["CapabilityBoundingSet"] == [""]
    filter_calls(service["SystemCallFilter"])
    drop = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]
    os.execvp(drop[0], [*drop, *arguments])


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def filter_calls(lines: list[str]) -> None:
    """Let every system call fail that the lines do not allow, with EPERM."""
    allowed: set[str] = set()
    for line in lines:
        names = expand(line.removeprefix("~").split())
        allowed = allowed - names if line.startswith("~") else allowed | names
    allowed |= {"execve", "capset", "capget", "prctl"}  # setpriv's, before the command itself
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(_EPERM))
    for name in allowed:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            assert library.seccomp_rule_add(rules, _ALLOW, number, 0) == 0, name
    assert library.seccomp_load(rules) == 0


def expand(names: list[str]) -> set[str]:
    """Return system calls by name, with those of every group of systemd's."""
    calls: set[str] = set()
    for name in names:
        if name.startswith("@"):
            listing = ["systemd-analyze", "--no-pager", "syscall-filter", name]
            text = subprocess.run(listing, check=True, capture_output=True, text=True).stdout
            lines = [line.strip() for line in text.splitlines()[1:]]
            calls |= expand([line for line in lines if line and not line.startswith("#")])
        else:
            calls.add(name)
    return calls


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:])
