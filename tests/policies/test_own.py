"""A policy of one's own is taken wherever one of Shoal's is, by one rule."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.support.policies import Greedy

from shoal.cli.main import main
from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError, UnknownNameError
from shoal.experiments import compare, price, simulate, simulate_shards
from shoal.experiments.sweep import Configuration, read_sweep, status, sweep
from shoal.policies import Policy, find_policy, own
from shoal.policies.own import code_hash, is_sendable
from shoal.service.campaign import Campaign

NAME = "tests.support.policies:Greedy"
SMALL: dict[str, Any] = {"n_users": 12, "n_arms": 3, "min_group_size": 3, "horizon": 20}
HERE = LocalEngine(n_workers=1)


@pytest.fixture
def entry_point(monkeypatch: pytest.MonkeyPatch) -> str:
    points = {name: EntryPoint(name, NAME, own.GROUP) for name in ("their-greedy", "shoal")}
    monkeypatch.setattr("shoal.policies.registry.installed", lambda: points)
    monkeypatch.setattr("shoal.policies.own.installed", lambda: points)
    return "their-greedy"


def test_a_class_its_name_and_an_entry_point_are_the_same_policy(entry_point: str) -> None:
    entries = [find_policy(policy) for policy in (Greedy, NAME, entry_point)]
    assert all(entry == entries[0] for entry in entries)
    assert entries[0].options() == {"epsilon": 0.1}
    assert (entries[0].anonymous, entries[0].allows, entries[0].regroups) == (True, False, False)
    assert find_policy("shoal").policy is not Greedy, "Shoal's own names come first"
    with pytest.raises(UnknownNameError, match="did you mean 'their-greedy'"):
        find_policy("their-gredy")


def test_every_experiment_takes_it(entry_point: str) -> None:
    options = {"epsilon": 0.5}
    runs = [simulate(p, options=options, **SMALL) for p in (Greedy, NAME, entry_point)]
    assert all(np.array_equal(run.curves, runs[0].curves) for run in runs)
    assert [run.policy for run in runs] == ["Greedy", NAME, entry_point]
    assert simulate_shards(NAME, n_shards=2, engine=HERE, **SMALL).curves.shape == (2, 20)
    found = compare(
        policies=["random", Greedy, NAME], instances="uniform", n_runs=2, engine=HERE,
        options={Greedy: options, NAME: options}, **SMALL,
    )  # fmt: skip
    assert found.config["own_policies"] == {"Greedy": NAME}
    records = found.records
    assert records.filter(policy=NAME)["regret"].equals(records.filter(policy="Greedy")["regret"])
    answer = price(policy=Greedy, rate=0.2, n_users=30, n_arms=2, horizon=10,
                   min_group_sizes=5, n_runs=2, engine=HERE)  # fmt: skip
    assert answer.config["policy"] == "Greedy"
    with pytest.raises(UnknownNameError, match=r"option of 'Greedy' .* did you mean 'epsilon'"):
        simulate(Greedy, options={"epsilom": 1}, **SMALL)


def test_a_policy_that_does_not_take_shards_plays_each_run_by_itself() -> None:
    """One estimate for all users would mix runs that are shards of one problem."""
    shared: dict[str, Any] = {"policies": Greedy, "instances": "uniform", "engine": HERE, **SMALL}
    one, three = compare(n_runs=1, **shared), compare(n_runs=3, **shared)
    assert three.records.filter(run=0)["regret"].equals(one.records["regret"])
    assert three.summary()["user_rounds"].item() == 3 * 12 * 20
    stack = np.random.default_rng(0).random((3, 12, 3))
    run = simulate(Greedy, stack, min_group_size=3, horizon=20)
    assert (run.problem.n_shards, run.problem.n_users, run.curves.shape) == (3, 36, (3, 20))
    grid = Configuration(policies=["random", Greedy], users=[12], arms=[3], min_group_size=[3])
    assert [cell.n_runs for cell in grid.cells()] == [20] + 20 * [1]
    assert grid.n_cells == 21
    with pytest.raises(InvalidInputError, match=r"n_shards must be 1 for Greedy.*got 3"):
        Greedy(run.problem, rng=np.random.default_rng(0))


def test_a_class_that_only_this_process_has_is_played_here() -> None:
    class Local(Greedy):
        pass

    assert is_sendable(Greedy)
    assert not is_sendable(Local)
    shared: dict[str, Any] = {"instances": "uniform", "n_runs": 1, **SMALL}
    assert compare(policies=[Local, Greedy], **shared).records.height == 40
    with pytest.raises(InvalidInputError, match=r"in a module that worker processes.*Local"):
        compare(policies=[Local, Greedy], engine=LocalEngine(n_workers=2), **shared)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("no_such_module:Greedy", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("tests.support.policies:Gredy", "has no attribute 'Gredy'"),
        (
            "os:getcwd",
            r"function of \(problem, \*, rng\) that makes one; got <built-in function getcwd>",
        ),
        ("shoal.model:Problem", "a subclass of shoal.policies.Policy"),
    ],
)
def test_what_is_no_policy_is_refused(policy: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        simulate(policy, **SMALL)


def test_a_request_to_the_service_cannot_name_a_module() -> None:
    with pytest.raises(ValueError, match="must be the name of an installed policy"):
        Campaign(arms=["a", "b"], min_group_size=5, seats=30, policy=NAME)


SOURCE = """
from tests.support.policies import Greedy
class Mine(Greedy):
    "Greedy, {word}."
"""


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
    with pytest.raises(InvalidInputError, match=r"code was .*my_module:Mine.* Give --new FOLDER"):
        sweep(grid, out, engine=HERE)
    new = sweep(grid, out, new=tmp_path / "new", engine=HERE)
    assert (new.taken, new.done) == (1, 2), "cells of other policies are copied"


def test_a_sweep_takes_a_class_that_can_be_found_again() -> None:
    grid = Configuration(policies=[Greedy], options={Greedy: {"epsilon": [0.1]}})
    assert grid.policies == (NAME,)
    assert {cell.policy for cell in grid.cells()} == {NAME}

    class Local(Policy):
        pass

    with pytest.raises(InvalidInputError, match="policy must be defined in a module"):
        Configuration(policies=[Local])


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
