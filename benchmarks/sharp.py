"""Whether the interval of full knowledge holds the truth where tastes are sharp and rows few.

Each user has one arm of its own, drawn at random, and the rows are spread over all arms at random.
Seeds are this benchmark's own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.report import page, table
from shoal.engines import LocalEngine, Tick
from shoal.instances import from_log
from shoal.instances.population import Range

SEED = 20_261_118
N_LOGS = 10  # of each kind


class Kind(NamedTuple):
    """What a log of such users is drawn from."""

    own: float  # mean reward of a user's own arm
    other: float
    n_users: int
    n_arms: int
    rows: int  # of a user

    def __str__(self) -> str:
        return f"{self.own:g} on the own arm, {self.other:g} on others"


KINDS = [
    Kind(1.0, 0.0, 100, 5, 10),
    Kind(1.0, 0.0, 200, 3, 30),
    Kind(0.3, 0.1, 1_000, 4, 6),
    Kind(0.3, 0.1, 100, 5, 10),
    Kind(0.3, 0.1, 100, 5, 30),
    Kind(0.3, 0.1, 200, 3, 30),
    Kind(0.3, 0.1, 30, 3, 100),
]


class Measured(NamedTuple):
    """The gain of full knowledge over the best single arm: as it is, and as the log says."""

    truth: float
    gain: Range


def main() -> None:
    tasks = [(kind, log) for kind in range(len(KINDS)) for log in range(N_LOGS)]
    measured: dict[int, list[Measured]] = {kind: [] for kind in range(len(KINDS))}
    for index, result in LocalEngine().run(measure, tasks):
        measured[tasks[index][0]].append(result)
        print(f"done: {KINDS[tasks[index][0]]}: {result}", flush=True)
    page(
        "sharp",
        "Sharp tastes and few rows",
        "python -m benchmarks sharp",
        f"{N_LOGS} logs of each kind of users, of whom each has one arm of its own, drawn at "
        "random; rows are spread over all arms at random. The gain of full knowledge over the best "
        "single arm, and in how many logs its 95 % interval holds it: the estimate prefers "
        "smoother tastes, which earn less.",
        table(
            ["rewards", "users", "arms", "rows a user", "holds the truth", "truth above it",
             "truth", "low", "high"],
            [_line(kind, measured[index]) for index, kind in enumerate(KINDS)],
        ),
        "*Truth*, *low* and *high*, the ends of the interval, are means over the logs.",
    )  # fmt: skip


def _line(kind: Kind, logs: list[Measured]) -> tuple[object, ...]:
    holds = sum(log.gain.low <= log.truth <= log.gain.high for log in logs)
    above = sum(log.truth > log.gain.high for log in logs)
    ends = ([log.truth for log in logs], [log.gain.low for log in logs],
            [log.gain.high for log in logs])  # fmt: skip
    return (
        str(kind), kind.n_users, kind.n_arms, kind.rows, f"{holds} of {len(logs)}",
        f"{above} of {len(logs)}", *(f"{np.mean(values):.3f}" for values in ends),
    )  # fmt: skip


def measure(task: tuple[int, int], tick: Tick) -> Measured:
    """Draw a log, and return what it says beside the truth."""
    kind = KINDS[task[0]]
    rng = np.random.default_rng([SEED, *task])
    means = np.full((kind.n_users, kind.n_arms), kind.other)
    means[np.arange(kind.n_users), rng.integers(kind.n_arms, size=kind.n_users)] = kind.own
    users = np.repeat(np.arange(kind.n_users), kind.rows)
    arms = rng.integers(kind.n_arms, size=len(users))
    rewards = (rng.random(len(users)) < means[users, arms]).astype(np.float64)
    frame = pl.DataFrame({"user": users, "arm": arms, "reward": rewards})
    truth = float(means.max(axis=1).mean() - means.mean(axis=0).max())
    return Measured(truth, from_log(frame).population.gain)


if __name__ == "__main__":
    main()
