"""Speed and memory of the large-population learners: a million users, ten arms.

A round is ``ask`` and ``tell``, checks of plan and feedback included; the environment's time does
not count. The processor's time is the process's own (other programs may take the rest of a core);
beside it is the time that passes, with as many threads as there are cores.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.report import page, table
from shoal.arrays import FloatArray
from shoal.environments import make_environment
from shoal.environments.stochastic import Environment
from shoal.grouping import regroup
from shoal.instances import clustered
from shoal.model import Plan, Problem
from shoal.policies import Policy, make_policy
from shoal.policies.pooled.mean_field import MeanField

N_USERS, N_ARMS, MIN_GROUP_SIZE = 1_000_000, 10, 20
WARM, ROUNDS = 3, 12
LATE = 17  # rounds before the later ones: by then a user decides in every fourth
SEED = 20_261_115
DRAWING = "normal draws and the highest of each user"


def main() -> None:
    problem = Problem(N_USERS, N_ARMS, MIN_GROUP_SIZE, horizon=500)
    rng = np.random.default_rng(SEED)
    means = clustered(N_USERS, N_ARMS, rng=rng)
    environment = make_environment("bernoulli", problem, means, rng=rng)
    lines = []
    for name, policy, first in (
        ("mean-field (`pooled-thompson`)", "pooled-thompson", WARM),
        ("learnt prior (`shoal`), first rounds", "shoal", WARM),
        ("learnt prior (`shoal`), later", "shoal", LATE),
    ):
        tracemalloc.start()
        learner = make_policy(policy, problem, rng=rng)
        _round(learner, environment)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        for _ in range(first):
            _round(learner, environment)
        seconds = np.array([_round(learner, environment) for _ in range(ROUNDS)])
        best, mean = seconds.min(axis=0), seconds.mean(axis=0)
        lines.append((
            name, best[0] * 1e3, mean[0] * 1e3, best[1] * 1e3, mean[1] * 1e3,
            N_USERS / mean[1] / 1e6, held / N_USERS,
        ))  # fmt: skip
    parts = _parts(problem, environment, rng)
    posterior = MeanField(problem)
    reading = _best(lambda: (posterior.means.sum(), posterior.deviations.sum()))
    page(
        "speed",
        "Speed of large populations",
        "make bench",
        f"{N_USERS:,} users, {N_ARMS} arms, C = {MIN_GROUP_SIZE}. A round is `ask` and "
        f"`tell` with all checks, without the environment. Of {ROUNDS} rounds the best, and the "
        "mean, in which the learnt prior's refreshes count: time of the processor, all threads "
        "together, and time that passes. Later rounds are those from the "
        f"{LATE + 2}th on, when a user decides in every fourth. Targets: 200 ms a round on two "
        "cores, and at most 200 bytes per user.",
        table(
            [
                "learner",
                "processor, best, ms",
                "mean",
                "passes, best, ms",
                "mean",
                "million user-rounds per second, mean",
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


def _round(learner: Policy, environment: Environment) -> FloatArray:
    """Play one round; return the learner's seconds, of the processor and of the clock, (2,)."""
    times = [np.array([process_time(), perf_counter()])]
    plan = learner.ask()
    times.append(np.array([process_time(), perf_counter()]))
    feedback = environment.play(plan)
    times.append(np.array([process_time(), perf_counter()]))
    learner.tell(feedback)
    times.append(np.array([process_time(), perf_counter()]))
    seconds: FloatArray = times[1] - times[0] + times[3] - times[2]
    return seconds


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
