"""Speed and memory of the large-population learners: a million users, ten arms, one core.

A round is ``ask`` and ``tell``, checks of plan and feedback included; the environment's time does
not count. Time is the process's own (other programs may take the rest of the core), and the best
of several rounds counts.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from benchmarks.report import page, table
from shoal.environments import make_environment
from shoal.environments.stochastic import Environment
from shoal.grouping import regroup
from shoal.instances import clustered
from shoal.model import Plan, Problem
from shoal.policies import Policy, make_policy
from shoal.policies.pooled.mean_field import MeanField

N_USERS, N_ARMS, MIN_GROUP_SIZE = 1_000_000, 10, 20
WARM, ROUNDS = 3, 12
SEED = 20_261_115
DRAWING = "normal draws and the highest of each user"


def main() -> None:
    problem = Problem(N_USERS, N_ARMS, MIN_GROUP_SIZE, horizon=500)
    rng = np.random.default_rng(SEED)
    means = clustered(N_USERS, N_ARMS, rng=rng)
    environment = make_environment("bernoulli", problem, means, rng=rng)
    lines = []
    for name, policy in (
        ("mean-field (`pooled-thompson`)", "pooled-thompson"),
        ("learnt prior (`shoal`)", "shoal"),
    ):
        tracemalloc.start()
        learner = make_policy(policy, problem, rng=rng)
        _round(learner, environment)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        for _ in range(WARM):
            _round(learner, environment)
        seconds = [_round(learner, environment) for _ in range(ROUNDS)]
        lines.append((
            name, min(seconds) * 1e3, float(np.mean(seconds)) * 1e3,
            N_USERS / min(seconds) / 1e6, N_USERS / float(np.mean(seconds)) / 1e6,
            held / N_USERS,
        ))  # fmt: skip
    parts = _parts(problem, environment, rng)
    posterior = MeanField(problem)
    reading = _best(lambda: (posterior.means.sum(), posterior.deviations.sum()))
    page(
        "speed",
        "Speed of large populations",
        "make bench",
        f"{N_USERS:,} users, {N_ARMS} arms, C = {MIN_GROUP_SIZE}, one core. A round is `ask` and "
        "`tell` with all checks, without the environment. Time of the process, of "
        f"{ROUNDS} rounds: the best, and the mean, in which the learnt prior's refreshes count. "
        "Target: 10 million user-rounds per second and at most 200 bytes per user.",
        table(
            [
                "learner",
                "best round, ms",
                "mean round, ms",
                "million user-rounds per second, best",
                "mean",
                "bytes per user between rounds",
            ],
            lines,
        ),
        "What a mean-field round is made of, each part measured alone:",
        table(
            ["part", "ms", "share"],
            [(name, ms, f"{ms / sum(parts.values()):.0%}") for name, ms in parts.items()],
        ),
        f"What bounds it: nothing alone. The draws are hashes that the compiler makes vectors of, "
        f"{parts[DRAWING] * 1e6 / (N_USERS * N_ARMS):.2f} ns each; reading the {8 * N_ARMS} bytes "
        "of every user, without drawing, takes "
        f"{reading:.1f} ms. Groups and update go through memory out of order.",
    )


def _round(learner: Policy, environment: Environment) -> float:
    """Play one round; return the learner's seconds."""
    start = process_time()
    plan = learner.ask()
    asked = process_time()
    feedback = environment.play(plan)
    told = process_time()
    learner.tell(feedback)
    return asked - start + process_time() - told


def _parts(
    problem: Problem, environment: Environment, rng: np.random.Generator
) -> dict[str, float]:
    """Return the milliseconds of each part of a mean-field round."""
    posterior = MeanField(problem)
    arms = posterior.sample(rng)
    groups = np.empty(N_USERS, np.int32)
    uniforms = rng.random(N_USERS)

    def deal() -> None:
        regroup(arms, N_ARMS, MIN_GROUP_SIZE, 0, uniforms, groups)

    deal()
    plan = Plan(arms, groups, problem=problem)
    feedback = environment.play(plan)
    return {
        DRAWING: _best(lambda: posterior.sample(rng)),
        "random numbers for the groups": _best(lambda: rng.random(N_USERS)),
        "random groups": _best(deal),
        "check of the plan": _best(lambda: Plan(arms, groups, problem=problem)),
        "check of the feedback": _best(lambda: feedback.check(plan)),
        "update": _best(lambda: posterior.absorb(plan, feedback)),
    }


def _best(part: Callable[[], Any]) -> float:
    taken = []
    for _ in range(ROUNDS):
        start = process_time()
        part()
        taken.append(process_time() - start)
    return min(taken) * 1e3
