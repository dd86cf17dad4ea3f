"""States of version 0.1, which kept every array under a key of its own, are still restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.model import Problem
from shoal.policies import Policy, make_policy
from shoal.policies.contract import Arena
from shoal.policies.shoal.joint.prior import SHARES
from shoal.policies.shoal.population.policy import PopulationPolicy

State = dict[str, Any]

BELIEF = {
    "means": "means", "mean_variances": "doubts", "factors": "factors", "hidden": "hidden",
    "squares": "surprises",
}  # fmt: skip
SHARD = {
    "allowed": "allowed", "panel_ranks": "turns", "panel_share": "panel", "report_rate": "share",
    "attempts_left": "attempts", "next_refresh": "next_refresh",
}  # fmt: skip


def _renamed(state: State, names: dict[str, str]) -> State:
    return {old: state[new] for new, old in names.items()}


def _posterior(state: State) -> State:
    """Version 0.1 had one variance for all users of an arm."""
    belief = {name: part for name, part in state["belief"].items() if name != "prior"}
    own = {"own": state["belief"]["prior"]["core"]}
    return {"_rounds": state["_rounds"], "_due": state["_next_refresh"]} | own | belief


def _joint(state: State) -> State:
    recruits = {f"_{name}": part for name, part in state["_recruits"].items()}
    kept = {name: state[name] for name in ("rng", "rounds", "pending", "_allowed")}
    return kept | {"posterior": _posterior(state["posterior"])} | recruits


def _population(state: State) -> State:
    shards = [
        _renamed(shard, SHARD)
        | shard["decision"]
        | {"belief": _renamed(shard["belief"], BELIEF) | shard["belief"]["evidence"]}
        for shard in state["shards"]
    ]
    return state | {"shards": shards}


def _pooled(state: State) -> State:
    return state | {"posterior": _posterior(state["posterior"])}


@pytest.mark.parametrize(
    ("name", "n_users", "as_version_0_1", "options"),
    [
        ("shoal", 24, _joint, {"drift": 1e-5}),
        ("shoal", 600, _population, {}),
        ("pooled-thompson", 24, _pooled, {"drift": 1e-5}),
    ],
)
def test_a_state_of_version_0_1_goes_on_as_it_would_have(
    name: str, n_users: int, as_version_0_1: Any, options: dict[str, float]
) -> None:
    """Where learners know one kind of users only, or nothing of the outsiders' share yet."""
    problem = Problem(n_users=n_users, n_arms=3, min_group_size=3, horizon=60, n_shards=2)

    def new(seed: int) -> Policy:
        return make_policy(name, problem, rng=np.random.default_rng(seed), options=options)

    policy, other, arena = new(0), new(1), Arena(problem, participation=0.8)
    for _ in range(20):
        policy.tell(arena.play(policy.ask()))
    if isinstance(policy, PopulationPolicy):
        for shard in policy.shards:
            shard.belief.shares[:] = SHARES.mean()
    other.restore(as_version_0_1(policy.state()))
    for _ in range(20):
        plan = policy.ask()
        np.testing.assert_array_equal(plan.arms, other.ask().arms)
        np.testing.assert_array_equal(plan.groups, other.ask().groups)
        feedback = arena.play(plan)
        policy.tell(feedback)
        other.tell(feedback)
