"""A policy of one's own is taken wherever one of Shoal's is, by one rule."""

from __future__ import annotations

import json
import re
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from tests.support.policies import Greedy

from shoal.cli.main import main
from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError, ShoalError, UnknownNameError
from shoal.experiments import compare, price, simulate, simulate_shards
from shoal.experiments.sweep import Configuration
from shoal.experiments.tune import tune
from shoal.model import Feedback, Plan, Problem
from shoal.policies import Policy, find_policy, own
from shoal.policies.contract import continues_from_its_state
from shoal.policies.own import is_sendable
from shoal.service.campaign import Campaign

NAME = "tests.support.policies:Greedy"
SMALL: dict[str, Any] = {"n_users": 12, "n_arms": 3, "min_group_size": 3, "horizon": 20}
HERE = LocalEngine(n_workers=1)


def test_a_class_its_name_and_an_entry_point_are_the_same_policy(entry_point: str) -> None:
    entries = [find_policy(policy) for policy in (Greedy, NAME, entry_point)]
    assert all(entry == entries[0] for entry in entries)
    with pytest.raises(InvalidInputError, match=r", random, shoal, their-greedy, "):
        find_policy("qqq")
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


class NoPlan(Greedy):
    def _choose(self) -> Any:
        return self.answer

    answer: Any = None


class Unprepared(Greedy):
    def __init__(self, problem: Problem, *, rng: np.random.Generator) -> None:
        self.answer = None


class Unfinished(Policy):
    def _choose(self) -> Any:
        return None


def deal(arms: Any, problem: Any, rng: Any) -> Any:
    return arms


def make_number(problem: Any, rng: Any) -> Any:
    return 3


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (NoPlan, "NoPlan._choose must return arms, groups and repeats; got None."),
        (
            type("Pair", (NoPlan,), {"answer": (1, 2)}),
            "Pair._choose must return arms, groups and repeats; got a tuple of 2.",
        ),
        (
            type("Endless", (NoPlan,), {"answer": (np.zeros(12, int), np.full(12, -1), None)}),
            "repeats must be a whole number of at least 1; got None.",
        ),
        (Unprepared, "Unprepared.__init__ must call super().__init__(problem, rng=rng)."),
        (
            Unfinished,
            "a policy's class must define _choose and _learn; got Unfinished without _learn.",
        ),
        (
            deal,
            "policy must be made from (problem, *, rng) and its options; got 'deal': "
            "missing a required argument: 'problem'.",
        ),
        (make_number, "policy must make a shoal.policies.Policy; got 3 of"),
        (
            "mine.Greedy",
            "policy must be a known name, or module:Class for one of your own, as in mine:Greedy; "
            "got 'mine.Greedy'.",
        ),
        ("Greedy", "as in module:Greedy; got 'Greedy'."),
    ],
)
def test_the_commonest_mistakes_are_named(policy: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        simulate(policy, **SMALL)


@pytest.mark.parametrize("names", ["_sum", ("_sum",), ("rng", "_sum")])
def test_a_class_whose_state_would_be_incomplete_is_refused(names: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"Mine.changing must be a tuple .*Policy.changing"):
        type("Mine", (Greedy,), {"changing": names})


def test_one_broken_entry_point_does_not_hide_the_other_policies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    points = {
        name: EntryPoint(name, value, own.GROUP)
        for name, value in {"broken": "tests.support.policies:Nowhere", "theirs": NAME}.items()
    }
    monkeypatch.setattr("shoal.policies.registry.installed", lambda: points)
    monkeypatch.setattr("shoal.policies.own.installed", lambda: points)
    done = CliRunner().invoke(main, ["policies"], env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert "theirs Everyone plays the arm" in text
    assert "broken can't be loaded: policy must be module:Class" in text
    table = json.loads(CliRunner().invoke(main, ["policies", "--json"]).stdout)
    assert table["theirs"]["options"] == {"epsilon": 0.1}
    assert "has no attribute 'Nowhere'" in table["broken"]["error"]


class Undescribed(Greedy):
    changing = (*Greedy.changing, "sum")


def test_a_class_without_a_docstring_is_not_described_by_that_of_its_base() -> None:
    assert find_policy(Greedy).summary.startswith("Everyone plays")
    assert find_policy(Undescribed).summary == ""


def test_the_contract_names_what_changing_names_and_the_policy_has_not() -> None:
    with pytest.raises(AssertionError, match=r"changing names \['sum'\], which the policy"):
        continues_from_its_state(Undescribed)


class Faulty(Greedy):
    """Fails in its second round, in one way or another."""

    def __init__(self, problem: Problem, *, rng: np.random.Generator, error: Any) -> None:
        super().__init__(problem, rng=rng)
        self.error = error

    def _learn(self, plan: Plan, feedback: Feedback) -> None:
        if self.rounds > 0:
            raise self.error
        super()._learn(plan, feedback)


def test_an_error_in_a_comparison_names_the_policy_and_the_run() -> None:
    shared: dict[str, Any] = {"instances": "uniform", "n_runs": 2, "engine": HERE, **SMALL}
    shared["policies"] = ["random", Faulty]
    with pytest.raises(ShoalError, match=r"^Faulty on uniform, run 0: no idea\.$"):
        compare(options={Faulty: {"error": ShoalError("no idea.")}}, **shared)
    with pytest.raises(KeyError) as failure:
        compare(options={Faulty: {"error": KeyError("a")}}, **shared)
    assert failure.value.__notes__ == ["In Faulty on uniform, run 0."]
    few = shared | {"n_users": 3, "policies": "elimination-lp"}
    with pytest.raises(InvalidInputError, match=r"^elimination-lp on uniform, runs 0 to 1: n_us"):
        compare(**few)


def test_tune_says_that_a_policy_of_ones_own_has_no_grid() -> None:
    with pytest.raises(InvalidInputError, match=r"one of your own has none.*policies:Greedy"):
        tune(policies=[NAME])


class Reference(Greedy):
    """Sees everyone."""

    anonymous = False
    takes_groups = takes_shards = True

    def _allow(self, eligible: Any) -> None:
        pass


def test_a_partial_has_the_attributes_of_its_class() -> None:
    entry, other = find_policy(Reference), find_policy(partial(Reference, epsilon=0.5))
    assert (other.anonymous, other.allows, other.regroups, other.takes_shards) == (
        entry.anonymous, entry.allows, entry.regroups, entry.takes_shards,
    ) == (False, True, True, True)  # fmt: skip
    assert other.summary == entry.summary == "Sees everyone."

    def make(problem: Problem, *, rng: np.random.Generator) -> Policy:
        return Reference(problem, rng=rng)

    assert find_policy(make).anonymous
    make.anonymous = False  # type: ignore[attr-defined]
    assert not find_policy(make).anonymous
    assert simulate(make, **SMALL).problem.min_group_size == 1
