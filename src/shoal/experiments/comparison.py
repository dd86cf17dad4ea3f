"""Several policies on the same instances, many runs each; the records that they leave."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from shoal import __version__
from shoal.arrays import FloatArray
from shoal.engines import Engine
from shoal.errors import InvalidInputError, ShoalError
from shoal.experiments.cells import Cell, ProgressCallback, run_cells, split_runs
from shoal.experiments.record import Run
from shoal.experiments.setting import (
    GIVEN,
    PAPER_SETTING,
    Setting,
    SettingOptions,
    check_arguments,
    check_instance,
    field_value,
    means_hash,
    named_instance,
    setting_and_means,
)
from shoal.experiments.statistics import regret_intervals
from shoal.model.numbers import as_path, shortened, whole_number
from shoal.model.plurals import count
from shoal.notebook import html_table
from shoal.policies import find_policy
from shoal.policies.own import PolicyLike, all_options, identity, label
from shoal.policies.tuned import check_played, options_by_policy, resolve_options

if TYPE_CHECKING:
    import altair as alt

PAPER_INSTANCES = ("uniform", "linear")
PAPER_POLICIES = (
    "explore-then-commit",
    "elimination-greedy",
    "elimination-random",
    "elimination-lp",
    "ucb",
)
"""The five algorithms of the paper's simulations."""


def compare(
    *,
    instances: Sequence[str] | str | None = None,
    policies: Sequence[PolicyLike] | PolicyLike = PAPER_POLICIES,
    n_runs: int = 20,
    means: ArrayLike | None = None,
    options: Mapping[Any, Mapping[str, Any]] | None = None,
    tuned: bool = True,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    **setting: Unpack[SettingOptions],
) -> Comparison:
    """Run every policy on every class of instances; by default, the paper's experiment.

    Parameters
    ----------
    instances
        Classes of instances, by default both of the paper's; each run draws a new one, the same
        for every policy. A single one may be named as ``instance``, or by a whole ``setting``.
    policies
        Each as in ``simulate``; a class that is defined in a notebook is played in this process.
    n_runs
        Runs of each policy on each class of instances.
    means
        The caller's own expected rewards, (n_users, n_arms), in place of ``instances``.
    options
        By policy: ``{"explore-then-commit": {"exploration": 0.2}}``.
    tuned
        As in ``simulate``.
    engine
        Where the runs are played; by default a process per core.
    progress
        Called with (what has just finished or "", rounds done, rounds in all).
    **setting
        Fields of a ``Setting`` that differ from the paper's, or a whole one as ``setting``.

    Examples
    --------
    >>> from shoal.engines import LocalEngine
    >>> result = compare(policies=["random", "best-arm"], horizon=100, n_runs=2,
    ...                  engine=LocalEngine(n_workers=1))
    >>> result.summary()["policy"].to_list()
    ['random', 'best-arm', 'random', 'best-arm']
    """
    check_arguments(compare, setting)
    by_policy = options_by_policy(options, label)
    instances, policies = as_lists(instances, policies, setting, means)
    check_names(instances, _labels(policies), by_policy)
    whole, matrix = setting_and_means(setting, means, base=PAPER_SETTING, instance=instances[0])
    instances = instances if matrix is None else (GIVEN,)
    n_runs = whole_number("n_runs", n_runs)
    resolved = {
        (name, p): resolve_options(p, by_policy.get(label(p)), instance=name, tuned=tuned)
        for name, p in product(instances, policies)
    }
    cells = _cells(whole, matrix, resolved, n_runs)
    config = _shared_config(whole, resolved, n_runs) | means_hash(matrix)
    return Comparison.from_runs(cells, run_cells(cells, engine=engine, progress=progress), config)


def _cells(
    setting: Setting,
    means: FloatArray | None,
    resolved: Mapping[tuple[str, PolicyLike], Mapping[str, Any]],
    n_runs: int,
) -> list[Cell]:
    return [
        Cell(replace(setting, instance=name), policy, chosen, first, n, means=means)
        for (name, policy), chosen in resolved.items()
        for first, n in split_runs(
            setting.n_users, n_runs, takes_shards=find_policy(policy).takes_shards
        )
    ]


