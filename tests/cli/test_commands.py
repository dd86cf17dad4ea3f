from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.support.commands import PRICE, run

from shoal.cli.main import COMMANDS
from shoal.cli.options import read_options
from shoal.policies import POLICIES

SMALL = ["--users", "12", "--arms", "3", "--min-group-size", "2", "--horizon", "300"]


def test_help_lists_every_command_and_each_explains_itself() -> None:
    overview = run("--help")
    assert overview.exit_code == 0
    for name in COMMANDS:
        assert name in overview.output
        page = run(name, "--help")
        assert page.exit_code == 0
        assert len(page.output.splitlines()) > 5


def test_help_and_version_load_nothing_heavy() -> None:
    check = (
        "import sys; from shoal.cli.main import main; main(['--help'], standalone_mode=False);"
        "heavy = {'numpy', 'numba', 'scipy', 'polars', 'altair', 'rich', 'highspy'};"
        "heavy &= set(sys.modules);"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_only_the_exact_decompositions_load_the_lp_solver() -> None:
    check = (
        "import sys, shoal, shoal.policies, shoal.decompositions, shoal.experiments;"
        "sys.exit('highspy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


@pytest.mark.slow
def test_compare_writes_records_figures_and_a_table(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(
        "compare", "--policies", "elimination-lp,random", "--runs", "3", *SMALL,
        "--workers", "1", "--out", str(out),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "elimination-lp" in done.output
    row = next(line for line in done.output.splitlines() if line.split()[:1] == ["random"])
    assert row.split()[3] == "none", "of random play, no group is seen"
    assert "uniform: total regret of 12 users over 300 rounds, 3 runs" in done.output
    names = {path.name for path in out.iterdir()}
    assert names == {
        "records.parquet", "summary.csv", "config.json",
        "regret-uniform.png", "regret-uniform.svg", "regret-linear.png", "regret-linear.svg",
    }  # fmt: skip
    again = run("compare", "--policies", "random", *SMALL, "--out", str(out))
    assert again.exit_code == 2
    assert "out must be a new folder" in again.stderr


def test_what_was_compared_is_not_lost_with_a_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("shoal.figures.save", fail)
    arguments = ("--policies", "random", "--runs", "2", *SMALL, "--workers", "1")
    done = run("compare", *arguments, "--out", str(tmp_path / "out"))
    assert isinstance(done.exception, OSError)
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"records.parquet", "summary.csv", "config.json"}


def test_compare_takes_ones_own_means_and_options_and_prints_json(tmp_path: Path) -> None:
    file = tmp_path / "means.npy"
    np.save(file, np.eye(12, 3))
    done = run(
        "compare", "--means", str(file), "--policies", "explore-then-commit", "--runs", "2",
        *SMALL, "-o", "explore-then-commit.exploration=0.2", "--workers", "1", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["config"]["options"] == {"given/explore-then-commit": {"exploration": 0.2}}
    assert found["summary"][0]["smallest_group"] == 2
    assert found["config"]["means_file"] == str(file)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("simulate random", "Run: {}"),
        ("compare --policies random --runs 1", "Records and configuration: {}"),
        ("research decompose active.json --demand 4", "Assignments: {}"),
    ],
)
def test_what_was_written_has_no_figure_where_none_can_be_drawn(
    command: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("active.json").write_text(json.dumps([[0, 1]] * 10))
    for place in ("options", "simulate", "compare", "decompose"):
        monkeypatch.setattr(f"shoal.cli.{place}.missing", lambda extra: "altair is missing.")
    sizes = [] if command.startswith("research") else SMALL
    done = run(*command.split(), *sizes, "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1] == line.format(tmp_path / "out")


def test_simulate_runs_the_flagship_unless_told_otherwise() -> None:
    assert json.loads(run("simulate", *SMALL, "--json").stdout)["policy"] == "shoal"


def test_simulate_shows_a_table_or_json() -> None:
    done = run("simulate", "elimination-greedy", *SMALL, "-o", "gamma=4")
    assert done.exit_code == 0, done.output
    assert "smallest group seen: 2" in done.output
    found = json.loads(run("simulate", "elimination-greedy", *SMALL, "--json").stdout)
    assert found["rounds"][-1] == 300
    assert found["cumulative_regret"][-1] == pytest.approx(found["regret"])


def test_simulate_writes_the_run_and_its_figure_into_a_new_folder(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["simulate", "random", *SMALL, "--json"]
    done = run(*arguments, "--out", str(out))
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == {"run.json", "regret.png", "regret.svg"}
    printed, written = json.loads(done.stdout), json.loads((out / "run.json").read_text())
    assert len(printed["rounds"]) == 10
    assert len(written["rounds"]) == 200
    assert printed["rounds"] == json.loads(run(*arguments).stdout)["rounds"]
    assert printed["regret"] == written["regret"]


def test_simulate_plays_shards_and_says_so() -> None:
    sharded = [
        "simulate", "shoal", "--instance", "clustered", "--users", "600", "--shards", "2",
        "--horizon", "20", "--workers", "1",
    ]  # fmt: skip
    done = run(*sharded)
    assert done.exit_code == 0, done.output
    assert "600 users in 2 shards" in " ".join(done.output.split())
    found = json.loads(run(*sharded, "--json").stdout)
    assert found["rounds"][-1] == 20
    assert found["smallest_group"] == 4


def test_policies_shows_all_of_them() -> None:
    done = run("policies")
    found = json.loads(run("policies", "--json").stdout)
    assert list(found) == list(POLICIES)
    for name in POLICIES:
        assert name in done.output
    assert found["elimination-lp"]["options"]["robust"] is True


def test_tune_writes_its_file_once(tmp_path: Path) -> None:
    out = tmp_path / "tuned.json"
    arguments = [
        "tune", "--instances", "uniform", "--policies", "explore-then-commit", "--runs", "2",
        *SMALL, "--workers", "1", "--out", str(out),
    ]  # fmt: skip
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert "explore-then-commit" in json.loads(out.read_text())["chosen"]["uniform"]
    again = run(*arguments)
    assert again.exit_code == 2
    assert "out must be a new file" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compar"], "did you mean 'compare'"),
        (["simulate", "elimination-pl"], "did you mean 'elimination-lp'"),
        (["simulate", "random", "--instance", "linaer"], "did you mean 'linear'"),
        (["simulate", "random", "--rewards", "gauss"], "did you mean 'gaussian'"),
        (["simulate", "random", "--horizon", "0"], "horizon must be a whole number of at least 1"),
        (["simulate", "random", "--users", "x"], "'x' is not a valid integer"),
        (["simulate", "random", "-o", "gamma"], "option must be NAME=VALUE; got 'gamma'"),
        (["simulate", "elimination-lp", "-o", "gamma=much"], "gamma must be a positive number"),
        (["simulate", "elimination-lp", "--users", "4"], "n_users must be greater than"),
        (["simulate", "random", "--means", "nowhere.csv"], "nowhere.csv"),
        (["simulate", "ucb", "--min-group-size", "0"], "min_group_size must be between 1 and"),
        (["simulate", "random", "--engine", "ray"], "--engine and --workers need --shards"),
        (["simulate", "random", "--shards", "3"], "n_users must be a multiple of n_shards=3"),
        (
            ["simulate", "random", "--shards", "2", "--means", "a.csv"],
            "--means must be left out beside --shards",
        ),
        ([*PRICE], "give one of --rate, --means and --log; got none"),
        (
            [*PRICE, "--rate", "0.1", "--means", "a.csv"],
            "give one of --rate, --means and --log; got --rate and --means",
        ),
        ([*PRICE, "--rate", "0.1", "--users", "9"], "--rate needs --users and --arms beside it"),
        (
            [*PRICE, "--rate", "0.1", "--users", "4", "--arms", "2"],
            "--min-group-size must be between 1 and n_users=4; got 5",
        ),
        (
            [*PRICE, "--rate", "2", "--users", "40", "--arms", "2"],
            "rate must be above 0 and at most 0.5; got 2.0",
        ),
        (
            [*PRICE, "--rate", "0.1", "--users", "9", "--arms", "2", "--min-group-size", "2,x"],
            "min_group_size must be whole numbers; got 'x'",
        ),
        ([*PRICE, "--log", "nowhere.csv"], "nowhere.csv must be a file to read"),
        (["tune", "--instances", "nope"], "instance must be a known name; got 'nope'"),
        (["tune", "--runs", "0"], "n_runs must be a whole number of at least 1; got 0"),
        (
            ["tune", "--out", sys.executable + "/tuned.json"],
            "out must lie in a folder that can be written",
        ),
        (
            ["tune", "--out", "nowhere/tuned.json"],
            "out must lie in a folder that exists; 'nowhere' does not",
        ),
        (
            ["simulate", "random", "--out", "nowhere/run"],
            "out must lie in a folder that exists; 'nowhere' does not",
        ),
        (["compare", "-o", "elimination-lp.gama=3"], "did you mean 'gamma'"),
        (
            ["compare", "--policies", "random", "-o", "elimination-lp.gamma=3"],
            "policy with options must be one of those that are played, random; got 'elimination",
        ),
        (["compare", "--policies", ","], "--policies must name at least one; got ','"),
        (["compare", "--policies", ""], "--policies must name at least one; got ''"),
        (["compare", "--instances", " ,"], "--instances must name at least one; got ' ,'"),
        (["tune", "--policies", ","], "--policies must name at least one; got ','"),
        (
            [*PRICE, "--rate", "0.1", "--users", "9", "--arms", "2", "--min-group-size", ","],
            "--min-group-size must name at least one; got ','",
        ),
        (["compare", "--workers", "0"], "workers must be a whole number of at least 1"),
        (["compare", "--policies", "ucb", "-o", "gamma=1"], "option must be POLICY.NAME=VALUE"),
        (["compare", "--policies", "ucb", "-o", "ucc.gamma=1"], "did you mean 'ucb'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert sum(line.startswith("Error:") for line in done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["simulate", "random"], ["compare", "--policies", "random"]])
def test_other_numbers_than_those_of_the_means_are_refused(
    command: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "means.csv"
    file.write_text("0.1,0.2\n0.3,0.4\n0.5,0.6\n")
    known = ["--means", str(file), "--min-group-size", "2", "--horizon", "5"]
    assert run(*command, *known, "--users", "3").exit_code == 0
    done = run(*command, *known, "--users", "50")
    assert done.exit_code == 2
    assert "n_users must be left out beside means, or be their number, 3; got 50." in done.stderr
    option = "--instance" if command[0] == "simulate" else "--instances"
    done = run(*command, *known, option, "linear")
    assert done.exit_code == 2
    assert f"{option[2:]} must be left out beside" in done.stderr


def test_means_outside_zero_and_one_are_refused_with_their_place(tmp_path: Path) -> None:
    file = tmp_path / "means.csv"
    file.write_text("0.1,0.2\n0.3,1.4\n0.5,0.6\n")
    done = run("simulate", "random", "--means", str(file), "--min-group-size", "2")
    assert done.exit_code == 2
    assert "user 1 on arm 1" in done.stderr
    assert "1.4" in done.stderr


def test_numbers_are_read_as_python_writes_them() -> None:
    pairs = ("a=.3", "b=+1", "c=-.5e1", "d=nan", "e=inf", "f=minimax", "g=5.", "h=[1]")
    values = {"a": 0.3, "b": 1, "c": -5.0, "d": "nan", "e": "inf", "f": "minimax", "g": 5.0}
    assert read_options(pairs) == values | {"h": [1]}
