"""How much each constant of the flagship matters: halved and doubled, one at a time.

Constants are compiled into the learners, so each change is played in a copy of the sources. Seeds
are this benchmark's own; what is here chose no constant. What is done is kept below build/, so that
a run that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from benchmarks import minorities
from benchmarks.regret import SEED, Means
from benchmarks.report import ROOT, page, table
from benchmarks.survey import KINDS
from shoal.engines import LocalEngine, Tick
from shoal.environments import make_environment
from shoal.files import write_atomically
from shoal.model import Problem
from shoal.policies import make_policy
from shoal.policies.shoal.constants import (
    JOINT,
    POPULATION,
    JointConstants,
    PopulationConstants,
)

LEARNERS: dict[str, JointConstants | PopulationConstants] = {
    "POPULATION": POPULATION,
    "JOINT": JOINT,  # second: what matters to both is compared with the other's runs too
}
BOTH = {"max_users", "outsider_shares"}  # constants of JOINT that matter to both learners
FACTORS = (0.5, 2.0)
CACHE = "NUMBA_CACHE_DIR"


class Case(NamedTuple):
    """Instances of one kind, each a run."""

    kind: str
    n_users: int
    n_arms: int
    min_group_size: int
    n_rounds: int
    n_runs: int
    horizon: bool = True  # whether the learner knows it
    participation: float = 1.0


CASES = {
    "JOINT": [
        Case("uniform", 50, 5, 4, 2_000, 6),
        Case("linear", 50, 5, 4, 2_000, 6),
        Case("uniform", 20, 10, 5, 2_000, 8),
        Case("arms uniform, users ± 0.05", 40, 8, 5, 1_000, 8),
        Case("minority", 60, 6, 5, 3_000, 4),
        Case("clustered clicks of 2 to 40 %", 80, 6, 8, 1_000, 6, horizon=False),
        Case("uniform", 50, 5, 4, 1_000, 6, participation=0.7),
    ],
    "POPULATION": [
        Case("uniform", 400, 5, 8, 600, 6),
        Case("linear", 400, 6, 10, 600, 6),
        Case("0.1 or 0.9", 400, 8, 20, 400, 6),
        Case("arms uniform, users ± 0.05", 500, 8, 15, 500, 8),
        Case("minority", 800, 6, 10, 1_500, 4),
        Case("clustered clicks of 2 to 40 %", 1_000, 8, 20, 500, 4, horizon=False),
        Case("uniform", 400, 5, 8, 500, 4, participation=0.7),
    ],
}


class Change(NamedTuple):
    """A constant of a learner and the value it gets, as source; no name for no change.

    A ``stream`` other than 0 plays the same means with other draws.
    """

    learner: str
    name: str = ""
    value: str = ""
    stream: int = 0


def main() -> None:
    regrets: dict[Change, dict[str, list[Means]]] = {}
    rows: list[tuple[str, ...]] = []
    for learner, values in LEARNERS.items():
        tasks = [Change(learner, stream=stream) for stream in range(3)]
        for name, value in values._asdict().items():
            tasks += [Change(learner, name, repr(scaled(value, f))) for f in FACTORS]
        for index, result in LocalEngine().run(measure, tasks):
            regrets[tasks[index]] = result
            print(f"done: {tasks[index]}", flush=True)
        streams = [regrets[Change(learner, stream=stream)] for stream in (1, 2)]
        rows.append((f"{learner}: nothing changed, other draws", "", *_cells(streams, regrets)))
        for name, value in values._asdict().items():
            changed = [regrets[Change(learner, name, repr(scaled(value, f)))] for f in FACTORS]
            rows.append((f"{learner}.{name}", str(value), *_cells(changed, regrets)))
        done = list(LEARNERS)[: list(LEARNERS).index(learner) + 1]
        _write_page(rows, done)


def _write_page(rows: list[tuple[str, ...]], learners: list[str]) -> None:
    """Write the page of the learners that are done."""
    played = (
        f"{_total(name)} runs of {len(CASES[name])} settings of `{name}`" for name in learners
    )
    page(
        "sensitivity",
        "Sensitivity",
        "python -m benchmarks sensitivity",
        "Constants of the flagship, halved and doubled, one at a time: regret as a multiple "
        "of that with the constant as it is, which is the mean of three plays with other random "
        f"numbers. There are {', '.join(played)}: uniform, linear and clustered means, "
        "users who agree, minorities, users who are missing, and an unknown horizon. Shown are "
        "the geometric mean over settings, ± one standard error over their "
        "runs, and the settings with the lowest and the highest ratio. The lines in which nothing "
        "changed but the random numbers show what chance alone does. A probability that would be "
        "1 or more is 0.9.",
        table(["constant", "is", "halved", "lowest, highest", "doubled", "lowest, highest"], rows),
    )


def scaled(value: object, factor: float) -> object:
    """Return a constant times ``factor``; counts stay whole and probabilities below 1.

    >>> scaled(3, 0.5), scaled((0.3, 0.02), 2.0), scaled(0.5, 2.0)
    (1, (0.6, 0.04), 0.9)
    """
    if isinstance(value, tuple):
        return tuple(scaled(part, factor) for part in value)
    if isinstance(value, int):
        return max(1, int(value * factor))
    if not isinstance(value, float):
        raise TypeError(f"a constant must be a number or a tuple of them; got {value!r}")
    product = value * factor
    return 0.9 if value < 1 <= product else product


def _cells(
    changed: list[dict[str, list[Means]]], regrets: dict[Change, dict[str, list[Means]]]
) -> Iterator[str]:
    for results in changed:
        if not results:
            yield from ("fails", "")
            continue
        logs, errors = [], []
        for learner, cases in results.items():
            plays = [regrets[Change(learner, stream=stream)][learner] for stream in range(3)]
            unchanged = [np.mean(same, axis=0) for same in zip(*plays, strict=True)]
            for before, after in zip(unchanged, cases, strict=True):
                ratio = after.sum() / before.sum()
                logs.append(np.log(ratio))
                differences = after - ratio * before
                errors.append(differences.std(ddof=1) / after.mean() / len(after) ** 0.5)
        mean, error = np.exp(np.mean(logs)), np.linalg.norm(errors) / len(errors)
        yield f"{mean:.2f} ± {mean * error:.2f}"
        yield f"{np.exp(min(logs)):.2f}, {np.exp(max(logs)):.2f}"


def _total(learner: str) -> int:
    return sum(case.n_runs for case in CASES[learner])


def measure(change: Change, tick: Tick) -> dict[str, list[Means]]:
    """Return the regrets of each case's runs, played now or kept from before."""
    key = hashlib.sha256(repr((change, CASES, SEED)).encode())
    for file in sorted((ROOT / "src" / "shoal" / "policies").rglob("*.py")):
        key.update(file.read_bytes())
    kept = ROOT / "build" / "sensitivity" / f"{key.hexdigest()}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, _play_changed(change).encode())
    result = json.loads(kept.read_text())
    return {name: [np.array(runs) for runs in cases] for name, cases in result.items()}