def _shared_config(
    setting: Setting, resolved: Mapping[tuple[str, PolicyLike], Mapping[str, Any]], n_runs: int
) -> dict[str, Any]:
    """Return what a configuration says of all but the caller's own means."""
    policies = list(dict.fromkeys(policy for _, policy in resolved))
    classes = {label(policy): identity(policy) for policy in policies if callable(policy)}
    return {
        **setting.as_json(without=("instance",)),
        "instances": list(dict.fromkeys(name for name, _ in resolved)),
        "policies": [label(policy) for policy in policies],
        "n_runs": n_runs,
        "options": {
            f"{name}/{label(p)}": all_options(p, chosen) for (name, p), chosen in resolved.items()
        },
        **({"own_policies": classes} if classes else {}),
    }


def as_lists(
    instances: Sequence[str] | str | None,
    policies: Any,
    setting: SettingOptions,
    means: ArrayLike | None = None,
) -> tuple[Sequence[str], list[Any]]:
    """Return both as lists: one name stands for a list of one. Means leave no instances to draw."""
    named = field_value(setting, "instance")
    drawn = None if isinstance(named, str) and named == GIVEN else named_instance(setting)
    for name, value in (("instances", instances), ("instance", drawn)):
        if means is not None and value is not None:
            raise InvalidInputError(
                f"{name} must be left out beside means; got {shortened(value)}."
            )
    if instances is None:
        instances = PAPER_INSTANCES if named is None or means is not None else [named]
    elif "instance" in setting:
        raise InvalidInputError(
            f"instance must be left out beside instances; got {setting['instance']!r}."
        )
    one_policy = isinstance(policies, str) or callable(policies)
    return (
        [instances] if isinstance(instances, str) else _as_list("instances", instances),
        [policies] if one_policy else _as_list("policies", policies),
    )


def _as_list(name: str, values: Any) -> list[Any]:
    if not isinstance(values, Iterable):
        raise InvalidInputError(f"{name} must be a name or a list of them; got {values!r}.")
    return list(values)


def _labels(policies: Sequence[PolicyLike]) -> list[str]:
    """Return the policies' names; two partials of one class need names of their own."""
    labels = [label(policy) for policy in policies]
    if len(set(labels)) < len(labels) and any(isinstance(p, partial) for p in policies):
        raise InvalidInputError(
            f"policies must differ by name; got {labels}. Give each partial a __name__."
        )
    return labels


