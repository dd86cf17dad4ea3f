"""What each least group size C costs, before anyone is observed.

A learner is played on several populations, and on the same ones with the same randomness for every
C: so differences between the C are sharper than any of the numbers. Of a large population only a
sample of users is played. A learner that shares a prior among users learns it better from more of
them, which is why the sample is as large as it is (docs/benchmarks/price.md has the bias).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from shoal import __version__
from shoal.arrays import FloatArray
from shoal.engines import Engine
from shoal.errors import InvalidInputError
from shoal.experiments.cells import Cell, ProgressCallback, run_cells
from shoal.experiments.price.costs import Price
from shoal.experiments.run import Run
from shoal.experiments.seeds import stream
from shoal.experiments.setting import Setting, SettingOptions, make_setting, setting_of_means
from shoal.model.numbers import whole_number
from shoal.policies import find_policy
from shoal.policies.tuned import resolve_options

PURPOSE = "price"
SAMPLE = 10_000  # users to play: more change little, except at the smallest C
GROUPS_PER_ARM = 20  # that the sample must have room for, at the largest C
STRETCHES = 100  # into which the rounds are cut for the curves
SPREAD = 0.3  # of users around their cluster, as in ``clustered``


def price(
    *,
    min_group_sizes: Sequence[int],
    rate: float | None = None,
    means: ArrayLike | None = None,
    policy: str = "shoal",
    options: Mapping[str, Any] | None = None,
    tuned: bool = True,
    n_runs: int = 7,
    sample: int | None = None,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    **setting: Unpack[SettingOptions],
) -> Price:
    """Say what each least group size costs.

    Parameters
    ----------
    min_group_sizes
        The C to compare.
    rate
        Mean reward over all users and arms; with ``n_users`` and ``n_arms``. Populations are then
        drawn: every run has six tastes of its own, equally common, whose rates on the arms are
        drawn from a Beta(1, .); users differ from their taste by about 30 % on every arm.
    means
        Or the caller's own expected rewards, (n_users, n_arms); every run plays them, or a random
        sample of their users.
    policy, options, tuned
        The learner, an anonymous one; options as in ``simulate``.
    n_runs
        Populations, at least 2: the intervals come from how they differ.
    sample
        Users to play of a larger population; by default 10,000, and more where C or K is large.
    progress
        Called with (what has just finished or "", rounds done, rounds in all).
    **setting
        ``horizon`` and the other fields of a ``Setting`` but for the instances and the group
        size, or a whole one as ``setting``.

    Examples
    --------
    >>> from shoal.engines import LocalEngine
    >>> answer = price(n_users=400, n_arms=3, rate=0.2, horizon=50, min_group_sizes=[2, 10],
    ...                n_runs=2, engine=LocalEngine(n_workers=1))
    >>> [cost.min_group_size for cost in answer.costs]
    [2, 10]
    """
    sizes = _check_sizes(min_group_sizes)
    whole, matrix = _population(rate, means, setting, min_group_size=sizes[-1])
    n_runs = whole_number("n_runs", n_runs, least=2)
    entry = find_policy(policy)
    if not entry.anonymous or entry.hindsight:
        raise InvalidInputError(
            f"policy must be one that learns from totals, for a price on anonymity; got {policy!r}."
        )
    chosen = resolve_options(policy, options, instance=whole.instance, tuned=tuned)
    played = replace(whole, n_users=_check_sample(sample, whole))
    samples = [_sample(matrix, played, run) for run in range(n_runs)]
    # Populations outside, sizes inside: the means of a run are in few cells at a time.
    cells = [
        Cell(
            replace(played, min_group_size=size), policy, chosen, first_run=run, purpose=PURPOSE,
            means=samples[run], n_checkpoints=STRETCHES,
        )
        for run in range(n_runs)
        for size in sizes
    ]  # fmt: skip
    runs = run_cells(cells, engine=engine, progress=progress, title=_title)
    config = {
        **whole.as_json(without=("min_group_size", "instance", "instance_options")),
        "rate": None if rate is None else float(rate),
        "policy": policy,
        "options": chosen,
        "n_runs": n_runs,
        "sample": played.n_users,
        "min_group_sizes": sizes,
        "shoal": __version__,
    }
    if matrix is not None:
        config["means_sha256"] = hashlib.sha256(matrix.tobytes()).hexdigest()
    return _reduce(cells, runs, sizes, config)


def _title(cell: Cell) -> str:
    return f"groups of {cell.setting.min_group_size}, run {cell.first_run}"


def _reduce(
    cells: Sequence[Cell], runs: Sequence[Run], sizes: list[int], config: Mapping[str, Any]
) -> Price:
    """Turn the runs' regret into the reward per user and round, and that into costs."""
    references, rewards = [], []
    for cell in cells[:: len(sizes)]:
        means = cell.run_means(cell.first_run)
        best_arm, full_knowledge = means.mean(axis=0).max(), means.max(axis=1).mean()
        references.append((best_arm, full_knowledge, means.mean()))
    rounds = runs[0].rounds
    for index, run in enumerate(runs):
        lost = np.diff(run.cumulative_regret, prepend=0.0) / run.problem.n_users
        full_knowledge = references[index // len(sizes)][1]
        rewards.append(full_knowledge - lost / np.diff(rounds, prepend=0))
    by_run = np.array(rewards).reshape(-1, len(sizes), len(rounds))
    return Price.from_rewards(sizes, by_run.swapaxes(0, 1), np.array(references), rounds, config)


def _population(
    rate: float | None, means: ArrayLike | None, options: SettingOptions, *, min_group_size: int
) -> tuple[Setting, FloatArray | None]:
    """Return the setting of the whole population, and its means where the caller brings them."""
    if rate is not None and means is not None:
        raise InvalidInputError("either a rate or means must be given; got both.")
    if means is not None:
        for name in ("n_users", "n_arms"):
            if options.get(name) is not None:
                raise InvalidInputError(
                    f"{name} must be left out beside means; got {options.get(name)}."
                )
        return setting_of_means(means, options, min_group_size=min_group_size)
    if rate is None:
        raise InvalidInputError("either a rate or means must be given; got neither.")
    if not 0.0 < rate <= 0.5:
        raise InvalidInputError(f"rate must be above 0 and at most 0.5; got {rate}.")
    return drawn_population(rate, options, min_group_size=min_group_size), None


def drawn_population(rate: float, options: SettingOptions, *, min_group_size: int) -> Setting:
    """Return the setting whose populations have this mean reward.

    Users' own factors exp(N(0, spread²)) have a mean above 1, which is divided out of the rate.
    """
    drawn = {"rate": float(rate) / math.exp(SPREAD**2 / 2), "spread": SPREAD}
    return make_setting(
        options, instance="clustered", instance_options=drawn, min_group_size=min_group_size
    )


def _sample(means: FloatArray | None, setting: Setting, run: int) -> FloatArray | None:
    """Return one run's users where the caller brings the means."""
    if means is None or len(means) == setting.n_users:
        return means
    rng = stream(setting.seed, PURPOSE, "sample", run)
    chosen: FloatArray = means[rng.choice(len(means), setting.n_users, replace=False)]
    return chosen


def _check_sizes(sizes: Sequence[int]) -> list[int]:
    if not sizes:
        raise InvalidInputError("min_group_sizes must name at least one; got none.")
    checked = [whole_number("min_group_size", size) for size in sizes]
    if len(set(checked)) < len(checked):
        raise InvalidInputError(f"min_group_sizes must differ; got {checked}.")
    return sorted(checked)


def _check_sample(sample: int | None, setting: Setting) -> int:
    """Return how many users to play; ``setting`` has the largest group size."""
    largest = setting.min_group_size
    if sample is None:
        return min(setting.n_users, max(SAMPLE, GROUPS_PER_ARM * setting.n_arms * largest))
    sample = whole_number("sample", sample)
    if not largest <= sample <= setting.n_users:
        raise InvalidInputError(
            f"sample must be between the largest min_group_size={largest} and "
            f"n_users={setting.n_users}; got {sample}."
        )
    return sample
