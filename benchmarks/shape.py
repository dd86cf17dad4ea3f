"""The shape of the source: how much there is, and how far one has to read to follow one thing.

``python -m benchmarks.shape [TREE]`` prints a table for this tree or another checkout. It is not
one of the benchmarks that ``make bench`` runs: it measures the code, not what it does.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from benchmarks.report import ROOT, table

MAX_LINES, MAX_PARAMETERS = 60, 8
RUN_LENGTH = 6
COMMON = 8  # places beyond which a run of lines is a common shape, not a repetition
THIN = 3  # tokens up to which a line has no shape to speak of


class Function(NamedTuple):
    """One function of the tree."""

    place: str
    lines: int
    parameters: int


def main() -> None:
    tree = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    files = sorted((tree / "src").rglob("*.py"))
    every = [function for file in files for function in functions(file)]
    long = [f for f in every if f.lines > MAX_LINES]
    wide = [f for f in every if f.parameters > MAX_PARAMETERS]
    repeated = repetitions(files)
    rows: list[tuple[str, int]] = [
        ("files", len(files)),
        ("lines", sum(len(file.read_text("utf-8").splitlines()) for file in files)),
        ("longest file", max(len(file.read_text("utf-8").splitlines()) for file in files)),
        (f"functions over {MAX_LINES} lines", len(long)),
        (f"functions with more than {MAX_PARAMETERS} parameters", len(wide)),
        ("definitions of array types", sum(len(array_types(file)) for file in files)),
        (f"pairs of places that share {RUN_LENGTH} lines or their shape", len(repeated)),
        ("files that a round of the policy shoal passes", len(traced(tree, ROUND))),
        ("files that a report passes until it is durable", len(traced(tree, REPORT))),
    ]
    print(table(["measure", "value"], rows))
    for function in sorted({*long, *wide}):
        print(f"{function.place}: {function.lines} lines, {function.parameters} parameters")


def functions(file: Path) -> Iterator[Function]:
    """Yield the functions and methods of a file."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
            arguments = node.args
            n_parameters = sum(
                len(part) for part in (arguments.posonlyargs, arguments.args, arguments.kwonlyargs)
            )
            yield Function(f"{file.name}:{node.lineno} {node.name}", n_lines, n_parameters)


def array_types(file: Path) -> list[str]:
    """Return the array types that a file defines."""
    return re.findall(r"^(\w+)(?:: TypeAlias)? = NDArray\[", file.read_text("utf-8"), re.M)


def repetitions(files: list[Path]) -> list[tuple[str, str]]:
    """Return the pairs of places whose lines are alike but for names, numbers and strings.

    A pair of files counts once for each pair of places that no longer run covers.
    """
    windows: dict[tuple[str, ...], list[tuple[Path, int, int]]] = defaultdict(list)
    for file in files:
        shape = list(_shapes(file))
        for first in range(len(shape) - RUN_LENGTH + 1):
            run = shape[first : first + RUN_LENGTH]
            windows[tuple(text for _, text in run)].append((file, first, run[0][0]))
    starts: dict[tuple[Path, Path, int], list[tuple[int, int]]] = defaultdict(list)
    for places in windows.values():
        if len(places) <= COMMON:
            for (one, i, line), (other, j, _) in combinations(places, 2):
                if one != other or abs(i - j) >= RUN_LENGTH:
                    starts[one, other, j - i].append((i, line))
    pairs: dict[tuple[Path, Path], str] = {}
    for (one, other, _), found in starts.items():
        pairs.setdefault((one, other), f"{one.name}:{min(found)[1]}")
    return [(place, other.name) for (_, other), place in pairs.items()]


def _shapes(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with code in them, names and values left out."""
    lines: dict[int, list[str]] = defaultdict(list)
    with file.open("rb") as source:
        for token in tokenize.tokenize(io.BytesIO(source.read()).readline):
            word = token.string
            if token.type == tokenize.NAME:
                word = word if keyword.iskeyword(word) else "name"
            elif token.type in (tokenize.NUMBER, tokenize.STRING):
                word = "value"
            elif token.type != tokenize.OP:
                continue
            lines[token.start[0]].append(word)
    for number, words in sorted(lines.items()):
        if words[0] not in ("from", "import") and len(words) > THIN:
            yield number, " ".join(words)


TRACE = """
import sys, threading
from pathlib import Path
entered, active = set(), []
def trace(frame, event, argument):
    if active and event == "call" and "/src/shoal/" in frame.f_code.co_filename:
        if not frame.f_code.co_name.startswith("<module>"):
            entered.add(frame.f_code.co_filename)
"""
ROUND = """
import shoal
from shoal.policies.base import Policy
ask, asked = Policy.ask, []
def counting(policy):
    asked.append(policy)
    active[:] = [True] if len(asked) == 50 else []
    return ask(policy)
Policy.ask = counting
sys.setprofile(trace)
means = [[(7 * user + 3 * arm) % 10 / 10 for arm in range(3)] for user in range(12)]
shoal.simulate("shoal", means, min_group_size=3, horizon=60)
"""
REPORT = """
import time
from tempfile import TemporaryDirectory
from tests.support.stores import Stores
from tests.support.service import even, report, start, users
from tests.support.live import serve
from shoal.service.aggregator.report_queue import ReportBatch
finish = ReportBatch.finish
def finish_durable(batch, late, **outcome):
    active.clear()
    finish(batch, late, **outcome)
ReportBatch.finish = finish_durable
threading.setprofile(trace)
with TemporaryDirectory() as folder:
    stores = Stores(f"sqlite:///{folder}/aggregator.db", f"sqlite:///{folder}/learner.db")
    with serve(stores) as live:
        start(live.aggregator, even(12, size=3))
        client = live.client("app")
        client.report("news", 1, {user: 1.0 for user in users(12)[:6]})
        time.sleep(0.2)  # until the first request has been counted
        active.append(True)
        client.report("news", 1, {user: 1.0 for user in users(12)[6:]})
"""


def traced(tree: Path, code: str) -> set[str]:
    """Return the files with functions that ``code`` calls while it is ``active``, kernels too."""
    shown = "\nprint('\\n'.join(sorted(entered)))"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRACE + code + shown],
        cwd=tree,
        env={"PYTHONPATH": f"{tree}/src:{tree}", "NUMBA_DISABLE_JIT": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    return set(done.stdout.split())


if __name__ == "__main__":
    main()
