"""How regret grows with C, K and T: measured slopes beside the orders that theorems bound it by.

An order hides constants that vary with C and K: the information of a round is 1/b(n) and not 3C, a
sample takes 2C+2 rounds and not 2C, L = log(NKT) grows. ``Line.expected`` is the slope of the
theorem's own expression with these, so that what is measured can be told from what is hidden.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.long_horizon import long_regret
from benchmarks.report import record, table
from shoal.experiments import simulate
from shoal.grouping import least_information
from shoal.policies.paper.batched_elimination import default_ratio

Floats = NDArray[np.float64]
Instance = Callable[[float, np.random.Generator], Floats]

SEED = 20261117
N_RUNS = 20
N_RESAMPLED = 2000
LONG = 10**11
LONG_PLAYED = 10**10  # a plan is played for at most 2^31 rounds
# Gaps, in units of the order at which a bound is reached: around the worst, in steps of √2.
PLAYED: Floats = 2.0 ** np.arange(3.5, 4.5, 0.5)  # the worst by law
PAIRED: Floats = 2.0 ** np.arange(3.0, 8.5, 0.5)
WIDE: Floats = 2.0 ** np.arange(3.0, 9.5, 0.5)
FINE: Floats = 2.0 ** np.arange(1, 6.5, 0.5)


@dataclass
class Line:
    """One policy over one quantity, all else fixed; regret a user at the worst gap."""

    policy: str
    setting: str
    predicted: str
    points: list[int] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    regrets: list[Floats] = field(default_factory=list)  # of each run, a user
    terms: list[float] = field(default_factory=list)  # the theorem's expression

    def add(self, point: int, worst: tuple[float, Floats], term: float) -> None:
        """Add a point: its worst gap and regrets, and what the theorem's expression is there."""
        self.points.append(point)
        self.gaps.append(worst[0])
        self.regrets.append(worst[1])
        self.terms.append(term)
        print(f"done: {self.policy}, {self.setting}, {point}: {worst[1].mean():,.0f}", flush=True)

    def summary(self) -> dict[str, Any]:
        """Return the line as it is recorded: slope, its 95 % interval, and the expected slope."""
        rng = np.random.default_rng([SEED, len(self.points), *self.points])
        resampled = [
            self._fit([float(rng.choice(runs, len(runs)).mean()) for runs in self.regrets])
            for _ in range(N_RESAMPLED)
        ]
        low, high = np.quantile(resampled, [0.025, 0.975])
        means = [float(runs.mean()) for runs in self.regrets]
        return {
            "policy": self.policy,
            "setting": self.setting,
            "points": self.points,
            "regrets": [round(mean, 1) for mean in means],
            "gaps": [float(f"{gap:.3g}") for gap in self.gaps],
            "slope": f"{self._fit(means):.2f}",
            "interval": f"{low:.2f} to {high:.2f}",
            "expected": f"{self._fit(self.terms):.2f}",
            "predicted": self.predicted,
        }

    def _fit(self, values: Sequence[float]) -> float:
        return float(np.polyfit(np.log(self.points), np.log(values), 1)[0])


def rows(lines: Sequence[dict[str, Any]]) -> str:
    """Return lines over the same points as a table."""
    columns = ["policy", "setting", "regret a user (worst gap)", "slope", "expected", "predicted"]
    cells = [
        [
            line["policy"], line["setting"],
            ", ".join(
                f"{r:,.0f} ({g:.2g})" for r, g in zip(line["regrets"], line["gaps"], strict=True)
            ),
            f"{line['slope']} ({line['interval']})", line["expected"], line["predicted"],
        ]
        for line in lines
    ]  # fmt: skip
    return table(columns, cells)


def worst(
    play: Callable[[Floats, int], Floats], instance: Instance, gaps: Floats, n_runs: int = N_RUNS
) -> Any:
    """Return the gap of the largest mean regret, and the regret a user of each run at it."""
    largest: tuple[float, Floats] = (0.0, np.zeros(1))
    for number, gap in enumerate(gaps[gaps <= 1.0].tolist()):
        rng = np.random.default_rng([SEED, number])
        means = np.stack([instance(gap, rng) for _ in range(n_runs)])
        regrets = play(means, number) / means.shape[1]
        if regrets.mean() > largest[1].mean():
            largest = gap, regrets
    return largest


def played(policy: str, **setting: Any) -> Callable[[Floats, int], Floats]:
    """Return a function that plays all rounds."""

    def play(means: Floats, number: int) -> Floats:
        run = simulate(policy, means, tuned=False, n_checkpoints=1, seed=number, **setting)
        regrets: Floats = run.curves[:, -1]
        return regrets

    return play


def by_law(**setting: Any) -> Callable[[Floats, int], Floats]:
    """Return a function that draws pooled elimination's estimates from their law."""

    def play(means: Floats, number: int) -> Floats:
        seeds = np.random.SeedSequence([SEED, number]).generate_state(len(means))
        pairs = zip(means, seeds, strict=True)
        return np.array([long_regret(m, seed=int(seed), **setting) for m, seed in pairs])

    return play


def favourites(gap: float, rng: np.random.Generator, *, n_users: int) -> Floats:
    """Return two arms, each the favourite of half the users, drawn at random."""
    means = np.zeros((n_users, 2))
    means[np.arange(n_users), rng.permutation(n_users) % 2] = gap
    return means


