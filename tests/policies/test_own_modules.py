"""A policy of one's own in a module: sweeps know its code, the command line finds it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.support.policies import Greedy

from shoal.cli.main import main
from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError
from shoal.experiments.sweep import Configuration, read_configuration, read_sweep, status, sweep
from shoal.policies import Policy
from shoal.policies.own import code_hash

NAME = "tests.support.policies:Greedy"
HERE = LocalEngine(n_workers=1)
SOURCE = """
from tests.support.policies import Greedy
class Mine(Greedy):
    "Greedy, {word}."
"""


@pytest.mark.slow
def test_a_sweep_goes_on_with_the_same_code_and_refuses_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "my_module.py"
    module.write_text(SOURCE.format(word="first"))
    monkeypatch.syspath_prepend(str(tmp_path))
    grid = Configuration(
        policies=["random", "my_module:Mine"], users=[12], arms=[3], min_group_size=[3],
        horizon=[20], runs=1, options={"my_module:Mine": {"epsilon": [0.1, 0.5]}},
    )  # fmt: skip
    out = tmp_path / "out"
    assert sweep(grid, out, engine=LocalEngine(n_workers=1)).done == 3
    again = sweep(grid, out, engine=HERE)
    assert (again.before, again.done) == (3, 0)
    assert read_sweep(out)["policy"].unique().sort().to_list() == ["my_module:Mine", "random"]
    before = code_hash("my_module:Mine")
    module.write_text(SOURCE.format(word="second"))
    assert code_hash("my_module:Mine") != before
    assert status(out).done == 3, "what was played is still what it was"
    with pytest.raises(InvalidInputError, match=r"code was .*my_module:Mine.* name another"):
        sweep(grid, out, engine=HERE)
    new = sweep(grid, out, new=tmp_path / "new", engine=HERE)
    assert (new.taken, new.done) == (1, 2), "cells of other policies are copied"


def test_the_hash_of_a_policy_covers_its_base_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base_module.py"
    base.write_text(SOURCE.format(word="first"))
    child = "from base_module import Mine\nclass Child(Mine):\n    pass\n"
    (tmp_path / "child_module.py").write_text(child)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = code_hash("child_module:Child")
    assert before == code_hash("child_module:Child")
    base.write_text(SOURCE.format(word="second"))
    assert code_hash("child_module:Child") != before


def test_a_failed_cell_says_where_in_the_policy_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "    def _learn(self, plan, feedback):\n        np.zeros(3)[[7]]\n"
    source = "import numpy as np\n" + SOURCE.format(word="faulty") + source
    (tmp_path / "faulty_module.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    grid = Configuration(
        policies="faulty_module:Mine", users=12, arms=3, min_group_size=3, horizon=20, runs=1
    )
    assert sweep(grid, tmp_path / "out", engine=HERE).failed == 1
    (failure,) = status(tmp_path / "out").failures.values()
    assert failure["reason"].startswith("IndexError: index 7 is out of bounds")
    assert failure["reason"].endswith(f"({tmp_path}/faulty_module.py, line 7, in _learn)")


def test_a_sweep_takes_a_class_that_can_be_found_again() -> None:
    grid = Configuration(policies=[Greedy], options={Greedy: {"epsilon": [0.1]}})
    assert grid.policies == (NAME,)
    assert {cell.policy for cell in grid.cells()} == {NAME}

    class Local(Policy):
        pass

    with pytest.raises(InvalidInputError, match="policy must be defined in a module"):
        Configuration(policies=[Local])
    with pytest.raises(InvalidInputError, match=r"options beside it.*got a partial of .*:Greedy"):
        Configuration(policies=[partial(Greedy, epsilon=0.5)])


def test_arguments_of_other_types_are_named_by_a_sweep(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"such as read_configuration\(path\) .*'s.toml'"):
        sweep("s.toml", tmp_path)  # type: ignore[arg-type]
    for name, value in {"runs": [1, 2], "users": "many"}.items():
        with pytest.raises(InvalidInputError, match=f"^{name} must be a whole number"):
            Configuration(policies=["random"], **{name: value})  # type: ignore[arg-type]


def test_the_command_line_names_the_class_whose_constructor_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constructor = """
    def __init__(self, problem, *, rng, epsilon=0.1):
        super().__init__(problem, rng=rng, epsilon=epsilon / 2)
"""
    (tmp_path / "failing_here.py").write_text(SOURCE.format(word="here") + constructor)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    done = CliRunner().invoke(main, ["simulate", "failing_here:Mine", "-o", "epsilon=x"])
    assert done.exit_code == 2
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error:")]
    assert "policy 'failing_here:Mine' must take its problem and options; got TypeError: " in line
    assert "failing_here.py, line " in line
    assert "Traceback" not in done.stderr
    grid = tmp_path / "sweep.toml"
    name = "failing_here:Mine"
    grid.write_text(f'policies = ["{name}"]\n[options."{name}"]\nepsilon = ["x"]\n')
    with pytest.raises(InvalidInputError, match="policy 'failing_here:Mine' must take its problem"):
        read_configuration(grid)


def test_the_command_line_finds_a_module_in_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry_point: str
) -> None:
    (tmp_path / "here_only.py").write_text(SOURCE.format(word="here"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")  # restores the path afterwards
    rounds = ["--users", "12", "--arms", "3", "--min-group-size", "3", "--horizon", "20", "--json"]
    both = ["--policies", f"random,here_only:Mine,{entry_point}", "-o", "here_only:Mine.epsilon=0"]
    compared = CliRunner().invoke(
        main, ["compare", *both, "--runs", "1", "--workers", "1", "--instances", "uniform", *rounds]
    )
    assert compared.exit_code == 0, compared.output
    config = json.loads(compared.stdout)["config"]
    assert config["options"]["uniform/here_only:Mine"] == {"epsilon": 0}
    played = CliRunner().invoke(main, ["simulate", "here_only:Mine", *rounds])
    assert json.loads(played.stdout)["policy"] == "here_only:Mine"
    listed = CliRunner().invoke(main, ["policies", "--json"])
    assert json.loads(listed.output)[entry_point]["options"] == {"epsilon": 0.1}
