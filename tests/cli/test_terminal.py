"""The command as people meet it in a terminal: completion, Ctrl-C, ASCII, missing extras."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from shoal.cli import console
from shoal.cli.choices import CHOICES
from shoal.cli.main import COMMANDS, SECTIONS, main
from shoal.cli.streams import raise_if_interrupted, watch_interrupts
from shoal.decompositions import METHODS
from shoal.engines import ENGINES
from shoal.environments import REWARDS
from shoal.instances import INSTANCES
from shoal.instances.rows import SCALES
from shoal.policies import POLICIES
from shoal.service.aggregator.tokens import ROLES

SHOAL = [sys.executable, "-m", "shoal.cli"]
SMALL = ["--users", "12", "--arms", "3", "--min-group-size", "2"]


@pytest.mark.parametrize(
    ("kind", "known"),
    {
        "engine": ENGINES,
        "instance": INSTANCES,
        "method": METHODS,
        "policy": POLICIES,
        "rewards": REWARDS,
        "role": ROLES,
        "scale": SCALES,
    }.items(),
)
def test_names_to_complete_are_those_that_the_library_knows(
    kind: str, known: Iterable[str]
) -> None:
    assert list(CHOICES[kind]) == list(known)


def test_help_tells_a_story_and_shows_choices() -> None:
    page = CliRunner().invoke(main, ["--help"]).output
    headings = [page.index(f"\n{heading}:") for heading in SECTIONS]
    assert headings == sorted(headings)
    assert sorted(COMMANDS) == sorted(set(COMMANDS))
    page = CliRunner().invoke(main, ["simulate", "--help"]).output
    assert "[uniform|linear|clustered]" in page
    assert "[bernoulli|gaussian|bounded|deterministic]" in page


COMPLETE = r"""
eval "$(_SHOAL_COMPLETE=bash_source shoal)"
complete -p shoal > /dev/null || exit 3
for line in "shoal sim" "shoal simulate elimination-l" "shoal compare --policies ucb,thom" \
            "shoal simulate --instance " "shoal research dec"; do
    COMP_LINE=$line; read -ra COMP_WORDS <<< "$line"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
    _shoal_completion shoal
    echo "$line: ${COMPREPLY[*]}"
done
"""


def test_bash_completes_commands_and_names(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash
    command = tmp_path / "shoal"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m shoal.cli "$@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        [bash, "-c", COMPLETE],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "shoal sim: simulate",
        "shoal simulate elimination-l: elimination-lp",
        "shoal compare --policies ucb,thom: ucb,thompson",
        "shoal simulate --instance : uniform linear clustered",
        "shoal research dec: decompose",
    ]


ENDLESS = {
    "simulate": ["simulate", "random", "--horizon", "1000000000", *SMALL],
    "compare": ["compare", "--policies", "random", "--horizon", "1000000000", *SMALL],
    "price": ["price", "--policy", "random", "--rounds", "100000000", "--users", "60",
              "--arms", "3", "--rate", "0.2", "--min-group-size", "2,5"],
    "research": ["research", "explore-beta", "--seconds", "600"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "loaded"), [("simulate", "numpy"), *((name, "numba") for name in ENDLESS)]
)
def test_ctrl_c_ends_a_command_in_one_line(command: str, loaded: str) -> None:
    with subprocess.Popen(
        [*SHOAL, *ENDLESS[command]], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        wait_for(running.pid, loaded)
        running.send_signal(signal.SIGINT)  # once: it must not be lost
        with suppress(subprocess.TimeoutExpired):
            running.wait(timeout=120)
        running.kill()
        out, err = running.communicate()
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "Stopped."
    assert out == ""


SWALLOWED = """
import os, signal
from shoal.cli.streams import watch_interrupts

class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(10_000_000))  # it arrives here, where Python drops what is raised

with watch_interrupts():
    try:
        Finalised()
        sum(range(10_000_000))
        print("lost")
    except KeyboardInterrupt:
        print("raised again")
"""


def test_ctrl_c_in_a_finaliser_is_raised_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("raised again\n", "")


INSIDE_EXEC = """
import sys
from shoal.cli.streams import watch_interrupts

with watch_interrupts() as interrupts:
    try:
        exec("interrupts.handle(2, None)")
    except KeyboardInterrupt:
        pass