def thin_clusters(gap: float, rng: np.random.Generator, *, n_arms: int, size: int) -> Floats:
    """Return clusters of C+1: on each arm one decided user, and C who like all arms nearly so."""
    means = np.full((n_arms, size + 1, n_arms), 0.5 - gap / 2)
    means[:, 0] = 0.0
    own = np.arange(n_arms)
    means[own, :, own] = 0.5 + gap / 2
    means[own, 0, own] = 1.0
    shuffled: Floats = means.reshape(-1, n_arms)[rng.permutation(n_arms * (size + 1))]
    return shuffled


def pooled_line(sizes: Sequence[int], per_size: int, horizon: int, *, law: bool) -> Line:
    """Measure pooled elimination against C: two arms, clusters of half the users."""
    line = Line("pooled-elimination", _setting(per_size, horizon, law), "1/2")
    for size in sizes:
        n_users = per_size * size or 72
        log = math.log(n_users * 2 * horizon)
        setting: dict[str, Any] = {"min_group_size": size, "horizon": horizon}
        if law:
            play = by_law(gamma=log, **setting)
        else:
            options = {"gamma": log, "estimates": "batch"}
            play = played(line.policy, options=options, rewards="gaussian", **setting)
        gaps = math.sqrt(size * 2 / horizon) * (FINE if law else PLAYED)
        found = worst(play, partial(favourites, n_users=n_users), gaps)
        line.add(size, found, math.sqrt(log / least_information(n_users // 2, size)))
    return line


def paired_line(sizes: Sequence[int], per_size: int, horizon: int) -> Line:
    """Measure elimination on the paper's samples against C, in the same way."""
    line = Line("elimination-home-away", _setting(per_size, horizon, law=False), "1")
    for size in sizes:
        n_users = per_size * size or 72
        log = math.log(n_users * 2 * horizon)
        play = played(
            line.policy, options={"gamma": log * (4 * size + 1)}, rewards="gaussian",
            min_group_size=size, horizon=horizon,
        )  # fmt: skip
        gaps = size * math.sqrt(2 / horizon) * PAIRED
        found = worst(play, partial(favourites, n_users=n_users), gaps)
        line.add(size, found, math.sqrt(log * (2 * size + 2) * (4 * size + 1)))
    return line


def _setting(per_size: int, horizon: int, law: bool) -> str:
    users = f"N = {per_size}C" if per_size else "N = 72"
    return f"{users}, T = {horizon:.0e}, {'by law' if law else 'played'}"


def arm_line(policy: str, horizon: int) -> Line:
    """Measure regret against K, with clusters of C+1."""
    size = 2
    line = Line(
        policy, f"N = 3K, T = {horizon:.0e}, played", "1" if policy.endswith("blocks") else "1/2"
    )
    for n_arms in (4, 8, 16):
        log = math.log(3 * n_arms * n_arms * horizon)
        play = played(
            policy, options={"gamma": log * (4 * size + 1)}, min_group_size=size, horizon=horizon
        )
        gaps = size * math.sqrt(n_arms / horizon) * WIDE
        found = worst(play, partial(thin_clusters, n_arms=n_arms, size=size), gaps, 8)
        ratio = default_ratio(policy.removeprefix("elimination-"), n_arms)
        line.add(n_arms, found, math.sqrt(ratio * n_arms * log))
    return line


def fans(gap: float, rng: np.random.Generator) -> Floats:
    """Return two users undecided among three arms, all others fans of arm 0 (docs/theory.md)."""
    means = np.zeros((10, 4))
    means[2:, 0] = 1.0
    means[:2, 1:] = 0.5
    means[np.arange(2), rng.integers(1, 4, 2)] += min(gap, 0.5)
    return means


def horizon_line(policy: str) -> Line:
    """Measure regret against T, without clusters."""
    line = Line(policy, "N = 10, K = 4, C = 4, played", "2/3")
    for horizon in (10**4, 10**5, 10**6):
        play = played(policy, min_group_size=4, horizon=horizon)
        found = worst(play, fans, (16 / horizon) ** (1 / 3) * 2.0 ** np.arange(-1.0, 3.0))
        log = math.log(10 * 4 * horizon)
        line.add(horizon, found, horizon ** (2 / 3) * log ** (1 / 3))
    return line


SMALL, LARGE = (2, 4, 8, 16), (8, 16, 32)
LINES: dict[str, list[Callable[[], Line]]] = {
    "C": [
        partial(pooled_line, SMALL, 0, 40_000, law=False),
        partial(pooled_line, SMALL, 0, 40_000, law=True),
        partial(pooled_line, SMALL, 0, LONG, law=True),
        partial(pooled_line, SMALL, 8, LONG, law=True),
        partial(pooled_line, LARGE, 8, LONG, law=True),
        partial(paired_line, SMALL, 0, 40_000),
        partial(paired_line, SMALL, 8, LONG_PLAYED),
        partial(paired_line, LARGE, 8, LONG_PLAYED),
    ],
    "K": [
        partial(arm_line, policy, horizon)
        for horizon in (10**7, LONG_PLAYED)
        for policy in ("elimination-blocks", "elimination-home-away")
    ],
    "T": [
        partial(horizon_line, policy)
        for policy in ("explore-then-commit", "pooled-explore-then-commit")
    ],
}


def measure() -> dict[str, list[dict[str, Any]]]:
    """Measure all lines and record them."""
    lines = {name: [make().summary() for make in makers] for name, makers in LINES.items()}
    record("slopes", lines)
    return lines


def least_horizon(size: int, n_users: int) -> float:
    """Return the horizon from which the theorem of pooled elimination holds, for two arms."""
    log = math.log(n_users * 2 * LONG)
    return 1.5 * (25 * size * 2 * log) ** 2
