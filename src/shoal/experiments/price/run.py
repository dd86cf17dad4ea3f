"""What each least group size C costs, before anyone is observed.

A learner is played on several populations, and on the same ones with the same randomness for every
C: so differences between the C are sharper than any of the numbers. Of a large population only a
sample of users is played. A learner that shares a prior among users learns it better from more of
them, which is why the sample is as large as it is (docs/benchmarks/price.md has the bias).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from shoal.arrays import FloatArray
from shoal.engines import Engine
from shoal.errors import InvalidInputError
from shoal.experiments.cells import Cell, ProgressCallback, run_cells
from shoal.experiments.price.costs import AT_LEAST, Price
from shoal.experiments.price.logged import choose_worlds
from shoal.experiments.price.recommend import DEFAULT_LEARNER, MAX_RUNS, MIN_RUNS
from shoal.experiments.record import Run
from shoal.experiments.seeds import stream
from shoal.experiments.setting import (
    GIVEN,
    Setting,
    SettingOptions,
    check_arguments,
    field_value,
    make_setting,
    means_hash,
    named_instance,
    setting_and_means,
)
from shoal.model.numbers import is_number, not_negative, shortened, whole_number
from shoal.policies import find_policy
from shoal.policies.own import PolicyLike, all_options, label
from shoal.policies.tuned import resolve_options

if TYPE_CHECKING:
    from shoal.instances.population import Population

PURPOSE = "price"
SAMPLE = 10_000  # users to play: more change little, except at the smallest C
GROUPS_PER_ARM = 20  # that the sample must have room for, at the largest C
STRETCHES = 100  # into which the rounds are cut for the curves
SPREAD = 0.3  # of users around their cluster, as in ``clustered``


def price(
    *,
    min_group_sizes: Iterable[int] | int | None = None,
    rate: float | None = None,
    means: ArrayLike | None = None,
    population: Population | None = None,
    policy: PolicyLike = DEFAULT_LEARNER,
    options: Mapping[str, Any] | None = None,
    tuned: bool = True,
    n_runs: int | None = None,
    at_least: int = AT_LEAST,
    sample: int | None = None,
    time_limit: float | None = None,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    **setting: Unpack[SettingOptions],
) -> Price:
    """Say what each least group size costs a policy, which must be anonymous.

    Parameters
    ----------
    min_group_sizes
        The C to compare, or a single one.
    rate
        Mean reward over all users and arms, with ``n_users`` and ``n_arms``: every run draws six
        tastes, equally common, with Beta(1, .) rates; users differ from theirs by about 30 %.
    means
        Or the caller's own expected rewards, (n_users, n_arms), or a sample of their users.
    population
        Or what people are like, from a log: every run plays a population that the log allows, with
        the log's kind of rewards unless ``rewards`` says otherwise.
    policy, options, tuned
        As in ``simulate``.
    n_runs
        Populations, at least 2; by default 5, and up to 15 until three answers in a row agree.
    time_limit
        Seconds after which no more populations are played; the first 5, or ``n_runs``, always are.
    at_least
        Smaller groups are compared, but not recommended.
    sample
        Users to play of a larger population; by default 10,000, and more where C or K is large.
    engine, progress
        As in ``compare``.
    **setting
        ``horizon`` and other fields of a ``Setting``, or a whole ``setting`` of default instances.

    Examples
    --------
    >>> from shoal.engines import LocalEngine
    >>> price(n_users=400, n_arms=3, rate=0.2, horizon=50, min_group_sizes=[2, 10], n_runs=2,
    ...       engine=LocalEngine(n_workers=1)).config["min_group_sizes"]
    [2, 10]
    """
    check_arguments(price, setting)
    sizes = _check_sizes(min_group_sizes, setting.get("min_group_size"))
    whole, matrix = make_population(rate, means, population, setting, min_group_size=sizes[-1])
    cell = _cell(whole, policy, options, tuned=tuned, sample=sample)
    game = Game(cell, sizes, matrix if population is None else population, at_least, n_runs)
    game.config = _shared_config(cell, whole, rate, sizes) | means_hash(matrix)
    return game.play(engine, progress, time_limit)


def _cell(
    whole: Setting,
    policy: PolicyLike,
    options: Mapping[str, Any] | None,
    *,
    tuned: bool,
    sample: int | None,
) -> Cell:
    """Return what all cells have in common."""
    _check_learner(policy)
    if whole.n_arms < 2:
        raise InvalidInputError("n_arms must be at least 2, for there to be a choice; got 1.")
    chosen = resolve_options(policy, options, instance=whole.instance, tuned=tuned)
    played = replace(whole, n_users=_check_sample(sample, whole))
    return Cell(played, policy, chosen, purpose=PURPOSE, n_checkpoints=STRETCHES)


class Game:
    """The runs of one price, as many as its answer needs."""

    def __init__(
        self,
        cell: Cell,
        sizes: list[int],
        source: FloatArray | Population | None,
        at_least: int,
        n_runs: int | None,
    ) -> None:
        self.cell, self.sizes, self.source = cell, sizes, source
        self.at_least = whole_number("at_least", at_least)
        self.counts: Sequence[int] = range(MIN_RUNS, MAX_RUNS + 1, 2)
        if n_runs is not None:
            self.counts = [whole_number("n_runs", n_runs, minimum=2)]
        self.config: dict[str, Any] = {}
        self.cells: list[Cell] = []
        self.runs: list[Run] = []

    def play(
        self, engine: Engine | None, progress: ProgressCallback | None, time_limit: float | None
    ) -> Price:
        """Play until the answer is stable, the runs are played or the time is over."""
        limit = math.inf if time_limit is None else not_negative("time_limit", time_limit)
        stop = monotonic() + limit
        answers: list[Price] = []
        for count in self.counts:
            done = len(self.cells) // len(self.sizes)
            samples = [
                _sample(self.source, self.cell.setting, run, self.counts[-1])
                for run in range(done, count)
            ]
            cells = _grid(self.cell, self.sizes, samples, first_run=done)
            self.cells += cells
            self.runs += run_cells(cells, engine=engine, progress=progress, title=_title)
            answers.append(self._answer(count))
            if _is_stable(answers) or monotonic() > stop:
                break
        return answers[-1]

    def _answer(self, n_runs: int) -> Price:
        drawn = None if isinstance(self.source, np.ndarray) else self.source
        rewards, references = _earnings(self.cells, self.runs, len(self.sizes))
        return Price.from_rewards(
            self.sizes, rewards, references, self.runs[0].rounds,
            self.config | {"n_runs": n_runs}, at_least=self.at_least, population=drawn,
        )  # fmt: skip


def _is_stable(answers: Sequence[Price]) -> bool:
    """Say whether the last three answers recommend the same, and none needs more runs."""
    if any(answer.more_runs is not None for answer in answers[-3:]):
        return False
    sizes = [answer.recommended and answer.recommended.min_group_size for answer in answers[-3:]]
    return len(sizes) == 3 and len(set(sizes)) == 1


def _shared_config(
    cell: Cell, whole: Setting, rate: float | None, sizes: list[int]
) -> dict[str, Any]:
    """Return what all cells share, as the configuration has it."""
    return {
        **whole.as_json(without=("min_group_size", "instance", "instance_options")),
        "rate": None if rate is None else float(rate),
        "policy": cell.label,
        "options": all_options(cell.policy, cell.options),
        "sample": cell.setting.n_users,
        "shoal": cell.version,
        "min_group_sizes": sizes,
    }


def _grid(
    cell: Cell, sizes: Sequence[int], samples: Sequence[FloatArray | None], *, first_run: int
) -> list[Cell]:
    """Return a cell for every run and size; runs outside, so that few means are in use at once."""
    settings = [replace(cell.setting, min_group_size=size) for size in sizes]
    return [
        replace(cell, setting=setting, first_run=run, means=means)
        for run, means in enumerate(samples, first_run)
        for setting in settings
    ]


def _title(cell: Cell) -> str:
    return f"groups of {cell.setting.min_group_size}, run {cell.first_run}"


def _earnings(
    cells: Sequence[Cell], runs: Sequence[Run], n_sizes: int
) -> tuple[FloatArray, FloatArray]:
    """Return the rewards, (n_sizes, n_runs, n_stretches), and the references, (n_runs, 3).

    Both are per user and round; the rewards come from the runs' regret.
    """
    references, rewards = [], []
    for cell in cells[::n_sizes]:
        means = cell.run_means(cell.first_run)
        best_arm, full_knowledge = means.mean(axis=0).max(), means.max(axis=1).mean()
        references.append((best_arm, full_knowledge, means.mean()))
    rounds = runs[0].rounds
    for index, run in enumerate(runs):
        lost = np.diff(run.cumulative_regret, prepend=0.0) / run.problem.n_users
        full_knowledge = references[index // n_sizes][1]
        rewards.append(full_knowledge - lost / np.diff(rounds, prepend=0))
    by_run = np.array(rewards).reshape(-1, n_sizes, len(rounds))
    return by_run.swapaxes(0, 1), np.array(references)


def _check_source(
    rate: float | None,
    means: ArrayLike | None,
    population: Population | None,
    options: SettingOptions,
) -> None:
    """Refuse several descriptions of people, and what none of them can use."""
    sources = {"a rate": rate, "means": means, "a population": population}
    present = [name for name, source in sources.items() if source is not None]
    if len(present) != 1:
        raise InvalidInputError(
            "one of a rate, means and a population must be given; got "
            f"{' and '.join(present) or 'none'}."
        )
    if population is not None and not hasattr(population, "worlds"):
        raise InvalidInputError(
            "population must be a Population, such as from_log(...).population; got "
            f"{shortened(population)}."
        )
    instance = named_instance(options)
    if rate is None and isinstance(instance, str) and instance == GIVEN:
        instance = None
    instance_options = field_value(options, "instance_options") or None
    for name, value in (("instance", instance), ("instance_options", instance_options)):
        if value is not None:
            raise InvalidInputError(
                f"{name} must be left out of price, which has {present[0]}; got {value!r}."
            )
    n_arms = field_value(options, "n_arms")
    if population is not None and n_arms not in (None, population.n_arms):
        raise InvalidInputError(
            f"n_arms must be left out beside a population, or be its number, {population.n_arms}; "
            f"got {n_arms!r}."
        )


def make_population(
    rate: float | None,
    means: ArrayLike | None,
    population: Population | None,
    options: SettingOptions,
    *,
    min_group_size: int,
) -> tuple[Setting, FloatArray | None]:
    """Return the setting of the whole population, and its means where the caller brings them."""
    _check_source(rate, means, population, options)
    if means is not None:
        return setting_and_means(options, means, min_group_size=min_group_size)
    if population is not None:
        if not {"rewards", "setting"} & options.keys():
            options = {**options, "rewards": population.rewards}
        like_log = make_setting(
            options, instance=GIVEN, instance_options={}, min_group_size=min_group_size,
            n_users=field_value(options, "n_users") or population.n_users, n_arms=population.n_arms,
        )  # fmt: skip
        return like_log, None
    if rate is None or not is_number(rate) or not 0.0 < rate <= 0.5:
        raise InvalidInputError(f"rate must be above 0 and at most 0.5; got {rate}.")
    # Users' own factors exp(N(0, SPREAD²)) have a mean above 1, which is divided out of the rate.
    drawn = {"rate": float(rate) / math.exp(SPREAD**2 / 2), "spread": SPREAD}
    setting = make_setting(
        options, instance="clustered", instance_options=drawn, min_group_size=min_group_size
    )
    return setting, None


def _sample(
    source: FloatArray | Population | None, setting: Setting, run: int, n_runs: int
) -> FloatArray | None:
    """Return one run's users where the caller brings the means or a log."""
    if source is None or (isinstance(source, np.ndarray) and len(source) == setting.n_users):
        return source
    rng = stream(setting.seed, PURPOSE, "sample", run)
    if isinstance(source, np.ndarray):
        chosen: FloatArray = source[rng.choice(len(source), setting.n_users, replace=False)]
        return chosen
    return source.draw(setting.n_users, rng, world=choose_worlds(source, n_runs)[run])


def _check_learner(policy: PolicyLike) -> None:
    entry = find_policy(policy)
    if not entry.anonymous or entry.hindsight:
        raise InvalidInputError(
            "policy must be one that learns from totals, for a price on anonymity; "
            f"got {label(policy)!r}."
        )


def _check_sizes(sizes: Any, size: Any) -> list[int]:
    """Return the group sizes in order; ``size`` is what other functions take in their place."""
    if size is not None:
        raise InvalidInputError(
            "min_group_size must be left out of price, which has min_group_sizes; "
            f"got {shortened(size)}."
        )
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        sizes = [sizes]
    checked = [whole_number("min_group_sizes", size) for size in sizes]
    if not checked:
        raise InvalidInputError("min_group_sizes must name at least one; got none.")
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