def check_names(
    instances: Sequence[str], policies: Sequence[str], with_options: Iterable[str] = ()
) -> None:
    """Refuse an empty list, instances that can't be drawn, or options of policies not listed."""
    for name in instances:
        check_instance(name)
    for kind, names in (("instances", instances), ("policies", policies)):
        if not len(names):
            raise InvalidInputError(f"{kind} must name at least one; got none.")
        if len(set(names)) < len(names):
            raise InvalidInputError(f"{kind} must differ; got {list(names)}.")
    for policy in with_options:
        check_played("policy with options", policy, policies)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The records of a comparison.

    Attributes
    ----------
    records
        One row per instance class, policy, run and checkpoint, with the cumulative regret.
    cells
        One row per instance class and policy: smallest group, withheld totals, speed.
    config
        Everything needed to run it again.
    """

    records: pl.DataFrame
    cells: pl.DataFrame
    config: Mapping[str, Any]

    @classmethod
    def from_runs(
        cls, cells: Sequence[Cell], runs: Sequence[Run], config: Mapping[str, Any]
    ) -> Comparison:
        """Collect the runs of cells."""
        records, rows = [], []
        for cell, run in zip(cells, runs, strict=True):
            names = {"instance": cell.setting.instance, "policy": cell.label}
            labels = [pl.lit(value).alias(name) for name, value in names.items()]
            records.append(run_records(run, cell.first_run).select(*labels, pl.all()))
            rows.append(
                {
                    **names,
                    "smallest_group": run.smallest_group,
                    "withheld": run.withheld,
                    "user_rounds": run.problem.n_users * int(run.rounds[-1]),
                    "seconds": run.seconds,
                }
            )
        merged = (
            pl.DataFrame(rows)
            .group_by("instance", "policy", maintain_order=True)
            .agg(smallest_released(), pl.sum("withheld", "user_rounds", "seconds"))
        )
        full = {**config, "shoal": __version__, "python": platform.python_version()}
        return cls(pl.concat(records), merged, full)

    @classmethod
    def read(cls, folder: str | Path) -> Comparison:
        """Read what ``write`` wrote."""
        folder = as_path("folder", folder, "folder")
        try:
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            records = pl.read_parquet(folder / "records.parquet")
            summary = pl.read_csv(folder / "summary.csv")
            names = ["smallest_group", "withheld", "user_rounds", "seconds"]
            return cls(records, summary.select("instance", "policy", *names), config)
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            raise InvalidInputError(
                f"{str(folder)!r} must hold the records of a comparison; got: {error}."
            ) from None

    def __repr__(self) -> str:
        config = self.config
        return (
            f"Comparison(policies={config['policies']}, instances={config['instances']}, "
            f"n_runs={config['n_runs']}, horizon={config['horizon']})"
        )

    def _repr_html_(self) -> str:
        config = self.config
        summary = self.summary().to_dicts()
        rows = [
            (
                row["instance"],
                row["policy"],
                row["mean"],
                None if row["high"] is None else row["high"] - row["mean"],
                row["smallest_group"] or "none",
            )
            for instance in config["instances"]
            for row in sorted(summary, key=itemgetter("mean"))
            if row["instance"] == instance
        ]
        return html_table(
            f"Total regret of {count(config['n_users'], 'user')} over "
            f"{count(config['horizon'], 'round')}, "
            f"{count(config['n_runs'], 'run')}",
            ["instances", "policy", "regret", "± 95 %", "smallest group"],
            rows,
        )

    def to_frame(self) -> pl.DataFrame:
        """Return the records."""
        return self.records

    def plot(self) -> alt.LayerChart | alt.HConcatChart:
        """Draw regret over the rounds, with 95 % bands: a panel for each class of instances."""
        from shoal.figures import regret_figures, side_by_side

        return side_by_side(regret_figures(self))

    def curves(self) -> pl.DataFrame:
        """Return the mean over runs and its 95 % interval at every checkpoint."""
        return regret_intervals(self.records, by=["instance", "policy", "round"])

    def summary(self) -> pl.DataFrame:
        """Return the total regret of each policy with its 95 % interval, and what it took."""
        last = self.curves().filter(pl.col("round") == self.config["horizon"])
        return last.drop("round").join(self.cells, on=["instance", "policy"], maintain_order="left")

    def write(self, folder: str | Path) -> None:
        """Write records.parquet, summary.csv and config.json into a new folder."""
        with new_folder(as_path("folder", folder, "folder")) as part:
            self.fill(part)

    def fill(self, folder: Path) -> None:
        """Write the same files into an existing folder."""
        text = json.dumps(self.config, indent=2, sort_keys=True, default=shortened)
        self.records.write_parquet(folder / "records.parquet", metadata={"shoal": text})
        self.summary().write_csv(folder / "summary.csv")
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")


def run_records(run: Run, first_run: int) -> pl.DataFrame:
    """Return a row per run and checkpoint with the cumulative regret; a run is a shard."""
    n_runs, n_checkpoints = run.curves.shape
    return pl.DataFrame(
        {
            "run": np.repeat(np.arange(first_run, first_run + n_runs), n_checkpoints),
            "round": np.tile(run.rounds, n_runs),
            "regret": run.curves.ravel(),
        }
    )


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to fill, renamed to ``folder`` at the end and removed after a failure.

    An existing folder is never overwritten.
    """
    part = folder.with_name(f".{folder.name}.part")
    try:
        if folder.exists():
            raise InvalidInputError(f"out must be a new folder; {str(folder)!r} exists.")
        shutil.rmtree(part, ignore_errors=True)  # left by a process that was killed
        part.mkdir(parents=True)
        yield part
        part.rename(folder)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise ShoalError(
            f"out must be a folder that can be made and filled; got {str(folder)!r}: {reason}."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def smallest_released() -> pl.Expr:
    """Return the smallest group over cells, 0 if none of them released anything."""
    group = pl.col("smallest_group")
    return group.filter(group > 0).min().fill_null(0)