def _play_changed(change: Change) -> str:
    """Return, as JSON, what a copy of the sources with this change plays."""
    with TemporaryDirectory() as folder:
        sources = Path(folder) / "src"
        shutil.copytree(ROOT / "src", sources, ignore=shutil.ignore_patterns("__pycache__"))
        if change.name:
            _write(change, sources / "shoal" / "policies" / "shoal" / "constants.py")
        played = list(LEARNERS) if change.name in BOTH else [change.learner]
        environment = {**os.environ, "PYTHONPATH": f"{sources}:{ROOT}", CACHE: f"{folder}/kernels"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "benchmarks.sensitivity",
             str(change.stream), *played],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:  # a learner that can't play is a finding too
        print(f"failed: {change}: {done.stderr[-500:]}", flush=True)
        return "{}"
    return done.stdout


def _write(change: Change, file: Path) -> None:
    """Give the constant of the learner's class its new value."""
    head, kind, body = file.read_text().partition(f"class {change.learner.title()}Constants")
    line = re.compile(rf"^(    {change.name}: [^=]+= ).*?(?=  #|$)", re.M)
    body, found = line.subn(rf"\g<1>{change.value}", body, count=1)
    if not found:
        raise ValueError(f"{change.name} must be a constant of {change.learner}")
    file.write_text(head + kind + body)


def play(case: Case, index: int, stream: int) -> list[float]:
    """Return the regret of each run."""
    rng = np.random.default_rng([SEED, 901, index])
    shape = (case.n_users, case.n_arms)
    if case.kind == "minority":
        means = [minorities.draw_means(shape, 0.12, 0.15, 1, 0.7, rng) for _ in range(case.n_runs)]
    else:
        means = [KINDS[case.kind](shape, rng) for _ in range(case.n_runs)]
    stack = np.concatenate(means)
    rng = np.random.default_rng([SEED, 902, index, stream])
    horizon = case.n_rounds if case.horizon else None
    problem = Problem(len(stack), case.n_arms, case.min_group_size, horizon, case.n_runs)
    policy = make_policy("shoal", problem, rng=rng)
    environment = make_environment(
        "bernoulli", problem, stack, rng=rng, participation=case.participation
    )
    losses = stack.max(axis=1, keepdims=True) - stack
    regrets, users = np.zeros(case.n_runs), np.arange(len(stack))
    while policy.rounds < case.n_rounds:
        plan = policy.ask(max_repeats=case.n_rounds - policy.rounds)
        lost = losses[users, plan.arms].reshape(case.n_runs, -1).sum(axis=1)
        regrets += plan.repeats * lost
        policy.tell(environment.play(plan))
    return [float(regret) for regret in regrets]


if __name__ == "__main__":
    number, names = int(sys.argv[1]), sys.argv[2:]
    played = {n: [play(c, i, number) for i, c in enumerate(CASES[n])] for n in names}
    print(json.dumps(played))