sys.exit(130)
"""


def test_ctrl_c_while_a_class_is_made_leaves_the_exit_code_alone() -> None:
    assert subprocess.run([sys.executable, "-c", INSIDE_EXEC], check=False).returncode == 130


def wait_for(pid: int, package: str) -> None:
    """Wait until a process has loaded a file of a package."""
    ends = time.monotonic() + 120
    while f"/{package}" not in Path(f"/proc/{pid}/maps").read_text():
        assert time.monotonic() < ends, f"{package} was never loaded"
        time.sleep(0.02)


ASCII, PLAIN = {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words", "setting"),
    [
        (["policies"], "O(N*C*K*sqrt T)", ASCII),
        (["policies"], "O(N*C*K*sqrt T)", PLAIN),
        (["research", "explore-beta", "--help"], "beta >= 1/ceil(K(C+1)/U)", PLAIN),
        (["simulate", "random", "--horizon", "50", *SMALL], "no group was seen", ASCII),
    ],
    ids=["policies, ascii", "policies, C", "explore-beta, C", "simulate, ascii"],
)
def test_an_ascii_terminal_gets_ascii(
    arguments: list[str], words: str, setting: dict[str, str]
) -> None:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONIOENCODING", "PYTHONUTF8")}
    done = subprocess.run(
        [*SHOAL, *arguments],
        env=kept | {"COLUMNS": "120"} | setting,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = (done.stdout + done.stderr).decode("ascii")
    assert "?" not in text
    assert words in " ".join(text.split())


BLOCKED = """
import sys
sys.modules.update(dict.fromkeys({packages}))  # an import of these fails, as if not installed
from shoal.cli.main import main
main(sys.argv[1:], prog_name="shoal")
"""
EXTRA_PACKAGES = (
    "altair", "vl_convert", "jinja2", "markupsafe", "fastapi", "uvicorn", "msgspec", "sqlalchemy",
    "alembic", "httpx", "prometheus_client", "python_multipart", "pydantic", "starlette", "h11",
    "ray", "opendp", "psycopg",
)  # fmt: skip
TINY = ["--horizon", "30", *SMALL]


def run_without_extras(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED.format(packages=EXTRA_PACKAGES), *arguments],
        capture_output=True, text=True, check=False, cwd=folder,
    )  # fmt: skip


@pytest.mark.slow
def test_the_core_simulates_and_compares_without_any_extra(tmp_path: Path) -> None:
    done = run_without_extras(
        tmp_path, "compare", "--policies", "elimination-lp,random", "--runs", "2", "--workers", "1",
        *TINY, "--out", "out",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    missing = "No figure will be drawn: altair is missing: pip install 'shoal[figures]'."
    assert missing in done.stderr
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        "records.parquet", "summary.csv", "config.json",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "."], "altair is missing: pip install 'shoal[figures]'."),
        (["demo"], "fastapi is missing: pip install 'shoal[service]'."),
        (["campaign", "show"], "fastapi is missing: pip install 'shoal[service]'."),
        (
            ["simulate", "random", *TINY, "--shards", "2", "--engine", "ray"],
            "ray is missing: pip install 'shoal[cluster]'.",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_needs_an_extra_says_how_to_install_it(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = run_without_extras(tmp_path, *arguments)
    assert (done.returncode, done.stderr) == (2, f"Error: {message}\n")


def test_the_client_says_how_to_install_what_it_needs() -> None:
    program = "import sys; sys.modules['httpx'] = None; import shoal.client"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr.endswith("httpx is missing: pip install 'shoal[service]'.\n")


def test_ctrl_c_that_a_library_has_caught_ends_a_command_when_it_goes_on() -> None:
    with watch_interrupts(), console.progress("x") as update:
        with suppress(BaseException):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            update("", 1, 2)
    raise_if_interrupted()  # no more


def test_long_work_without_a_terminal_says_how_far_it_is_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with console.progress("learner") as update:
        update("", 1, 4)
        monkeypatch.setattr(console, "SILENT_SECONDS", -1.0)  # as if so much time had passed
        update("", 2, 4)
        monkeypatch.undo()
        update("", 3, 4)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("learner: 50 %, ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("columns", [30, 60, 75, 80])
def test_no_terminal_is_too_narrow_for_a_number(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    policy = "pooled-explore-then-commit"
    console.table(
        "uniform: total regret of 50 users over 500 rounds, 3 runs",
        ["policy", "regret", "± 95 %", "smallest group", "user-rounds/s"],
        [(policy, 126_529, 1_801, 4, "0.0619 M")],
    )
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= columns
    assert {policy, "126,529", "1,801", "user-rounds/s", "0.0619"} <= {
        word.removesuffix(":") for word in printed.split()
    }


def test_a_title_is_as_wide_as_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    title = "best-arm: 50 users, 5 arms, groups of at least 4"
    console.table(title, ["round"], [(1,)])
    assert capsys.readouterr().out.startswith(f"{title}\n")


def test_a_later_command_is_as_wide_as_its_own_terminal() -> None:
    widths = []
    for columns in ("200", "60"):
        printed = CliRunner().invoke(main, ["policies"], env={"COLUMNS": columns}).stdout
        widths.append(max(map(len, printed.splitlines())))
    assert widths[0] > 60 >= widths[1]
