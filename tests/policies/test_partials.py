"""A ``functools.partial`` of a policy has a name and options of its own, in every process."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.policies import Greedy

from shoal.engines import LocalEngine
from shoal.experiments import compare, price, simulate, simulate_shards
from shoal.model import Problem
from shoal.policies import Policy, own

SMALL: dict[str, Any] = {"n_users": 12, "n_arms": 3, "min_group_size": 3, "horizon": 20}
HERE, WORKERS = LocalEngine(n_workers=1), LocalEngine(n_workers=2)


def named(name: str, **options: Any) -> Any:
    maker = partial(Greedy, **options)
    maker.__name__ = name  # type: ignore[attr-defined]
    return maker


def make_greedy(epsilon: float, problem: Problem, *, rng: np.random.Generator) -> Policy:
    return Greedy(problem, rng=rng, epsilon=epsilon)


def test_the_name_of_a_partial_is_that_of_its_class() -> None:
    maker = partial(Greedy, epsilon=0.5)
    assert own.label(maker) == "Greedy"
    maker.__name__ = "often"  # type: ignore[attr-defined]
    assert own.label(maker) == "often"


def test_partials_keep_their_names_in_worker_processes() -> None:
    """Whoever sends a partial to a process sends it without its attributes."""
    policies = [named("seldom", epsilon=0.1), named("often", epsilon=0.9)]
    shared: dict[str, Any] = {"policies": policies, "instances": "uniform", "n_runs": 2, **SMALL}
    here, there = (compare(engine=engine, **shared) for engine in (HERE, WORKERS))
    assert there.summary()["policy"].to_list() == ["seldom", "often"]
    assert there.records.equals(here.records)
    run = simulate_shards(policies[1], n_shards=2, engine=WORKERS, **SMALL)
    assert (run.policy, run.options) == ("often", {"epsilon": 0.9})


def test_the_options_of_a_partial_are_in_every_record(tmp_path: Path) -> None:
    often = named("often", epsilon=0.9)
    assert simulate(often, **SMALL).options == {"epsilon": 0.9}
    assert simulate(often, options={"epsilon": 0.5}, **SMALL).options == {"epsilon": 0.5}
    assert simulate(partial(make_greedy, 0.4), **SMALL).options == {"epsilon": 0.4}
    found = compare(policies=often, instances="uniform", n_runs=1, engine=HERE, **SMALL)
    assert found.config["options"] == {"uniform/often": {"epsilon": 0.9}}
    rules: dict[str, Any] = {"n_users": 30, "n_arms": 2, "horizon": 10, "n_runs": 2}
    answer = price(policy=often, rate=0.2, min_group_sizes=5, engine=HERE, **rules)
    assert (answer.config["policy"], answer.config["options"]) == ("often", {"epsilon": 0.9})


def test_an_option_that_json_cannot_hold_is_written_as_text(tmp_path: Path) -> None:
    found = compare(
        policies=named("Greedy", epsilon=np.zeros(())), instances="uniform", n_runs=1, engine=HERE,
        **SMALL,
    )  # fmt: skip
    found.write(tmp_path / "records")
    config = json.loads((tmp_path / "records" / "config.json").read_text())
    assert config["options"] == {"uniform/Greedy": {"epsilon": "array(0.)"}}
