from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from shoal.cli.main import main
from shoal.decompositions import METHODS, is_batched, is_decomposition

ACTIVE = [[0, 1], [0, 1], [1, 2], [0, 1, 2], [2], [2], [0], [1], [0, 2], [0, 1, 2]]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["research", *arguments])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "active.json"
    path.write_text(json.dumps({"active": ACTIVE, "demand": 12}))
    return path


def _matrix() -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    matrix = np.zeros((len(ACTIVE), 3), bool)
    for user, arms in enumerate(ACTIVE):
        matrix[user, arms] = True
    return matrix


@pytest.mark.parametrize("method", METHODS)
def test_every_method_writes_assignments_that_the_verifier_accepts(
    method: str, file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = run("decompose", str(file), "--method", method, "--min-crowd", "2", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "holds" in done.output
    assert {p.name for p in out.iterdir()} == {"assignments.parquet", "loads.png", "loads.svg"}
    written = pl.read_parquet(out / "assignments.parquet")
    assignments = np.array(written["arms"].to_list())
    repeats = written["repeats"].to_numpy()
    assert is_decomposition(_matrix(), 12, assignments, repeats, min_crowd=2)
    summary = json.loads(
        run("decompose", str(file), "--method", method, "--min-crowd", "2", "--json").stdout
    )
    assert summary["certified"]
    assert summary["ratio"] == pytest.approx(repeats.sum() / 12)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_pairs_of_user_and_arm_are_read_too(suffix: str, file: Path, tmp_path: Path) -> None:
    pairs = pl.DataFrame(
        [(u, a) for u, arms in enumerate(ACTIVE) for a in arms],
        schema=["user", "arm"],
        orient="row",
    )
    other = tmp_path / f"pairs.{suffix}"
    if suffix == "csv":
        pairs.write_csv(other)
    else:
        pairs.write_parquet(other)
    options = ["--min-crowd", "2", "--json"]
    expected = json.loads(run("decompose", str(file), *options).stdout)
    assert json.loads(run("decompose", str(other), "--demand", "12", *options).stdout) == expected


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("[[0], []]", ["--demand", "3"], "active[1] must have at least one active arm; got none"),
        (
            "[[0], [0]]",
            ["--demand", "3"],
            "arm 0 must be wanted by at least min_crowd=5 users; got 2",
        ),
        ("[[0], [0]]", [], "demand must be given"),
        ("[[0], [0]]", ["--demand", "0"], "demand must be a whole number of at least 1; got 0"),
        (
            "[[0], [-1]]",
            ["--demand", "3"],
            "active[1] must be a whole number of at least 0; got -1",
        ),
        ("{", ["--demand", "3"], "file must be readable"),
        ("{}", ["--demand", "3"], "active must be a list"),
        ("[[0]]", ["--demand", "3", "--method", "eular"], "did you mean 'euler'"),
    ],
)
def test_bad_files_and_demands_are_refused(
    content: str, arguments: list[str], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "active.json"
    path.write_text(content)
    done = run("decompose", str(path), *arguments)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("active.txt", "", "file must end in .json, .csv, .parquet"),
        ("active.csv", "user,arms\n0,1\n", "file must have a column 'arm'"),
        ("active.csv", "user,arm\n0,x\n", "column 'arm' must hold whole numbers"),
        ("active.parquet", "nonsense", "file must be readable"),
    ],
)
def test_unreadable_tables_are_refused(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(content)
    done = run("decompose", str(path), "--demand", "3")
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_missing_file_is_refused() -> None:
    assert "file must be readable" in run("decompose", "nowhere.json", "--demand", "3").stderr


@pytest.mark.parametrize("name", ["decompose", "explore-beta"])
def test_the_former_names_answer_with_where_the_commands_went(name: str) -> None:
    for arguments in ([], ["--help"], ["active.json", "--json"]):
        done = CliRunner().invoke(main, [name, *arguments])
        assert done.exit_code == 2
        assert f"shoal {name} is now: shoal research {name}" in done.stderr
    assert f"\n  {name} " not in CliRunner().invoke(main, ["--help"]).output
    assert f"\n  {name} " in run("--help").output


def test_explore_beta_writes_the_hardest_graph_with_its_certificate(tmp_path: Path) -> None:
    out = tmp_path / "hardest.json"
    arguments = ["explore-beta", "--arms", "2", "--min-group-size", "1", "--cluster-size", "2"]
    done = run(*arguments, "--seconds", "5", "--out", str(out))
    assert done.exit_code == 0, done.output
    content = json.loads(out.read_text())
    assert content["beta"] == content["upper"] == "2/3"
    assert content["exhaustive"]
    assert content["exact"]
    assert Fraction(content["guarantee"]) == Fraction(1, 2)
    active = np.zeros((len(content["active"]), 2), bool)
    for user, arms in enumerate(content["active"]):
        active[user, arms] = True
    assert is_batched(active, 2)
    assert sum(map(Fraction, content["certificate"]["set_weights"])) <= 1
    again = run(*arguments, "--out", str(out))
    assert again.exit_code == 2
    assert "out must be a new file" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--arms", "9"], "n_arms must be between 2 and 5"),
        (["--cluster-size", "1"], "cluster_size must be a whole number of at least 2; got 1"),
        (["--seconds", "0"], "seconds must be a positive number; got 0.0"),
    ],
)
def test_explore_beta_refuses_bad_input(arguments: list[str], message: str) -> None:
    done = run("explore-beta", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
