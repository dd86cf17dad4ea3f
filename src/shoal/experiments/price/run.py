"""What each least group size C costs, before anyone is observed.

A learner is played on several populations, and on the same ones with the same randomness for every
C: so differences between the C are sharper than any of the numbers. Of a large population only a
sample of users is played. A learner that shares a prior among users learns it better from more of
them, which is why the sample is as large as it is (docs/benchmarks/price.md has the bias).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import FloatArray
from shoal.engines import Engine
from shoal.errors import InvalidInputError
from shoal.experiments.cells import Cell, ProgressCallback, run_cells
from shoal.experiments.price.costs import Price
from shoal.experiments.run import Run
from shoal.experiments.seeds import stream
from shoal.experiments.setting import (
    Setting,
    SettingOptions,
    make_setting,
    means_hash,
    setting_and_means,
)
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
        Mean reward over all users and arms; with ``n_users`` and ``n_arms``. Every run then draws
        six tastes, equally common, whose rates on the arms have a Beta(1, .) distribution; users
        differ from their taste by about 30 % on every arm.
    means
        Or the caller's own expected rewards, (n_users, n_arms), or a sample of their users.
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
    whole, matrix = make_population(rate, means, setting, min_group_size=sizes[-1])
    n_runs = whole_number("n_runs", n_runs, least=2)
    _check_learner(policy)
    chosen = resolve_options(policy, options, instance=whole.instance, tuned=tuned)
    played = replace(whole, n_users=_check_sample(sample, whole))
    cell = Cell(played, policy, chosen, purpose=PURPOSE, n_checkpoints=STRETCHES)
    config = _shared_config(cell, whole, rate=rate) | {"n_runs": n_runs, "min_group_sizes": sizes}
    cells = _grid(cell, sizes, [_sample(matrix, cell.setting, run) for run in range(n_runs)])
    runs = run_cells(cells, engine=engine, progress=progress, title=_title)
    return _reduce(cells, runs, sizes, config | means_hash(matrix))


def _shared_config(cell: Cell, whole: Setting, *, rate: float | None) -> dict[str, Any]:
    """Return what all cells share, as the configuration has it."""
    return {
        **whole.as_json(without=("min_group_size", "instance", "instance_options")),
        "rate": None if rate is None else float(rate),
        "policy": cell.policy,
        "options": cell.options,
        "sample": cell.setting.n_users,
        "shoal": cell.version,
    }


def _grid(cell: Cell, sizes: Sequence[int], samples: Sequence[FloatArray | None]) -> list[Cell]:
    """Return a cell for every run and size; runs outside, so that few means are in use at once."""
    settings = [replace(cell.setting, min_group_size=size) for size in sizes]
    return [
        replace(cell, setting=setting, first_run=run, means=means)
        for run, means in enumerate(samples)
        for setting in settings
    ]


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


def make_population(
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
        return setting_and_means(options, means, min_group_size=min_group_size)
    if rate is None:
        raise InvalidInputError("either a rate or means must be given; got neither.")
    if not 0.0 < rate <= 0.5:
        raise InvalidInputError(f"rate must be above 0 and at most 0.5; got {rate}.")
    # Users' own factors exp(N(0, SPREAD²)) have a mean above 1, which is divided out of the rate.
    drawn = {"rate": float(rate) / math.exp(SPREAD**2 / 2), "spread": SPREAD}
    setting = make_setting(
        options, instance="clustered", instance_options=drawn, min_group_size=min_group_size
    )
    return setting, None


def _sample(means: FloatArray | None, setting: Setting, run: int) -> FloatArray | None:
    """Return one run's users where the caller brings the means."""
    if means is None or len(means) == setting.n_users:
        return means
    rng = stream(setting.seed, PURPOSE, "sample", run)
    chosen: FloatArray = means[rng.choice(len(means), setting.n_users, replace=False)]
    return chosen


def _check_learner(policy: str) -> None:
    entry = find_policy(policy)
    if not entry.anonymous or entry.hindsight:
        raise InvalidInputError(
            f"policy must be one that learns from totals, for a price on anonymity; got {policy!r}."
        )


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
