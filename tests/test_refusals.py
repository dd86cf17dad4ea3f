"""Arguments of what is called less often are refused by name, rule and value too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from tests.support.policies import Greedy

import shoal
import shoal.experiments.tune as tuning
from shoal import mab
from shoal.engines import LocalEngine
from shoal.errors import InvalidInputError
from shoal.experiments import Comparison, Setting
from shoal.experiments import simulate_shards as _simulate_shards
from shoal.experiments.sweep import Configuration
from shoal.experiments.sweep import sweep as _sweep
from shoal.instances import load_means as _load_means
from shoal.instances.population import Population

# The calls are wrong on purpose, and no type checker is to say so.
Roster: Any = shoal.Roster
compare: Any = shoal.compare
decompose: Any = shoal.decompose
make_policy: Any = shoal.make_policy
simulate: Any = shoal.simulate
simulate_shards: Any = _simulate_shards
sweep: Any = _sweep
tune: Any = tuning.tune
greedy: Any = Greedy
load_means: Any = _load_means
draw: Any = Population.draw

MEANS = np.full((6, 2), 0.5)
RULES: dict[str, Any] = {"min_group_size": 3, "horizon": 10}
HERE = LocalEngine(n_workers=1)


class Unrandom(Greedy):
    def __init__(self, problem: Any, *, epsilon: float = 0.1) -> None:
        super().__init__(problem, rng=np.random.default_rng(0), epsilon=epsilon)


class Halved(Greedy):
    def __init__(self, problem: Any, *, rng: np.random.Generator, share: float = 0.2) -> None:
        super().__init__(problem, rng=rng, epsilon=share / 2)


def learner(policy: Any = "random", **options: Any) -> Any:
    problem = shoal.Problem(n_users=6, n_arms=2, min_group_size=3)
    return make_policy(policy, problem, rng=np.random.default_rng(0), options=options)


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "rows of two lengths": (
        lambda: decompose([[0, 1], [1]], 10, min_crowd=1),
        "active must be an array; got rows of different lengths",
    ),
    "a list that joins": (
        lambda: Roster(["ana"], arms=["x"], seats=3).join([1]),
        r"users must be ids that can be keys of a dict; got \[1\]",
    ),
    "a tuple of lists that joins": (
        lambda: Roster([([1],)], arms=["x"]),
        r"users must be ids that can be keys of a dict; got \(\[1\],\)",
    ),
    "a seed of a population": (
        lambda: draw(None, 10, 3),
        r"rng must be a numpy.random.Generator, such as np.random.default_rng\(0\); got 3",
    ),
    "means to tune on": (
        lambda: tune(policies="explore-then-commit", means=MEANS),
        "means must be left out of tune, .* give values of a policy's options to compare",
    ),
    "instances beside means": (
        lambda: compare(means=MEANS, instances="linear", **RULES),
        "instances must be left out beside means; got 'linear'",
    ),
    "an instance beside means": (
        lambda: compare(means=MEANS, instance="linear", **RULES),
        "instance must be left out beside means; got 'linear'",
    ),
    "options of instances beside means": (
        lambda: simulate("random", MEANS, instance_options={"rate": 0.1}, **RULES),
        "instance_options must be left out beside means; got {'rate': 0.1}",
    ),
    "a number as progress": (
        lambda: simulate("random", MEANS, progress=3, **RULES),
        r"progress must be a function of \(rounds_played\); got 3",
    ),
    "a number as the progress of shards": (
        lambda: simulate_shards("random", n_users=6, n_arms=2, n_shards=2, progress=3, **RULES),
        r"progress must be a function of \(rounds_played\); got 3",
    ),
    "the progress of a comparison for a single run": (
        lambda: simulate("random", MEANS, progress=lambda finished, done, total: None, **RULES),
        r"progress must be a function of \(rounds_played\); got one of \(finished, done, total\)",
    ),
    "the progress of a single run for a comparison": (
        lambda: compare(policies="random", progress=lambda rounds: None, engine=HERE, **RULES),
        r"progress must be a function of \(finished, done, total\); got one of \(rounds\)",
    ),
    "a generator for a run": (
        lambda: simulate("random", MEANS, rng=np.random.default_rng(0), **RULES),
        "argument of simulate must be a known name; got 'rng': did you mean seed",
    ),
    "a path as means": (
        lambda: simulate("random", "means.csv", **RULES),
        "means must be an array or a dataframe, .*; got 'means.csv'. .*load_means",
    ),
    "a path as means of a comparison": (
        lambda: compare(policies="random", means=Path("means.csv"), engine=HERE, **RULES),
        r"means must be an array or a dataframe, .*; got PosixPath\('means.csv'\). .*load_means",
    ),
    "a dict as means": (
        lambda: simulate("random", {"a": [0.1, 0.2]}, **RULES),
        r"means must be an array or a dataframe, .*; got {'a': \[0.1, 0.2\]}.$",
    ),
    "the name of an engine for a sweep": (
        lambda: sweep(Configuration(policies="random"), "unused", engine="local"),
        r"engine must be an Engine, such as LocalEngine\(n_workers=2\) .*; got 'local'",
    ),
    "a class without a generator": (
        lambda: simulate(Unrandom, MEANS, **RULES),
        r"Unrandom.__init__ must take \(problem, \*, rng\), .* unexpected keyword argument 'rng'",
    ),
    "a guarantee without a horizon": (
        lambda: learner("shoal", guarantee=True),
        "policy 'shoal' with guarantee=true needs a horizon; got None",
    ),
    "a series of rewards": (
        lambda: learner().ask().add_up(pd.Series([1.0, 0.0], index=[2, 5])),
        r"rewards must be a mapping.* Give a series by user as rewards.to_dict\(\)",
    ),
    "a folder to save to": (
        lambda: learner().save("."),
        r"path must be a file that can be written; got '\.': .* empty name",
    ),
    "a number to save to": (
        lambda: learner().save(3),
        "path must be a file that can be written; got 3: ",
    ),
    "means as the file of means": (
        lambda: load_means(MEANS),
        r"path must be that of a file; got array\(\[\[0.5, 0.5\], .*\)",
    ),
    "a number as a saved policy": (
        lambda: shoal.load_policy(3),  # type: ignore[arg-type]
        "path must be that of a file; got 3",
    ),
    "a number as the folder of a comparison": (
        lambda: Comparison.read(3),  # type: ignore[arg-type]
        "folder must be that of a folder; got 3",
    ),
    "a number to write a comparison to": (
        lambda: Comparison(None, None, {}).write(3),  # type: ignore[arg-type]
        "folder must be that of a folder; got 3",
    ),
    "a number as the folder of a sweep": (
        lambda: sweep(Configuration(policies="random"), 3),
        "out must be that of a folder; got 3",
    ),
    "a number as a saved roster": (lambda: Roster.load(3), "path must be that of a file; got 3"),
    "an unknown option of a partial": (
        lambda: simulate(partial(greedy, eps=0.3), MEANS, **RULES),
        "option of 'Greedy' must be a known name; got 'eps': did you mean 'epsilon'",
    ),
    "a partial of something else": (
        lambda: simulate(partial(int, base=2), MEANS, **RULES),
        "policy must be a known name, module:Class, a subclass .*; got functools.partial",
    ),
    "a constructor that fails": (
        lambda: simulate(Halved, MEANS, options={"share": "x"}, **RULES),
        "policy 'Halved' must take its problem and options; got TypeError: unsupported operand "
        r".*: 'str' and 'int' \(.*test_refusals.py, line \d+, in __init__\)",
    ),
    "a number to save a roster to": (
        lambda: Roster(["ana"], arms=["x"]).save(3),
        "path must be a file that can be written; got 3: ",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_argument_is_refused_by_name_rule_and_value(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, message = BAD[name]
    with pytest.raises(InvalidInputError, match=message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_tune_takes_one_name_as_compare_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tuning.GRID, "explore-then-commit", {"exploration": [0.3]})
    shared: dict[str, Any] = {"policies": "explore-then-commit", "n_runs": 1, "engine": HERE}
    shared |= {"n_users": 12, "n_arms": 3, "min_group_size": 2, "horizon": 20}
    choices = tune(instances="linear", **shared)
    assert list(choices["chosen"]) == ["linear"]
    assert choices == tune(instance="linear", **shared)
    assert list(tune(**shared)["chosen"]) == ["uniform", "linear"]


def test_tune_plays_the_instances_of_a_whole_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tuning.GRID, "explore-then-commit", {"exploration": [0.3]})
    shared: dict[str, Any] = {"policies": "explore-then-commit", "n_runs": 1, "engine": HERE}
    setting = Setting(
        n_users=12, n_arms=3, min_group_size=2, horizon=20, instance="clustered",
        instance_options={"rate": 0.3},
    )  # fmt: skip
    assert list(tune(setting=setting, **shared)["chosen"]) == ["clustered"]


def test_a_bandit_in_the_manner_of_mabwiser_has_a_short_repr() -> None:
    bandit = mab.MAB(["a", "b"], users=range(40), min_group_size=5)
    assert repr(bandit) == "MAB(['a', 'b'], 'shoal', n_users=40, min_group_size=5, rounds=0)"
