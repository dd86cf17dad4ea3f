"""Recordings of every policy: hashes of the plans and the feedback of short runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.recordings.pinned import Recording
from tests.recordings.surface import (
    POLICIES,
    Environment,
    Feedback,
    Plan,
    Policy,
    Problem,
    ShoalError,
    instance,
    make_environment,
    make_policy,
)

ELIGIBLE = ("shoal",)  # policies that can be told who may play what
DRIFTING = ("pooled-thompson", "shoal")  # policies with the option ``drift``
ELIMINATION = tuple(name for name in POLICIES if "elimination" in name)
QUICK = {"gamma": 0.5}  # so that arms go in several batches of a short run

REFUSED = "refused"


@dataclass(frozen=True)
class Case:
    """A short run: a problem, how users behave, and what happens on the way."""

    n_users: int
    n_arms: int
    min_group_size: int
    rounds: int
    n_shards: int = 1
    horizon: bool = True
    participation: float = 1.0
    kind: str = "uniform"
    options: Mapping[str, Any] = field(default_factory=dict)
    eligible: Callable[[int, int, int], NDArray[np.bool_] | None] | None = None
    restored: bool = False
    only: tuple[str, ...] = ()

    def problem(self, *, anonymous: bool) -> Problem:
        return Problem(
            n_users=self.n_users,
            n_arms=self.n_arms,
            min_group_size=self.min_group_size if anonymous else 1,
            horizon=self.rounds if self.horizon else None,
            n_shards=self.n_shards,
        )


def changes(number: int, n_users: int, n_arms: int) -> NDArray[np.bool_] | None:
    """Return who may play what from a round on: late users, leavers, a retired and a new arm."""
    allowed = np.ones((n_users, n_arms), np.bool_)
    if number == 0:
        allowed[-n_users // 5 :] = False  # not there yet
        allowed[:, -1] = False  # not offered yet
    elif number == 25:
        allowed[: n_users // 6] = False  # have left
        allowed[:, -1] = False
    elif number == 50:
        allowed[: n_users // 6] = False
        allowed[:, 0] = False  # retired
    elif number == 75:
        allowed[:, 0] = False  # everyone is back
        allowed[::7, 1] = False  # an arm that some may not play
    else:
        return None
    return allowed


CASES = {
    "12 users": Case(12, 3, 3, 600),
    "50 users": Case(50, 5, 4, 1500),
    "300 users": Case(300, 6, 5, 80, kind="clustered"),
    "600 users": Case(600, 4, 5, 60, kind="clustered", only=("shoal", "pooled-thompson")),
    "merged": Case(60, 3, 3, 250, participation=0.7),
    "merged, restored": Case(60, 3, 3, 250, participation=0.7, restored=True),
    "merged, 300 users": Case(300, 4, 5, 60, participation=0.7, kind="clustered"),
    "merged, 300 users, restored": Case(
        300, 4, 5, 60, participation=0.7, kind="clustered", restored=True
    ),
    "shards": Case(60, 3, 3, 200, n_shards=3),
    "shards, 900 users": Case(
        900, 3, 5, 40, n_shards=3, participation=0.8, kind="clustered", only=("shoal",)
    ),
    "no horizon": Case(24, 3, 3, 200, horizon=False),
    "no horizon, 300 users": Case(300, 3, 4, 60, horizon=False, kind="clustered"),
    "drift": Case(24, 3, 3, 200, options={"drift": 1e-4}, participation=0.9, only=DRIFTING),
    "drift, 300 users": Case(
        300, 3, 4, 60, options={"drift": 1e-4}, kind="clustered", only=DRIFTING
    ),
    "eligible": Case(40, 4, 3, 110, participation=0.8, eligible=changes, only=ELIGIBLE),
    "eligible, restored": Case(
        40, 4, 3, 110, participation=0.8, eligible=changes, restored=True, only=ELIGIBLE
    ),
    "eligible, 300 users": Case(
        300, 4, 4, 110, participation=0.8, kind="clustered", eligible=changes, only=ELIGIBLE
    ),
    "eligible, 300 users, restored": Case(
        300, 4, 4, 110, participation=0.8, kind="clustered", eligible=changes, restored=True,
        only=ELIGIBLE,
    ),
    "settled": Case(12, 3, 3, 2600, only=("shoal",)),
    "settled, merged": Case(20, 3, 3, 2300, participation=0.8, only=("shoal",)),
    "settled, no horizon": Case(12, 3, 3, 2300, horizon=False, only=("shoal",)),
    "eliminates": Case(50, 5, 4, 6000, options=QUICK, only=ELIMINATION),
    "eliminates, 300 users": Case(
        300, 6, 5, 4000, kind="clustered", options=QUICK, only=ELIMINATION
    ),
    "eliminates, shards": Case(
        90, 4, 3, 4000, n_shards=3, participation=0.8, options=QUICK, only=ELIMINATION
    ),
    "more arms than users": Case(5, 9, 3, 200),
    "one spare user": Case(5, 2, 4, 300),
    "groups of one": Case(6, 3, 1, 200),
}  # fmt: skip

# Options of the policies, at values that are not the defaults.
OPTIONS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "tuned": ("elimination-lp", {"gamma": 8.0, "n_batches": 6, "approximation_ratio": 5.0}),
    "geometric": ("elimination-greedy", {"gamma": 4.0, "grid": "geometric"}),
    "not robust": ("elimination-euler", {"gamma": 2.0, "robust": False}),
    "pooled, minimax": ("pooled-elimination", {"gamma": 2.0, "grid": "minimax"}),
    "explores less": ("explore-then-commit", {"exploration": 0.18}),
}


class Tape:
    """A hash of everything that is asked and told."""

    def __init__(self) -> None:
        self._digest = sha256()
        self.plans = 0

    def add(self, plan: Plan, feedback: Feedback) -> None:
        played = feedback.plan or plan
        for part in (plan.arms, plan.groups, played.groups, feedback.released, feedback.reported):
            self._digest.update(np.asarray(part).astype("<i8").tobytes())
        self._digest.update(np.asarray(feedback.totals).astype("<f8").tobytes())
        self._digest.update(plan.repeats.to_bytes(8, "little"))
        self.plans += 1

    def __str__(self) -> str:
        return f"{self.plans} plans, {self._digest.hexdigest()[:32]}"


def make(name: str, case: Case, *, seed: int) -> tuple[Policy, Environment]:
    """Return the policy and the environment of a case."""
    entry = POLICIES[name]
    problem = case.problem(anonymous=entry.anonymous)
    size = problem.shard_size
    means = np.concatenate(
        [
            instance(case.kind, size, case.n_arms, rng=np.random.default_rng([7, shard]))
            for shard in range(case.n_shards)
        ]
    )
    options = dict(case.options)
    if entry.hindsight:
        by_shard = means.reshape(case.n_shards, size, case.n_arms)
        options["arm"] = by_shard.sum(axis=1).argmax(axis=1)
    policy = make_policy(name, problem, rng=np.random.default_rng([seed, 1]), options=options)
    environment = make_environment(
        "bernoulli",
        problem,
        means,
        rng=np.random.default_rng([seed, 2]),
        participation=case.participation,
    )
    return policy, environment


def play(
    policy: Policy, environment: Environment, tape: Tape, case: Case, *, first: int, last: int
) -> None:
    """Play the rounds from ``first`` until ``last``, or a few more where a plan is repeated."""
    number = first
    while number < last:
        if case.eligible is not None:
            allowed = case.eligible(number, case.n_users, case.n_arms)
            if allowed is not None:
                flexible: Any = policy  # not every policy has this method
                flexible.allow(allowed)
        plan = policy.ask()
        feedback = environment.play(plan)
        policy.tell(feedback)
        tape.add(plan, feedback)
        number += plan.repeats


def run(name: str, case: Case, *, seed: int = 3) -> str:
    """Return the hash of a case, or that the policy refuses it."""
    try:
        policy, environment = make(name, case, seed=seed)
    except ShoalError:
        return REFUSED
    tape = Tape()
    if case.restored:
        play(policy, environment, tape, case, first=0, last=case.rounds // 4)
        rounds = policy.rounds
        if rounds < case.rounds:
            policy.ask()  # the plan in play is part of the state
        state = policy.state()
        policy, _ = make(name, case, seed=seed + 1)
        policy.restore(state)
        play(policy, environment, tape, case, first=rounds, last=case.rounds)
    else:
        play(policy, environment, tape, case, first=0, last=case.rounds)
    return str(tape)


def record() -> Recording:
    """Return the hash of every case of every policy.

    The flagship has a process of its own: its kernels take as long to compile as all others.
    """
    others = [name for name in POLICIES if name != "shoal"]
    with ProcessPoolExecutor(2) as pool:
        flagship, rest = pool.map(record_policies, (["shoal"], others))
    return flagship | rest


def record_policies(names: Sequence[str]) -> Recording:
    """Return the hash of every case of these policies."""
    hashes = {
        f"{name}: {title}": run(name, case)
        for name in names
        for title, case in CASES.items()
        if not case.only or name in case.only
    }
    for title, (name, options) in OPTIONS.items():
        if name in names:
            hashes[f"{name}: {title}"] = run(name, Case(50, 5, 4, 3000, options=options))
    return hashes
