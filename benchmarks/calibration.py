"""Is the flagship as sure as it should be? Intervals and favourites against the truth.

Seeds are this benchmark's own. Every run is stopped at ten moments, and what the policy then
believes of every user on every arm is compared with the true means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks import minorities
from benchmarks.regret import SEED, Means
from benchmarks.report import page, table
from benchmarks.survey import KINDS
from shoal.engines import LocalEngine, Tick
from shoal.environments import make_environment
from shoal.model import Problem
from shoal.policies.shoal.joint.policy import JointPolicy
from shoal.policies.shoal.population.policy import PopulationPolicy

DRAWS = 8
LEVELS = (0.5, 0.9, 0.99)
SIZES = {"joint": (20, 120), "population": (300, 1_500)}
LAST = {"joint": 5_000, "population": 1_000}  # rounds
MAKERS = {"joint": JointPolicy, "population": PopulationPolicy}
N_MOMENTS = 10
MINORITY = "a minority of 5 to 30 %"


class Moment(NamedTuple):
    """What was believed and what was true at one moment of a run."""

    inside: Means  # (n_levels,) share of true means in their intervals
    claimed: float  # mean probability that favourites are the best arms
    right: float  # share of favourites that are


def main() -> None:
    tasks = [(n, k, d) for n in SIZES for k in (*KINDS, MINORITY) for d in range(DRAWS)]
    found = {}
    for index, moments in LocalEngine().run(measure, tasks):
        found[tasks[index]] = moments
        print(f"done: {tasks[index]}: {np.round([m.inside[1] for m in moments], 2)}", flush=True)
    page(
        "calibration",
        "Calibration",
        "python -m benchmarks calibration",
        f"Of each kind, {DRAWS} instances of {_range('joint')} users for the joint learner and of "
        f"{_range('population')} for the learner for populations, C from 3 to 10, 3 "
        "to 8 arms, all drawn. At ten moments from round 10 to round 5,000 (else 1,000): the share "
        "of true means in their 50, 90 and 99 % intervals; how likely the favourite is said to be "
        "the best arm, and how often it is.",
        *(f"## {learner}\n\n{_table(learner, found)}" for learner in SIZES),
        "*Least* and *most* are over the ten moments, each the mean over instances.",
    )


def _range(learner: str) -> str:
    low, high = SIZES[learner]
    return f"{low:,} to {high:,}"


def _table(learner: str, found: dict[tuple[str, str, int], list[Moment]]) -> str:
    lines = []
    for kind in (*KINDS, MINORITY):
        runs = [found[learner, kind, draw] for draw in range(DRAWS)]
        inside = np.mean([[m.inside for m in run] for run in runs], axis=0)  # (moments, levels)
        claimed, right = np.mean([[(m.claimed, m.right) for m in run] for run in runs], axis=(0, 1))
        lines.append(
            (kind, *(f"{share:.2f}" for share in inside.mean(axis=0)),
             f"{inside[:, 1].min():.2f}", f"{inside[:, 1].max():.2f}",
             f"{claimed:.2f}", f"{right:.2f}")
        )  # fmt: skip
    columns = ["means", "in 50 %", "in 90 %", "in 99 %", "90 %: least", "most", "claimed best",
               "is best"]  # fmt: skip
    return table(columns, lines)


def draw_means(learner: str, kind: str, draw: int) -> tuple[Means, int, np.random.Generator]:
    """Return an instance and its C."""
    kinds = (*KINDS, MINORITY)
    rng = np.random.default_rng([SEED, 701, list(SIZES).index(learner), kinds.index(kind), draw])
    n_users = int(np.exp(rng.uniform(*np.log(SIZES[learner]))))
    shape, size = (n_users, int(rng.integers(3, 9))), int(rng.integers(3, 11))
    if kind == MINORITY:
        share, gap = rng.uniform(0.05, 0.3), rng.uniform(0.1, 0.2)
        return minorities.draw_means(shape, share, gap, 1, 0.7, rng), size, rng
    return KINDS[kind](shape, rng), size, rng


def measure(task: tuple[str, str, int], tick: Tick) -> list[Moment]:
    """Return what was believed at each moment of one run."""
    means, size, rng = draw_means(*task)
    moments = np.geomspace(10, LAST[task[0]], N_MOMENTS)
    n_users, n_arms = means.shape
    problem = Problem(n_users, n_arms, size, horizon=2 * LAST[task[0]])
    environment = make_environment("bernoulli", problem, means, rng=rng)
    policy = MAKERS[task[0]](problem, rng=rng)
    found: list[Moment] = []
    while len(found) < len(moments):
        policy.tell(environment.play(policy.ask()))
        while len(found) < len(moments) and policy.rounds >= moments[len(found)]:
            beliefs = policy.beliefs()
            if beliefs is None:
                raise TypeError(f"{type(policy).__name__} keeps no beliefs")
            errors = np.abs(means - beliefs.means) / beliefs.deviations
            inside = [(errors < stats.norm.ppf(0.5 + level / 2)).mean() for level in LEVELS]
            favourites, users = beliefs.means.argmax(axis=1), np.arange(len(means))
            right = means[users, favourites] >= means.max(axis=1) - 1e-12
            claimed = beliefs.best[users, favourites].mean()
            found.append(Moment(np.array(inside), float(claimed), float(right.mean())))
    return found
