"""The price of anonymity: what each least group size C costs, before anyone is observed.

A learner is played on several populations, and on the same ones, with the same luck, for every C:
so differences between the C are sharper than any of the numbers. Of a large population only a
sample of users is played. A learner that shares a prior among users learns it better from more of
them, which is why the sample is as large as it is (docs/benchmarks/price.md has the bias).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal import __version__
from shoal.arrays import FloatArray, LongArray
from shoal.engines import Engine, LocalEngine, Tick
from shoal.environments.registry import check_means, check_rewards
from shoal.errors import InvalidInputError
from shoal.experiments.cells import Progress, run_cells
from shoal.experiments.costs import Price
from shoal.experiments.run import simulate
from shoal.experiments.seeds import stream
from shoal.instances import clustered
from shoal.model import Problem
from shoal.model.numbers import share, whole_number
from shoal.policies import find_policy
from shoal.policies.registry import check_options

SAMPLE = 10_000  # users to play: more change little, except at the smallest C
GROUPS_PER_ARM = 20  # that the sample must have room for, at the largest C
STRETCHES = 100  # into which the rounds are cut for the curves
SPREAD = 0.3  # of users around their cluster, as in ``clustered``


@dataclass(frozen=True)
class Cell:
    """One group size on one population: all that a worker needs to know."""

    min_group_size: int
    run: int
    settings: Mapping[str, Any]
    means: FloatArray | None

    @property
    def title(self) -> str:
        """What it plays, in a few words."""
        return f"groups of {self.min_group_size}, run {self.run}"

    @property
    def rounds(self) -> int:
        """Rounds to play, for progress."""
        return int(self.settings["horizon"])


def price(
    *,
    min_group_sizes: Sequence[int],
    horizon: int,
    n_users: int | None = None,
    n_arms: int | None = None,
    rate: float | None = None,
    means: ArrayLike | None = None,
    policy: str = "shoal",
    options: Mapping[str, Any] | None = None,
    rewards: str = "bernoulli",
    participation: float = 1.0,
    n_runs: int = 7,
    sample: int | None = None,
    seed: int = 0,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Price:
    """Say what each least group size costs.

    Parameters
    ----------
    min_group_sizes
        The C to compare.
    horizon
        Rounds.
    rate
        Mean reward over all users and arms; with ``n_users`` and ``n_arms``. Populations are then
        drawn: every run has six tastes of its own, equally common, whose rates on the arms are
        drawn from a Beta(1, .); users differ from their taste by about 30 % on every arm.
    means
        Or one's own expected rewards, (n_users, n_arms); every run plays them, or a random sample
        of their users.
    policy, options
        The learner, an anonymous one.
    n_runs
        Populations, at least 2: the intervals come from how they differ.
    sample
        Users to play of a larger population; by default 10,000, and more where C or K is large.
    progress
        Called with (what has just finished or "", rounds done, rounds in all).

    Examples
    --------
    >>> found = price(n_users=400, n_arms=3, rate=0.2, horizon=50, min_group_sizes=[2, 10],
    ...               n_runs=2, engine=LocalEngine(n_workers=1))
    >>> [cost.min_group_size for cost in found.costs]
    [2, 10]
    """
    sizes = _check_sizes(min_group_sizes)
    given = None if means is None else check_means(means, rewards=rewards)
    shape = _check_population(n_users, n_arms, rate, given)
    Problem(*shape, sizes[-1])
    n_runs = whole_number("n_runs", n_runs, least=2)
    entry = find_policy(policy)
    if not entry.anonymous or entry.hindsight:
        raise InvalidInputError(
            f"policy must be one that learns from totals, for a price on anonymity; got {policy!r}."
        )
    check_options(policy, options or {})
    settings = {
        "n_users": shape[0],
        "n_arms": shape[1],
        "horizon": whole_number("horizon", horizon),
        "rate": None if rate is None else float(rate),
        "policy": policy,
        "options": dict(options or {}),
        "rewards": check_rewards(rewards),
        "participation": share("participation", participation),
        "n_runs": n_runs,
        "seed": whole_number("seed", seed, least=0),
        "sample": _check_sample(sample, shape, sizes[-1]),
    }
    samples = [_sample(given, settings, run) for run in range(n_runs)]
    # Populations outside, sizes inside: the means of a run are in few cells at a time.
    cells = [Cell(size, run, settings, samples[run]) for run in range(n_runs) for size in sizes]
    found = run_cells(run_cell, cells, engine or LocalEngine(), progress)
    earned = np.array([result.rewards for result in found])
    by_size = earned.reshape(n_runs, len(sizes), -1).swapaxes(0, 1)
    references = np.array([result.references for result in found[:: len(sizes)]])
    config = {**settings, "min_group_sizes": sizes, "shoal": __version__}
    if given is not None:
        config["means_sha256"] = hashlib.sha256(given.tobytes()).hexdigest()
    return Price.from_runs(sizes, by_size, references, found[0].rounds, config)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one cell earned: per stretch, and what it could have."""

    rounds: LongArray
    rewards: FloatArray
    references: tuple[float, float, float]


