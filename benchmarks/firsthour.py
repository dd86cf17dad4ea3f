"""The first hour: time from a clone to the first number, figure and campaign, and the sizes.

A newcomer's machine is played in a temporary folder: a fresh clone of the last commit, a new
virtual environment, empty caches for compiled functions and the chart script; only pip's cache is
this machine's, so that no network is measured. ``make demo`` runs in a clone of its own, on a
terminal of its own (a pty), which also shows how long it is silent.
"""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.report import ROOT, page, table

NUMBER = ["simulate", "--horizon", "2000", "--json"]
FIGURE = ["simulate", "--horizon", "2000", "--out", "first"]
CAMPAIGN = ["demo", "--headless", "--seconds", "1", "--json"]
EXTRAS = ("figures", "service", "postgres", "dp", "cluster")
SILENT_SECONDS = 2.0
DEMO_SECONDS = 120.0
CONTROL = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")  # colours, and a line that is written again
WORDS = re.compile(r"\w.*\w")
TOOLS = ("pip", "setuptools", "_distutils_hack", "pkg_resources")


class Newcomer:
    """A clone with an environment and caches of its own, and a clock that started with it."""

    def __init__(self, folder: Path) -> None:
        self.start, self.processor_start = time.perf_counter(), processor_seconds()
        self.clone = folder / "shoal"
        run(["git", "clone", "--quiet", str(ROOT), str(self.clone)], os.environ)
        hidden = ("SHOAL_", "NUMBA_", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        pip_cache = run([sys.executable, "-m", "pip", "cache", "dir"], os.environ).strip()
        self.environment = kept | {
            "XDG_CACHE_HOME": str(folder / "cache"),
            "PIP_CACHE_DIR": pip_cache,
            "PYTHON": base_python(),
        }

    def seconds(self) -> tuple[float, float]:
        """Return the time since the clone began, and the processor's, which ignores the load."""
        return time.perf_counter() - self.start, processor_seconds() - self.processor_start

    def make_environment(self) -> None:
        """Make a virtual environment, as the documentation says."""
        self.run(base_python(), "-m", "venv", ".venv")

    def install(self, target: str) -> None:
        """Install with pip, in the versions that the tests ran with."""
        pip = (".venv/bin/python", "-m", "pip", "install", "--quiet")
        self.run(*pip, "--constraint", "constraints.txt", target)

    def run(self, *command: str) -> str:
        """Return what a command prints in the clone."""
        return run(list(command), self.environment, folder=self.clone)

    def shoal(self, *arguments: str) -> str:
        """Return what the installed command prints."""
        return self.run(".venv/bin/shoal", *arguments)

    def size(self) -> tuple[int, float]:
        """Return the number of installed distributions and their MB, without tools and bytecode."""
        packages = next((self.clone / ".venv" / "lib").glob("python*/site-packages"))
        files = [
            file
            for file in packages.rglob("*")
            if file.is_file()
            and "__pycache__" not in file.parts
            and not file.relative_to(packages).parts[0].startswith(TOOLS)
        ]
        names = {f.parent.name for f in files if f.parent.name.endswith(".dist-info")}
        size = len(names), sum(file.stat().st_size for file in files) / 1e6
        print(f"{size[0]} packages, {size[1]:.0f} MB after {self.seconds()[0]:.0f} s", flush=True)
        return size


def processor_seconds() -> float:
    """Return the processor's time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def base_python() -> str:
    """Return the interpreter that this environment was made from."""
    return str(Path(sys.base_prefix) / "bin" / "python3")


def run(command: list[str], environment: Mapping[str, str], *, folder: Path = ROOT) -> str:
    """Return what a command prints; one that fails ends the benchmark with its words."""
    print("$", " ".join(command), flush=True)
    done = subprocess.run(
        command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout


def watched(command: list[str], newcomer: Newcomer) -> tuple[float, str]:
    """Run on a terminal; return the longest silence, and the last words before it."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(newcomer.clone)
        os.execvpe(command[0], command, newcomer.environment | {"TERM": "xterm", "COLUMNS": "100"})
    last = time.perf_counter()
    silence, before, text = 0.0, "", b""
    while True:
        select.select([terminal], [], [])
        try:
            part = os.read(terminal, 65_536)
        except OSError:  # the terminal of an ended process
            part = b""
        now = time.perf_counter()
        if now - last > silence:
            words = WORDS.findall(CONTROL.sub("\n", text.decode(errors="replace")))
            silence, before = now - last, words[-1] if words else ""
        last, text = now, (text + part)[-5000:]
        if not part:
            break
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(f"{' '.join(command)} failed:\n{text.decode(errors='replace')}")
    return silence, before[-60:]


def first_steps(newcomer: Newcomer) -> tuple[list[list[object]], list[list[object]]]:
    """Take the steps one after the other; return their times since the clone, and the sizes."""
    newcomer.make_environment()
    newcomer.install(".")
    sizes: list[list[object]] = [["core", "pip install .", *newcomer.size()]]
    number = json.loads(newcomer.shoal(*NUMBER))["regret"]
    assert number > 0
    times: list[list[object]] = []
    times.append(["first number", f"`shoal {' '.join(NUMBER[:3])}`", *newcomer.seconds()])
    newcomer.install(".[figures]")
    newcomer.shoal(*FIGURE)
    assert (newcomer.clone / "first" / "regret.png").stat().st_size > 0
    times.append(["first figure", f"`shoal {' '.join(FIGURE)}`", *newcomer.seconds()])
    sizes.append(["figures", "pip install '.[figures]'", *newcomer.size()])
    newcomer.install(".[service]")
    summary = json.loads(newcomer.shoal(*CAMPAIGN))
    assert summary["rounds"] >= 2
    assert summary["smallest_group"] >= summary["min_group_size"]
    times.append(["first campaign, two rounds released", "`shoal demo`", *newcomer.seconds()])
    sizes.append(["service", "pip install '.[service]'", *newcomer.size()])
    for extra in EXTRAS[2:]:
        newcomer.install(f".[{extra}]")
        sizes.append([extra, f"pip install '.[{extra}]'", *newcomer.size()])
    return times, sizes


def added(sizes: list[list[object]]) -> list[list[object]]:
    """Return what each step adds to those before it."""
    before = [0, 0.0]
    rows: list[list[object]] = []
    for name, command, n_packages, megabytes in sizes:
        assert isinstance(n_packages, int)
        assert isinstance(megabytes, float)
        rows.append([name, f"`{command}`", n_packages - before[0], megabytes - before[1]])
        before = [n_packages, megabytes]
    return rows


def main() -> None:
    load = os.getloadavg()[0]
    with TemporaryDirectory(prefix="shoal-firsthour-") as name:
        times, sizes = first_steps(Newcomer(Path(name)))
    with TemporaryDirectory(prefix="shoal-firsthour-") as name:
        client = Newcomer(Path(name))
        client.make_environment()
        client.install("./packaging/client")
        small = client.size()
    with TemporaryDirectory(prefix="shoal-firsthour-") as name:
        newcomer = Newcomer(Path(name))
        silence, before = watched(["make", "demo"], newcomer)
        demo, demo_processor = newcomer.seconds()
    times.append(["both results", "`make demo`", demo, demo_processor])
    client_row = ["the client alone", "`pip install ./packaging/client`", *small]
    page(
        "firsthour",
        "The first hour",
        "python -m benchmarks firsthour",
        "Seconds from `git clone` on, each line with all before it, but for `make demo`, which has "
        "a clone of its own. Every environment, and the cache of compiled functions, is new; the "
        f"package cache is warm. The machine's load was {load:.1f} when it began: 0 is quiet. The "
        "processor's seconds, of all cores together, hardly depend on the load.",
        table(["what", "command", "seconds", "processor s"], times),
        f"`make demo` may take {DEMO_SECONDS:.0f} s on two quiet cores; here it took {demo:.0f} s. "
        f"Its longest silence on a terminal was {silence:.1f} s, after “{before}”; "
        f"{SILENT_SECONDS:.0f} s are allowed.",
        "Packages and MB (10⁶ bytes, without bytecode) that each adds to those above it:",
        table(["what", "command", "packages", "MB"], [*added(sizes), client_row]),
    )


if __name__ == "__main__":
    main()