def run_cell(cell: Cell, tick: Tick) -> Outcome:
    """Play one cell."""
    settings = cell.settings
    means = draw(settings, cell.run) if cell.means is None else cell.means
    run = simulate(
        settings["policy"],
        means,
        min_group_size=cell.min_group_size,
        horizon=settings["horizon"],
        rewards=settings["rewards"],
        participation=settings["participation"],
        seed=int(stream(settings["seed"], "price", "play", cell.run).integers(2**32)),
        options=settings["options"],
        n_checkpoints=STRETCHES,
        progress=tick,
    )
    best, full = float(means.mean(axis=0).max()), float(means.max(axis=1).mean())
    lost = np.diff(run.cumulative_regret, prepend=0.0) / len(means)
    per_round = full - lost / np.diff(run.rounds, prepend=0)
    return Outcome(run.rounds, per_round, (best, full, float(means.mean())))


def draw(settings: Mapping[str, Any], run: int) -> FloatArray:
    """Draw the users of one run around tastes of its own.

    Users' own factors exp(N(0, spread²)) have a mean above 1, which is taken out of the rate.
    """
    return clustered(
        settings["sample"],
        settings["n_arms"],
        rng=stream(settings["seed"], "price", "population", run),
        rate=settings["rate"] / math.exp(SPREAD**2 / 2),
        spread=SPREAD,
    )


def _sample(given: FloatArray | None, settings: Mapping[str, Any], run: int) -> FloatArray | None:
    """Return one run's users where the means are given."""
    if given is None or len(given) == settings["sample"]:
        return given
    rng = stream(settings["seed"], "price", "sample", run)
    chosen: FloatArray = given[rng.choice(len(given), settings["sample"], replace=False)]
    return chosen


def _check_sizes(sizes: Sequence[int]) -> list[int]:
    if not sizes:
        raise InvalidInputError("min_group_sizes must name at least one; got none.")
    checked = [whole_number("min_group_size", size) for size in sizes]
    if len(set(checked)) < len(checked):
        raise InvalidInputError(f"min_group_sizes must differ; got {checked}.")
    return sorted(checked)


def _check_sample(sample: int | None, shape: tuple[int, int], largest: int) -> int:
    n_users, n_arms = shape
    if sample is None:
        return min(n_users, max(SAMPLE, GROUPS_PER_ARM * n_arms * largest))
    sample = whole_number("sample", sample)
    if not largest <= sample <= n_users:
        raise InvalidInputError(
            f"sample must be between the largest min_group_size={largest} and n_users={n_users}; "
            f"got {sample}."
        )
    return sample


def _check_population(
    n_users: int | None, n_arms: int | None, rate: float | None, given: FloatArray | None
) -> tuple[int, int]:
    """Return users and arms, from the means or as they were given."""
    if (rate is None) == (given is None):
        got = "neither" if rate is None else "both"
        raise InvalidInputError(f"either a rate or means must be given; got {got}.")
    if given is not None:
        for name, value in (("n_users", n_users), ("n_arms", n_arms)):
            if value is not None:
                raise InvalidInputError(f"{name} must be left out beside means; got {value}.")
        return given.shape[0], given.shape[1]
    if rate is not None and not 0.0 < rate <= 0.5:
        raise InvalidInputError(f"rate must be above 0 and at most 0.5; got {rate}.")
    return whole_number("n_users", n_users), whole_number("n_arms", n_arms)
